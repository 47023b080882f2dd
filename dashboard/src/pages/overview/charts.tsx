// The last hour, drawn.
import { Area, AreaChart, Bar, BarChart, CartesianGrid, ResponsiveContainer, Tooltip, XAxis, YAxis } from 'recharts'
import { Panel } from '../../ui/basics'
import { span } from '../../ui/time'
import type { Bucket } from './figures'

const AXIS = { fontSize: 11, fill: 'var(--faint)' }
const minute = (at: number) => new Date(at).toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit', hour12: false })
const TIP = {
  contentStyle: { background: 'var(--panel)', border: '1px solid var(--line)', borderRadius: 8, fontSize: 12, color: 'var(--ink)' },
  labelFormatter: (at: unknown) => minute(Number(at)),
  cursor: { fill: 'var(--raised)' },
  isAnimationActive: false,
}

export default function Charts({ buckets, lately }: { buckets: Bucket[]; lately: string }) {
  const axis = <XAxis dataKey="at" tickFormatter={minute} tick={AXIS} tickLine={false} axisLine={false} minTickGap={48} />
  return (
    <div className="grid gap-3.5 lg:grid-cols-2">
      <Panel title={`Ended in the ${lately}`}>
        <div className="h-44" role="img" aria-label={`Executions that ended in the ${lately}, by the moment of their end`}>
          <ResponsiveContainer width="100%" height="100%">
            <BarChart data={buckets} margin={{ top: 4, right: 4, bottom: 0, left: -22 }} barCategoryGap={1}>
              <CartesianGrid vertical={false} stroke="var(--line)" />
              {axis}
              <YAxis allowDecimals={false} tick={AXIS} tickLine={false} axisLine={false} />
              <Tooltip {...TIP} />
              <Bar dataKey="completed" stackId="all" fill="var(--good)" isAnimationActive={false} />
              <Bar dataKey="failed" stackId="all" fill="var(--bad)" isAnimationActive={false} />
              <Bar dataKey="cancelled" stackId="all" fill="var(--idle)" isAnimationActive={false} />
            </BarChart>
          </ResponsiveContainer>
        </div>
      </Panel>
      <Panel title="How long they took">
        <div className="h-44" role="img" aria-label={`Duration of executions in the ${lately}: median and 95th percentile`}>
          <ResponsiveContainer width="100%" height="100%">
            <AreaChart data={buckets} margin={{ top: 4, right: 4, bottom: 0, left: -6 }}>
              <CartesianGrid vertical={false} stroke="var(--line)" />
              {axis}
              <YAxis tick={AXIS} tickLine={false} axisLine={false} tickFormatter={(ms) => span(Number(ms))} />
              <Tooltip {...TIP} formatter={(ms) => span(Number(ms))} />
              <Area dataKey="p95" name="95 %" connectNulls stroke="var(--wait)" fill="var(--wait-wash)" isAnimationActive={false} dot={{ r: 1.5 }} />
              <Area dataKey="p50" name="half" connectNulls stroke="var(--busy)" fill="var(--busy-wash)" isAnimationActive={false} dot={{ r: 1.5 }} />
            </AreaChart>
          </ResponsiveContainer>
        </div>
      </Panel>
    </div>
  )
}
