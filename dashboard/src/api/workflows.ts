// Every request about workflows and their executions.
import {
  ask,
  freshKey,
  type Approval,
  type Execution,
  type ExecutionSummary,
  type Json,
  type JournalPage,
  type Schedule,
  type Validation,
  type Workflow,
  type WorkflowSummary,
} from './client'

export interface Filter {
  id?: string | undefined
  status?: string | undefined
  workflowId?: string | undefined
  correlationId?: string | undefined
  /** Tags that executions must have, such as `customer=42`. */
  where?: string[] | undefined
  since?: string | undefined
  until?: string | undefined
}

export interface Queue {
  runningSteps: number
  maxRunningSteps: number
  waitingSteps: number
  waitingExecutions: number
  begunExecutions: number
  liveExecutions: number
}

export interface Metrics {
  executions: Record<string, number>
  queue: Queue
  bus: { event_queue_utilization: number; events_dropped_total: number }
}

export interface Breaker {
  key: string
  state: string
  failures?: number
  [more: string]: unknown
}

export interface System {
  queue: Queue
  breakers: Breaker[]
  inFlight: number
  runningActions: number
}

export interface Health {
  healthy: boolean
  version: string
  pid: number
  startedAt: string
}

const one = (id: string): string => `/v1/executions/${encodeURIComponent(id)}`
const keyed = () => ({ 'idempotency-key': freshKey() })

export const metrics = () => ask<Metrics>('/v1/dashboard/metrics')
export const system = () => ask<System>('/v1/dashboard/system')
export const health = () => ask<Health>('/v1/health')

export const executions = (filter: Filter, limit: number, cursor?: string | null, signal?: AbortSignal) =>
  ask<{ executions: ExecutionSummary[]; nextCursor: string | null }>('/v1/dashboard/executions', {
    query: { ...filter, limit, cursor },
    ...(signal ? { signal } : {}),
  })

export const execution = (id: string, at?: number) => ask<Execution>(one(id), { query: { at } })

export const definitionOf = (id: string) =>
  ask<{ hash: string; workflow: Definition }>(`${one(id)}/workflow`)

export const journal = (id: string, since: number, limit: number) =>
  ask<JournalPage>(`${one(id)}/journal`, { query: { since, limit } })

export const move = (id: string, what: 'cancel' | 'pause' | 'resume' | 'retry', body: object = {}) =>
  ask<{ status?: string; message?: string }>(`${one(id)}/${what}`, { body, headers: keyed() })

export const fork = (id: string, fromStep: string, body: { variables?: Json; workflow?: Definition }) =>
  ask<{ executionId: string }>(`${one(id)}/fork`, { query: { fromStep }, body, headers: keyed() })

export const resolve = (id: string, step: string, body: object) =>
  ask<object>(`${one(id)}/steps/${encodeURIComponent(step)}/resolve`, { body, headers: keyed() })

export const approvals = (executionId?: string) =>
  ask<{ approvals: Approval[] }>('/v1/approvals', { query: { executionId } })

export const decide = (body: { token: string; decision: 'approve' | 'reject'; comment?: string; data?: Json }) =>
  ask<object>('/v1/approvals', { body, headers: keyed() })

export const execute = (body: { workflowId: string; inputs?: Json } | { workflow: Json }) =>
  ask<{ executionId: string }>('/v1/workflows/execute', { body, headers: keyed() })

export const workflows = (search?: string) =>
  ask<{ workflows: WorkflowSummary[] }>('/v1/workflows', { query: { search, limit: 500 } })

export const workflow = (id: string, revision?: number) =>
  ask<Workflow & { workflow: Definition }>(
    `/v1/workflows/${encodeURIComponent(id)}${revision === undefined ? '' : `/revisions/${revision}`}`,
  )

export const validate = (workflow: Json, signal?: AbortSignal) =>
  ask<Validation>('/v1/workflows/validate', { body: { workflow }, ...(signal ? { signal } : {}) })

export const apply = (workflow: Json) =>
  ask<{ id: string; revision: number; unchanged: boolean }>('/v1/workflows', {
    method: 'PUT',
    body: { workflow },
    headers: keyed(),
  })

export const agents = () => ask<{ agents: { id: string; about: string }[] }>('/v1/agents')

export const schedules = () => ask<{ schedules: Schedule[] }>('/v1/schedules', { query: { limit: 500 } })

export const moveSchedule = (id: string, what: 'pause' | 'resume' | 'trigger') =>
  ask<{ executionId?: string }>(`/v1/schedules/${encodeURIComponent(id)}/${what}`, { body: {}, headers: keyed() })

export const applySchedule = (schedule: Pick<Schedule, 'id' | 'workflowId' | 'cron' | 'overlap' | 'backfill'> & { timeZone?: string }) =>
  ask<Schedule>('/v1/schedules', { method: 'PUT', body: schedule, headers: keyed() })

export const removeSchedule = (id: string) =>
  ask<object>(`/v1/schedules/${encodeURIComponent(id)}`, { method: 'DELETE', headers: keyed() })

/** A workflow as it was written, in either of its two forms. */
export interface Definition {
  id?: string
  name?: string
  version?: string
  description?: string
  metadata?: { id?: string; name?: string; description?: string }
  variables?: Record<string, Json>
  context?: { variables?: Record<string, Json> }
  inputs?: Json
  steps: DefinitionStep[]
  onFailure?: DefinitionStep[]
  finally?: DefinitionStep[]
}

export interface DefinitionStep {
  id: string
  name?: string
  type?: string
  agentId?: string
  agent?: { id?: string }
  dependencies?: string[]
  dependsOn?: string[]
  input?: Json
  fallbackStepId?: string
  [more: string]: unknown
}
