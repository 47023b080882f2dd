// How long to wait before the next try: twice as long each time, up to a limit, and not all clients at the same moment.
const FIRST_MS = 500
const LIMIT_MS = 15_000

export function backoffMs(failures: number, random: () => number = Math.random): number {
  const full = Math.min(LIMIT_MS, FIRST_MS * 2 ** Math.min(failures, 10))
  return Math.round(full / 2 + (full / 2) * random())
}
