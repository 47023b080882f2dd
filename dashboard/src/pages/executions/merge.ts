// A list of executions, newest first, that stays true while more of them come.
import type { ExecutionSummary } from '../../api/client'
import type { LiveEvent } from '../../live/feed'

const STATES: Record<string, ExecutionSummary['status']> = {
  'workflow.completed': 'completed',
  'workflow.failed': 'failed',
  'workflow.cancelled': 'cancelled',
  'workflow.compensating': 'compensating',
  'workflow.compensated': 'compensated',
}

const FINAL = new Set<ExecutionSummary['status']>(['completed', 'failed', 'cancelled', 'compensated'])

export interface Merged {
  rows: ExecutionSummary[]
  /** Nothing joins what was read to what is shown: only what was read holds, and its end is the end of the list. */
  isCut: boolean
}

/** The last row that was both shown and read: everything above it has been read, nothing below it. */
function jointOf(rows: ExecutionSummary[], read: ExecutionSummary[]): number {
  const known = new Set(read.map((row) => row.executionId))
  return rows.findLastIndex((row) => known.has(row.executionId))
}

export const isJoined = (rows: ExecutionSummary[], read: ExecutionSummary[]): boolean => jointOf(rows, read) >= 0

/** Puts what was read from the newest on in place of the same part of the list; what is shown of older ones stays below it. */
export function withNewest(rows: ExecutionSummary[], read: ExecutionSummary[], isWhole: boolean): Merged {
  const joint = jointOf(rows, read)
  if (isWhole || joint < 0) return { rows: read, isCut: true }
  return { rows: [...read, ...rows.slice(joint + 1)], isCut: false }
}

/** Whether something below what was read may have moved: it had not ended when it was last seen. */
export const isOpenBelow = (rows: ExecutionSummary[], read: ExecutionSummary[]): boolean =>
  rows.slice(jointOf(rows, read) + 1).some((row) => !FINAL.has(row.status))

/** Adds an older page at the end; a row that is there already is not shown twice. */
export function withOlder(rows: ExecutionSummary[], page: ExecutionSummary[]): ExecutionSummary[] {
  const known = new Set(rows.map((row) => row.executionId))
  return [...rows, ...page.filter((row) => !known.has(row.executionId))]
}

/** What the events say of rows that are shown. The same list if they say nothing. */
export function withEvents(rows: ExecutionSummary[], events: LiveEvent[], status?: string): ExecutionSummary[] {
  const moved = new Map<string, LiveEvent>()
  for (const event of events) {
    if (event.executionId !== undefined && STATES[event.type] !== undefined) moved.set(event.executionId, event)
  }
  if (moved.size === 0) return rows
  let isChanged = false
  const changed = rows.map((row) => {
    const event = moved.get(row.executionId)
    const state = event && STATES[event.type]
    if (!event || !state || row.status === state) return row
    isChanged = true
    if (!FINAL.has(state)) return { ...row, status: state, completedAt: null, duration: null }
    const duration = (event.data as { duration?: number } | undefined)?.duration ?? null
    return { ...row, status: state, completedAt: event.timestamp, duration }
  })
  if (!isChanged) return rows
  return status ? changed.filter((row) => row.status === status) : changed
}
