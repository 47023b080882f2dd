// What the journal tells of one step: every attempt, when it began, how it ended.
import type { JournalEntry } from '../../api/client'

export interface Attempt {
  number: number
  beganMs: number
  endedMs: number | null
  outcome: string
  code?: string
  /** Which item of a list it was for. */
  item?: number
  /** It undid what the step had done. */
  isUndo?: true
}

interface Data {
  index?: number
  attempt?: number
  compensation?: boolean
  code?: string
  error?: { code?: string }
}

export function attemptsOf(entries: JournalEntry[], step: string): Attempt[] {
  const found: Attempt[] = []
  for (const entry of entries) {
    if (entry.stepId !== step) continue
    const data = (entry.data ?? {}) as Data
    const isUndo = data.compensation === true
    if (entry.type === 'step-start' || entry.type === 'step-compensating') {
      found.push({
        number: found.length + 1,
        beganMs: entry.timestamp,
        endedMs: null,
        outcome: 'running',
        ...(data.index === undefined ? {} : { item: data.index }),
        ...(isUndo ? { isUndo } : {}),
      })
      continue
    }
    const last = found.find((one) => one.endedMs === null && one.item === data.index && (one.isUndo ?? false) === isUndo)
    if (!last) continue
    const outcome = OUTCOMES[entry.type]
    if (outcome === undefined) continue
    last.endedMs = entry.timestamp
    last.outcome = outcome
    // The word that the API has for it, which the rest of the page shows too.
    const code = data.error?.code ?? data.code
    if (code !== undefined) last.code = code
  }
  return found
}

const OUTCOMES: Record<string, string> = {
  'step-complete': 'completed',
  'step-failed': 'failed',
  timeout: 'failed',
  'step-retry': 'retrying',
  'step-retrying': 'retrying',
  'step-cancelled': 'cancelled',
  'step-skipped': 'skipped',
  'step-compensated': 'compensated',
  'step-compensation-failed': 'failed',
}
