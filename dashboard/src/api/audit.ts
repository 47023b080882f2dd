// The audit trail: who did what, and the proof that it is whole.
import { ask } from './client'

export interface Entry {
  id: string
  sequence: number
  at: string
  action: string
  principal: string
  end: string
  errorCode?: string | null
  transport: string
  source?: string | null
  face?: string | null
  objects?: string[] | null
  outcome?: string | null
  runId?: string
  correlationId?: string
  object?: string | null
  argsHash?: string
  hash: string
  /** False: the entry is not what was written. */
  intact: boolean
}

export interface Proof {
  whole: boolean
  entries?: number
  head?: string
  brokenAt?: number
  what?: string
}

export const audit = (filter: { action?: string; principal?: string; end?: string }, cursor: string | null) =>
  ask<{ entries: Entry[]; nextCursor: string | null }>('/v1/audit', { query: { ...filter, cursor, limit: 200 } })

export const verifyAudit = () => ask<Proof>('/v1/audit/verify')
