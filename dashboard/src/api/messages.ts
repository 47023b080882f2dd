// Messages between agents: who there is, what was asked, what nobody could deliver.
import type { components } from '../../generated/aacp'
import { ask, freshKey } from './client'

export type Agent = components['schemas']['Agent']
export type Pair = components['schemas']['Pair']
export type Request = components['schemas']['Request']

export interface DeadLetter {
  seq: number
  tenant_id: string
  subject: string
  request_id: string
  principal: string
  attempts: number
  redrives: number
  why: string
  published_at: string
  dead_at: string
  bytes: number
}

export interface QueueLine {
  tenant_id: string
  queued: number
  in_flight: number
  dead_letters: number
}

/** These answers come in an envelope of their own. */
const inside = async <T>(path: string, asked?: Parameters<typeof ask>[1]): Promise<T> => (await ask<{ data: T }>(path, asked)).data

export const agents = () => ask<{ agents: Agent[] }>('/aacp/agents')
export const requests = (status: string, agentId: string) =>
  ask<{ requests: Request[] }>('/aacp/requests', { query: { status, agentId, limit: 500 } })
export const pairs = (agentId: string) => ask<{ pairs: Pair[] }>('/aacp/pairs', { query: { agentId, limit: 500 } })
export const request = (id: string) => ask<Request>(`/aacp/requests/${encodeURIComponent(id)}`)
export const deadLetters = () => inside<{ dead_letters: DeadLetter[] }>('/admin/dead-letters')
export const deadLetter = (seq: number) => inside<Record<string, unknown>>(`/admin/dead-letters/${seq}`)
export const queues = () => inside<{ queues: QueueLine[] }>('/admin/queues')
export const redrive = (seq: number) =>
  inside<object>(`/admin/dead-letters/${seq}/redrive`, { method: 'POST', headers: { 'idempotency-key': freshKey() } })
