// A list of executions, newest first, that stays true while more of them come.
import type { ExecutionSummary } from '../../api/client'
import type { LiveEvent } from '../../live/feed'

const ENDS: Record<string, ExecutionSummary['status']> = {
  'workflow.completed': 'completed',
  'workflow.failed': 'failed',
  'workflow.cancelled': 'cancelled',
}

/** Puts the newest page on top of what is there. Without a row in common something lies between them: then only the page holds. */
export function withNewest(rows: ExecutionSummary[], page: ExecutionSummary[], isWhole: boolean): ExecutionSummary[] {
  const fresh = new Map(page.map((row) => [row.executionId, row]))
  const known = new Set(rows.map((row) => row.executionId))
  const isJoined = isWhole || page.some((row) => known.has(row.executionId))
  if (!isJoined && rows.length > 0) return page
  const added = page.filter((row) => !known.has(row.executionId))
  return [...added, ...rows.map((row) => fresh.get(row.executionId) ?? row)]
}

/** Adds an older page at the end; a row that is there already is not shown twice. */
export function withOlder(rows: ExecutionSummary[], page: ExecutionSummary[]): ExecutionSummary[] {
  const known = new Set(rows.map((row) => row.executionId))
  return [...rows, ...page.filter((row) => !known.has(row.executionId))]
}

/** What the events say of rows that are shown. The same list if they say nothing. */
export function withEvents(rows: ExecutionSummary[], events: LiveEvent[], status?: string): ExecutionSummary[] {
  const ended = new Map<string, LiveEvent>()
  for (const event of events) {
    if (event.executionId !== undefined && ENDS[event.type] !== undefined) ended.set(event.executionId, event)
  }
  if (ended.size === 0) return rows
  let isChanged = false
  const changed = rows.map((row) => {
    const event = ended.get(row.executionId)
    const state = event && ENDS[event.type]
    if (!event || !state || row.status === state) return row
    isChanged = true
    const duration = (event.data as { duration?: number } | undefined)?.duration ?? null
    return { ...row, status: state, completedAt: event.timestamp, duration }
  })
  if (!isChanged) return rows
  return status ? changed.filter((row) => row.status === status) : changed
}
