// What the newest executions say about the last hour: how many, how fast, how often wrong.
import type { ExecutionSummary } from '../../api/client'

export interface Bucket {
  at: number
  completed: number
  failed: number
  cancelled: number
  p50: number | null
  p95: number | null
  /** The part of those that ended by themselves which failed. */
  errorRate: number | null
}

export interface Summary {
  buckets: Bucket[]
  ended: number
  perMinute: number
  errorRate: number | null
  p50: number | null
  p95: number | null
}

const HOUR_MS = 3_600_000
/** A server that is young has its few minutes drawn large. */
const YOUNG_MS = 600_000
const LEAST_MS = 1_000

/**
 * The time that the newest executions tell all of. Where there are more than were asked for, it begins with the oldest that was given, and a part
 * earlier, for the first part is seldom whole.
 */
export function timeTold(rows: ExecutionSummary[], limit: number, now: number, parts: number): number {
  const oldest = rows.at(-1)
  const told = oldest === undefined ? HOUR_MS : now - Date.parse(oldest.createdAt)
  if (rows.length >= limit) return Math.min(HOUR_MS, Math.max(LEAST_MS, Math.ceil((told * parts) / (parts - 1))))
  return told < YOUNG_MS ? YOUNG_MS : HOUR_MS
}

export function quantile(sorted: number[], part: number): number | null {
  if (sorted.length === 0) return null
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(part * sorted.length) - 1))] ?? null
}

const share = (failed: number, completed: number): number | null => (completed + failed === 0 ? null : failed / (completed + failed))

/** Counts by the moment of the end, in equal parts of the time that is looked at. */
export function summarise(rows: ExecutionSummary[], now: number, spanMs: number, parts: number): Summary {
  const width = spanMs / parts
  const begin = Math.floor((now - spanMs) / width + 1) * width
  const took: number[][] = Array.from({ length: parts }, () => [])
  const buckets = took.map((_, index): Bucket => ({ at: begin + index * width, completed: 0, failed: 0, cancelled: 0, p50: null, p95: null, errorRate: null }))
  for (const row of rows) {
    if (!row.completedAt) continue
    const index = Math.floor((Date.parse(row.completedAt) - begin) / width)
    const bucket = buckets[index]
    if (!bucket) continue
    // One that was rolled back without an error was cancelled.
    if (row.status === 'compensated') bucket[row.error ? 'failed' : 'cancelled'] += 1
    if (row.status === 'completed' || row.status === 'failed' || row.status === 'cancelled') bucket[row.status] += 1
    if (typeof row.duration === 'number') took[index]?.push(row.duration)
  }
  const ascending = (one: number, other: number) => one - other
  for (const [index, bucket] of buckets.entries()) {
    const sorted = (took[index] ?? []).sort(ascending)
    bucket.p50 = quantile(sorted, 0.5)
    bucket.p95 = quantile(sorted, 0.95)
    bucket.errorRate = share(bucket.failed, bucket.completed)
  }
  const all = took.flat().sort(ascending)
  const sum = (name: 'completed' | 'failed' | 'cancelled') => buckets.reduce((total, bucket) => total + bucket[name], 0)
  const [completed, failed] = [sum('completed'), sum('failed')]
  const ended = completed + failed + sum('cancelled')
  return {
    buckets,
    ended,
    perMinute: ended / (spanMs / 60_000),
    errorRate: share(failed, completed),
    p50: quantile(all, 0.5),
    p95: quantile(all, 0.95),
  }
}
