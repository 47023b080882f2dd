// Times as people say them. One clock moves all of them.
import { create } from 'zustand'

const useNow = create(() => ({ now: Date.now() }))
setInterval(() => useNow.setState({ now: Date.now() }), 1_000)

export const useClock = (): number => useNow((clock) => clock.now)

const UNITS: [number, string][] = [[86_400_000, 'd'], [3_600_000, 'h'], [60_000, 'min'], [1_000, 's']]

export function span(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < 10_000) return `${(ms / 1_000).toFixed(1)} s`
  for (const [index, [size, unit]] of UNITS.entries()) {
    if (ms < size) continue
    const next = UNITS[index + 1]
    const whole = Math.floor(ms / size)
    const rest = next ? Math.floor((ms % size) / next[0]) : 0
    return next && rest > 0 && whole < 10 ? `${whole} ${unit} ${rest} ${next[1]}` : `${whole} ${unit}`
  }
  return `${Math.round(ms)} ms`
}

export function ago(at: number, now: number): string {
  const past = now - at
  if (Math.abs(past) < 2_000) return 'now'
  for (const [size, unit] of UNITS) {
    if (Math.abs(past) >= size) {
      const count = Math.floor(Math.abs(past) / size)
      return past > 0 ? `${count} ${unit} ago` : `in ${count} ${unit}`
    }
  }
  return 'now'
}

export const clockTime = (at: string | number): string =>
  new Date(at).toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false })

export const wholeTime = (at: string | number): string =>
  new Date(at).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' })

export function Ago({ at }: { at: string | number | null | undefined }) {
  const now = useClock()
  if (at === null || at === undefined) return <span className="text-faint">–</span>
  const date = new Date(at)
  return <time dateTime={date.toISOString()} title={wholeTime(at)} className="figures whitespace-nowrap">{ago(date.getTime(), now)}</time>
}

/** How long something took, or takes until now. */
export function Took({ from, to, ms }: { from?: string | null | undefined; to?: string | null | undefined; ms?: number | null | undefined }) {
  const now = useClock()
  if (typeof ms === 'number') return <span className="figures whitespace-nowrap">{span(ms)}</span>
  if (!from) return <span className="text-faint">–</span>
  const end = to ? Date.parse(to) : Math.max(now, Date.parse(from))
  return <span className="figures whitespace-nowrap">{span(end - Date.parse(from))}</span>
}

export const compact = (value: number): string =>
  value < 10_000 ? value.toLocaleString('en') : new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 }).format(value)
