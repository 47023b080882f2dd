// Asks the server: one function for every request, one shape for every failure.
import type { components } from '../../generated/openapi'
import { bearer, refuseBearer } from './bearer'

export type Schemas = components['schemas']
export type Execution = Schemas['Execution']
export type ExecutionSummary = Schemas['ExecutionSummary']
export type Step = Schemas['Step']
export type JournalEntry = Schemas['JournalEntry']
export type JournalPage = Schemas['JournalPage']
export type Approval = Schemas['Approval']
export type Schedule = Schemas['Schedule']
export type WorkflowSummary = Schemas['WorkflowSummary']
export type Workflow = Schemas['Workflow']
export type Validation = Schemas['Validation']
export type Problem = Schemas['Problem']
export type Fault = Schemas['ExecutionError']
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json }

/** What went wrong, in the server's words. */
export class Failure extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly code: string,
    readonly hint?: string,
    readonly correlationId?: string,
  ) {
    super(message)
  }

  /** No answer came at all. */
  get isAway(): boolean {
    return this.status === 0
  }
}

export interface Asked {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  query?: Record<string, string | number | string[] | undefined | null>
  body?: unknown
  headers?: Record<string, string>
  signal?: AbortSignal
}

/** The token in the page that shows the server that a change comes from here. */
const pageToken = (): string =>
  document.querySelector<HTMLMetaElement>('meta[name="orchestr8-page"]')?.content ?? ''

export async function ask<T>(path: string, asked: Asked = {}): Promise<T> {
  return (await answer(path, asked)).json() as Promise<T>
}

export async function answer(path: string, asked: Asked = {}): Promise<Response> {
  const method = asked.method ?? (asked.body === undefined ? 'GET' : 'POST')
  const headers: Record<string, string> = { accept: 'application/json', ...authorization(), ...asked.headers }
  if (method !== 'GET') headers['x-orchestr8-page'] = pageToken()
  if (asked.body !== undefined) headers['content-type'] ??= 'application/json'
  let response: Response
  try {
    response = await fetch(address(path, asked.query), {
      method,
      headers,
      // What ended may be retried: an answer is kept, but never believed without asking.
      cache: 'no-cache',
      ...(asked.body === undefined ? {} : { body: JSON.stringify(asked.body) }),
      ...(asked.signal ? { signal: asked.signal } : {}),
    })
  } catch (cause) {
    if (cause instanceof DOMException && cause.name === 'AbortError') throw cause
    throw new Failure('The server does not answer.', 0, 'UNREACHABLE')
  }
  if (!response.ok) throw await failure(response)
  return response
}

export function authorization(): Record<string, string> {
  const token = bearer()
  return token ? { authorization: `Bearer ${token}` } : {}
}

function address(path: string, query: Asked['query']): string {
  const given = Object.entries(query ?? {}).filter((pair) => pair[1] !== undefined && pair[1] !== null && pair[1] !== '')
  const pairs = given.flatMap(([name, value]) => (Array.isArray(value) ? value : [String(value)]).map((one) => [name, one]))
  if (pairs.length === 0) return path
  return `${path}?${new URLSearchParams(pairs)}`
}

async function failure(response: Response): Promise<Failure> {
  if (response.status === 401) refuseBearer()
  const correlation = response.headers.get('x-correlation-id') ?? undefined
  const body: unknown = await response.json().catch(() => null)
  const error = (body as { error?: { code?: string; message?: string; hint?: string; details?: { hint?: string } } } | null)?.error
  return new Failure(
    error?.message ?? `The server answered ${response.status}.`,
    response.status,
    error?.code ?? String(response.status),
    error?.hint ?? error?.details?.hint,
    correlation,
  )
}

/** A socket that did not open does not say why. Whoever asks plainly hears whether it was for want of a token. */
export const findOutWhy = (): void => void answer('/v1/health').catch(() => undefined)

/** A key that makes one click one deed, however often it is sent. */
export function freshKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
