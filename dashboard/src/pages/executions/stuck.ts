// Why an execution does not go on, in words: what it waits for, and until when.
import type { Execution } from '../../api/client'

export interface Stuck {
  step?: string
  what: string
  /** The moment at which it goes on, or gives up. */
  at?: string
  hue: 'wait' | 'bad' | 'busy'
  isRetry?: true
  /** What a person can do about it here. */
  cure?: 'approve' | 'resolve' | 'resume' | 'retry'
}

const UNSUCCESSFUL = new Set(['failed', 'compensating', 'compensated'])

export function stuckAt(execution: Execution): Stuck[] {
  if (execution.status === 'completed' || (execution.status === 'cancelled' && !execution.compensation)) return []
  const found: Stuck[] = []
  if (execution.status === 'queued') found.push({ what: 'It waits for its turn: as many executions run as may.', hue: 'wait' })
  if (execution.status === 'paused') {
    found.push({ what: `It is paused${execution.pauseReason ? `: ${execution.pauseReason}` : ''}. Nothing new begins until somebody resumes it.`, hue: 'wait', cure: 'resume' })
  }
  const rollback = execution.compensation
  if (rollback && execution.status === 'compensating') {
    found.push({ what: `What it did is being undone: ${rollback.undone} undone, ${rollback.remaining} to do.`, hue: 'busy' })
  }
  for (const left of rollback?.notUndone ?? []) {
    const item = left.index === undefined ? '' : ` (item ${left.index})`
    found.push({ step: left.stepId, what: `Not undone${item}: ${left.error?.message ?? 'the rollback was stopped'}`, hue: 'bad' })
  }
  for (const id of execution.stepOrder) {
    const step = execution.steps[id]
    if (!step) continue
    if (step.status === 'retrying') {
      const why = step.error ? ` with ${step.error.code}: ${step.error.message}` : ''
      found.push({ step: id, what: `Attempt ${step.attempts} failed${why}. It is tried again.`, hue: 'wait', isRetry: true, ...(step.nextRetryAt ? { at: step.nextRetryAt } : {}) })
    } else if (step.status === 'waiting') {
      found.push({ step: id, ...waitingFor(step.waitingFor ?? {}) })
    } else if (step.status === 'unknown') {
      found.push({ step: id, what: 'It was under way when the server stopped, and nobody knows whether it was done. Say what became of it.', hue: 'bad', cure: 'resolve' })
    } else if (step.status === 'failed' && UNSUCCESSFUL.has(execution.status)) {
      const error = step.error
      found.push({
        step: id,
        what: error ? `${error.message} (${error.code}, ${error.isRetryable ? 'trying again may help' : 'trying the same again does not help'})` : 'It failed.',
        hue: 'bad',
        ...(execution.status === 'compensating' ? {} : { cure: 'retry' as const }),
      })
    }
  }
  return found
}

function waitingFor(waits: Record<string, unknown>): Omit<Stuck, 'step'> {
  const until = typeof waits['until'] === 'string' ? { at: waits['until'] } : {}
  if (waits['approval'] !== undefined) return { what: 'It waits for a person to approve or reject.', hue: 'wait', cure: 'approve', ...until }
  const event = waits['event']
  if (event !== undefined && event !== null) {
    const name = typeof event === 'string' ? event : ((event as { name?: string } | null)?.name ?? '')
    return { what: `It waits for the event ${name}.`, hue: 'wait', ...until }
  }
  if (waits['execution'] !== undefined || waits['childExecutionId'] !== undefined) return { what: 'It waits for the execution it started.', hue: 'busy', ...until }
  if (waits['queue'] !== undefined || waits['worker'] !== undefined) return { what: 'It waits for a worker to take it.', hue: 'wait', ...until }
  return { what: 'at' in until ? 'It waits for its time.' : 'It waits.', hue: 'wait', ...until }
}
