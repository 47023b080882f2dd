// The last hour, drawn.
import { memo, useEffect, useState, type ReactElement } from 'react'
import { Area, AreaChart, Bar, BarChart, CartesianGrid, ResponsiveContainer, Tooltip, XAxis, YAxis } from 'recharts'
import { Panel } from '../../ui/basics'
import { clockTime, span } from '../../ui/time'
import type { Bucket } from './figures'

const AXIS = { fontSize: 11, fill: 'var(--faint)' }
const TURN_MS = 60
const minute = (at: number) => new Date(at).toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit', hour12: false })
/** Parts of less than this are told apart by seconds. */
const FINE_MS = 10_000
const percent = (part: unknown) => `${Math.round(Number(part) * 100)} %`
const TIP = {
  contentStyle: { background: 'var(--panel)', border: '1px solid var(--line)', borderRadius: 8, fontSize: 12, color: 'var(--ink)' },
  labelFormatter: (at: unknown) => clockTime(Number(at)),
  cursor: { fill: 'var(--raised)' },
  isAnimationActive: false,
}
const GRID = <CartesianGrid vertical={false} stroke="var(--line)" />
const timeOf = ([first, second]: Bucket[]) => (
  <XAxis dataKey="at" tickFormatter={first && second && second.at - first.at < FINE_MS ? clockTime : minute} tick={AXIS} tickLine={false} axisLine={false} minTickGap={48} />
)

/** Drawn when there is something new, not each time the clock moves; and one after the other, so that nobody waits for all. */
export default memo(function Charts({ buckets, lately }: { buckets: Bucket[]; lately: string }) {
  return (
    <div className="grid gap-3.5 md:grid-cols-2 xl:grid-cols-3">
      <Ended buckets={useTurn(buckets, 0)} lately={lately} />
      <Took buckets={useTurn(buckets, 1)} lately={lately} />
      <Failed buckets={useTurn(buckets, 2)} lately={lately} />
    </div>
  )
})

function useTurn<T>(value: T, turn: number): T {
  const [shown, setShown] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setShown(value), turn * TURN_MS)
    return () => clearTimeout(timer)
  }, [value, turn])
  return shown
}

interface Drawn {
  buckets: Bucket[]
  lately: string
}

const Chart = ({ title, about, className, children }: { title: string; about: string; className?: string; children: ReactElement }) => (
  <Panel title={title} {...(className === undefined ? {} : { className })}>
    <div className="h-44" role="img" aria-label={about}>
      <ResponsiveContainer width="100%" height="100%">{children}</ResponsiveContainer>
    </div>
  </Panel>
)

const Ended = memo(({ buckets, lately }: Drawn) => (
  <Chart title={`Ended in the ${lately}`} about={`Executions that ended in the ${lately}, by the moment of their end`}>
    <BarChart data={buckets} margin={{ top: 4, right: 4, bottom: 0, left: -22 }} barCategoryGap={1}>
      {GRID}
      {timeOf(buckets)}
      <YAxis allowDecimals={false} tick={AXIS} tickLine={false} axisLine={false} />
      <Tooltip {...TIP} />
      <Bar dataKey="completed" stackId="all" fill="var(--good)" isAnimationActive={false} />
      <Bar dataKey="failed" stackId="all" fill="var(--bad)" isAnimationActive={false} />
      <Bar dataKey="cancelled" stackId="all" fill="var(--idle)" isAnimationActive={false} />
    </BarChart>
  </Chart>
))

const Took = memo(({ buckets, lately }: Drawn) => (
  <Chart title="How long they took" about={`Duration of executions in the ${lately}: median and 95th percentile`}>
    <AreaChart data={buckets} margin={{ top: 4, right: 4, bottom: 0, left: -6 }}>
      {GRID}
      {timeOf(buckets)}
      <YAxis tick={AXIS} tickLine={false} axisLine={false} tickFormatter={(ms) => span(Number(ms))} />
      <Tooltip {...TIP} formatter={(ms) => span(Number(ms))} />
      <Area dataKey="p95" name="95 %" connectNulls stroke="var(--wait)" fill="var(--wait-wash)" isAnimationActive={false} dot={{ r: 1.5 }} />
      <Area dataKey="p50" name="half" connectNulls stroke="var(--busy)" fill="var(--busy-wash)" isAnimationActive={false} dot={{ r: 1.5 }} />
    </AreaChart>
  </Chart>
))

const Failed = memo(({ buckets, lately }: Drawn) => (
  <Chart title="How many failed" about={`Share of executions that failed in the ${lately}, of those that ended`} className="md:max-xl:col-span-2">
    <AreaChart data={buckets} margin={{ top: 4, right: 4, bottom: 0, left: -14 }}>
      {GRID}
      {timeOf(buckets)}
      <YAxis domain={[0, 1]} ticks={[0, 0.5, 1]} tick={AXIS} tickLine={false} axisLine={false} tickFormatter={percent} />
      <Tooltip {...TIP} formatter={(part) => percent(part)} />
      <Area dataKey="errorRate" name="failed" connectNulls stroke="var(--bad)" fill="var(--bad-wash)" isAnimationActive={false} dot={{ r: 1.5 }} />
    </AreaChart>
  </Chart>
))
