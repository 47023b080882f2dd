// How everything stands, on one page.
import { useQueries, useQuery } from '@tanstack/react-query'
import { Activity, CheckCircle2, Hand, ShieldCheck } from 'lucide-react'
import { lazy, Suspense, useMemo, type ReactNode } from 'react'
import type { ExecutionSummary } from '../../api/client'
import { approvals, executions, health, metrics, system, type Breaker } from '../../api/workflows'
import { Link } from '../../app/router'
import { useConnection } from '../../live/feed'
import { Empty, Figure, PageHead, Panel, Trouble, Waiting } from '../../ui/basics'
import { StateBadge } from '../../ui/state'
import { Ago, compact, span, Took, useClock } from '../../ui/time'
import { summarise, timeTold } from './figures'

const Charts = lazy(() => import('./charts'))
const NEWEST = 500
/** How many are shown in one list here. */
const SHOWN = 6
const UNDER_WAY: string[] = ['running', 'waiting', 'queued', 'paused', 'cancelling', 'compensating']
const UNSUCCESSFUL: string[] = ['failed', 'compensated']
/** The clock moves the figures in such steps; where they tell of less time, each second. */
const STEP_MS = 10_000
const WORDS: Record<number, string> = { 3_600_000: 'last hour', 600_000: 'last 10 minutes' }
/** How many parts the time is drawn in. */
const PARTS = 30

export default function Overview() {
  const recent = useQuery({
    queryKey: ['recent'],
    queryFn: () => executions({}, NEWEST),
    refetchInterval: 30_000,
  })
  const counts = useQuery({ queryKey: ['metrics'], queryFn: metrics, refetchInterval: 15_000 })
  const rows = recent.data?.executions ?? []
  // What runs for long, or failed a while ago, may be older than the newest: then it is asked for by its state.
  const older = useQueries({
    queries: [...UNDER_WAY, ...UNSUCCESSFUL].map((status) => ({
      queryKey: ['recent', status],
      queryFn: () => executions({ status }, SHOWN),
      enabled: rows.length >= NEWEST,
    })),
    combine: (found) => found.flatMap((one) => one.data?.executions ?? []),
  })
  if (recent.isPending) return <Waiting />
  if (recent.error && rows.length === 0) return <Trouble error={recent.error} again={() => void recent.refetch()} />
  const known = rows.length >= NEWEST ? older : rows
  const under = known.filter((row) => UNDER_WAY.includes(row.status))
  const failed = known.filter((row) => UNSUCCESSFUL.includes(row.status))
  const isEmpty = rows.length === 0
  return (
    <>
      <PageHead title="Overview" about={<Server />} />
      <div className="flex flex-col gap-3.5">
        <Hour rows={rows} counts={counts.data?.executions ?? {}} />
        {isEmpty && <First />}
        <Approvals />
        <div className="grid gap-3.5 lg:grid-cols-2">
          <Panel title="Under way" flush actions={<All to="/executions?status=running" />}>
            <Rows rows={under} none={<Empty icon={Activity} title="Nothing runs" />} />
          </Panel>
          <Panel title="Failed lately" flush actions={<All to="/executions?status=failed" />}>
            <Rows rows={failed} none={<Empty icon={CheckCircle2} title="Nothing failed" />} />
          </Panel>
        </div>
        <Engine />
      </div>
    </>
  )
}

function Server() {
  const found = useQuery({ queryKey: ['health'], queryFn: health, refetchInterval: 30_000 })
  const isAway = useConnection((connection) => connection.phase === 'away')
  if (!found.data) return 'What runs, what failed, and why.'
  return (
    <span className="figures flex flex-wrap items-center gap-2">
      <StateBadge state={isAway || !found.data.healthy ? 'failed' : 'healthy'} label={isAway ? 'away' : found.data.healthy ? 'healthy' : 'not healthy'} />
      <span>orchestr8 {found.data.version} · process {found.data.pid} · started <Ago at={found.data.startedAt} /></span>
    </span>
  )
}

function Hour({ rows, counts }: { rows: ExecutionSummary[]; counts: Record<string, number> }) {
  const clock = useClock()
  const step = timeTold(rows, NEWEST, clock, PARTS) < 10 * STEP_MS ? 1_000 : STEP_MS
  const now = Math.floor(clock / step) * step
  const spanMs = timeTold(rows, NEWEST, now + step, PARTS)
  const lately = WORDS[spanMs] ?? `last ${span(spanMs)}`
  const hour = useMemo(() => summarise(rows, now + step, spanMs, PARTS), [rows, now, step, spanMs])
  const failed = (counts['failed'] ?? 0) + (counts['compensated'] ?? 0)
  return (
    <>
      <Panel>
        <div className="grid grid-cols-2 gap-x-4 gap-y-3 sm:grid-cols-3 lg:grid-cols-6">
          <Figure label="Under way" value={compact(under(counts))} tone="text-busy" hint={`${compact(counts['queued'] ?? 0)} queued`} />
          <Figure label="Completed" value={compact(counts['completed'] ?? 0)} tone="text-good" hint="in all" />
          <Figure label="Failed" value={compact(failed)} tone={failed > 0 ? 'text-bad' : ''} hint="in all" />
          <Figure label="Throughput" value={`${hour.perMinute < 10 ? hour.perMinute.toFixed(1) : Math.round(hour.perMinute)}/min`} hint={lately} />
          <Figure label="Duration" value={hour.p50 === null ? '–' : span(hour.p50)} hint={hour.p95 === null ? lately : `95 %: ${span(hour.p95)}`} />
          <Figure label="Errors" value={hour.errorRate === null ? '–' : `${(hour.errorRate * 100).toFixed(1)} %`} hint="of those that ended" />
        </div>
      </Panel>
      {rows.length > 0 && (
        <Suspense fallback={<Panel><div className="h-52" /></Panel>}>
          <Charts buckets={hour.buckets} lately={lately} />
        </Suspense>
      )}
    </>
  )
}

const under = (counts: Record<string, number>): number =>
  ['running', 'waiting', 'paused', 'cancelling', 'compensating'].reduce((sum, state) => sum + (counts[state] ?? 0), 0)

const All = ({ to }: { to: string }) => <Link to={to} className="text-xs text-accent hover:underline">All of them</Link>

function Rows({ rows, none }: { rows: ExecutionSummary[]; none: ReactNode }) {
  if (rows.length === 0) return none
  return (
    <ul className="divide-y divide-line/60">
      {rows.slice(0, SHOWN).map((row) => (
        <li key={row.executionId}>
          <Link to={`/executions/${encodeURIComponent(row.executionId)}`} className="flex items-center gap-3 px-3.5 py-2 hover:bg-raised">
            <div className="min-w-0 flex-1">
              <p className="truncate font-medium">{row.workflow.name}</p>
              {row.error && (
                <p className="truncate text-xs text-bad">
                  {row.error.stepId ? `${row.error.stepId}: ` : ''}{row.error.message}
                </p>
              )}
            </div>
            <StateBadge state={row.status} />
            <span className="w-20 text-right text-xs text-soft max-sm:hidden"><Took ms={row.duration} from={row.startedAt} /></span>
            <span className="w-20 text-right text-xs text-faint"><Ago at={row.createdAt} /></span>
          </Link>
        </li>
      ))}
    </ul>
  )
}

function Approvals() {
  const open = useQuery({ queryKey: ['approvals'], queryFn: () => approvals() })
  const list = open.data?.approvals ?? []
  if (list.length === 0) return null
  return (
    <Panel title={<span className="flex items-center gap-1.5 text-wait"><Hand size={15} aria-hidden /> Waiting for a person</span>} flush>
      <ul className="divide-y divide-line/60">
        {list.slice(0, 5).map((one) => (
          <li key={one.token}>
            <Link to={`/executions/${encodeURIComponent(one.executionId)}?step=${encodeURIComponent(one.stepId)}`} className="flex items-center gap-3 px-3.5 py-2 hover:bg-raised">
              <span className="min-w-0 flex-1 truncate">{one.message ?? one.stepId}</span>
              {one.expiresAt && <span className="text-xs text-soft">ends <Ago at={one.expiresAt} /></span>}
              <span className="text-accent">Decide</span>
            </Link>
          </li>
        ))}
      </ul>
    </Panel>
  )
}

function Engine() {
  const found = useQuery({ queryKey: ['system'], queryFn: system, refetchInterval: 10_000 })
  const queue = found.data?.queue
  const breakers: Breaker[] = found.data?.breakers ?? []
  return (
    <div className="grid gap-3.5 lg:grid-cols-2">
      <Panel title="Queue">
        {queue && (
          <>
            <div className="mb-3 h-2 overflow-hidden rounded-full bg-idle-wash">
              <div className="h-full rounded-full bg-busy" style={{ width: `${Math.min(100, (queue.runningSteps / Math.max(1, queue.maxRunningSteps)) * 100)}%` }} />
            </div>
            <div className="grid grid-cols-3 gap-3">
              <Figure label="Steps that run" value={`${queue.runningSteps} of ${queue.maxRunningSteps}`} />
              <Figure label="Steps that wait" value={queue.waitingSteps} hint={`${queue.waitingExecutions} executions`} />
              <Figure label="Actions in flight" value={found.data?.inFlight ?? 0} hint={`${found.data?.runningActions ?? 0} run`} />
            </div>
          </>
        )}
      </Panel>
      <Panel title="Circuit breakers" flush>
        {breakers.length === 0 ? (
          <Empty icon={ShieldCheck} title="None has tripped" />
        ) : (
          <ul className="divide-y divide-line/60">
            {breakers.map((one) => (
              <li key={one.key} className="flex items-center justify-between gap-3 px-3.5 py-2">
                <code className="truncate font-mono text-xs">{one.key}</code>
                <StateBadge state={one.state} />
              </li>
            ))}
          </ul>
        )}
      </Panel>
    </div>
  )
}

const COMMANDS = ['orchestr8 run examples/hello-world.json', 'orchestr8 demo', 'orchestr8 chat hello']

const First = () => (
  <Panel title="Begin here">
    <p className="mb-2 text-soft">Nothing has run yet. Any of these shows up on this page at once:</p>
    <ul className="flex flex-col gap-1.5">
      {COMMANDS.map((command) => (
        <li key={command}><code className="rounded bg-raised px-2 py-1 font-mono text-xs">{command}</code></li>
      ))}
    </ul>
  </Panel>
)
