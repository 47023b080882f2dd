// One execution: its graph, its times, its journal, any moment of it, and what one can do with it.
import { useQuery } from '@tanstack/react-query'
import { AlertTriangle, ArrowLeft, History, Hourglass } from 'lucide-react'
import { lazy, Suspense, useDeferredValue, useState, type ReactNode } from 'react'
import type { Approval, Execution } from '../../api/client'
import { approvals, definitionOf, execution as ask } from '../../api/workflows'
import { Link, useQueryValue } from '../../app/router'
import { Button, Copy, Trouble, Waiting } from '../../ui/basics'
import { Code } from '../../ui/code'
import { StateBadge } from '../../ui/state'
import { Tabs } from '../../ui/tabs'
import { Ago, compact, span, Took } from '../../ui/time'
import { Acts, Decide, Fork, Resolve } from './acts'
import { JournalView } from './journal'
import { StepPanel } from './step'
import { stuckAt, type Stuck } from './stuck'
import { useJournal, type Journal } from './use-journal'
import { Waterfall } from './waterfall'

const Graph = lazy(() => import('../../graph/graph'))

export default function One({ id }: { id: string }) {
  const [tab, setTab] = useQueryValue('tab')
  const [step, setStep] = useQueryValue('step')
  const [moment, setMoment] = useState<number | null>(null)
  const [isForking, setForking] = useState(false)
  const now = useQuery({ queryKey: ['execution', id], queryFn: () => ask(id) })
  const written = useQuery({ queryKey: ['definition', id], queryFn: () => definitionOf(id), staleTime: Infinity })
  const open = useQuery({ queryKey: ['approvals', id], queryFn: () => approvals(id), enabled: now.data?.status === 'running' || now.data?.status === 'waiting' })
  const at = useDeferredValue(moment)
  const then = useQuery({
    queryKey: ['moment', id, at],
    queryFn: () => ask(id, at ?? 0),
    enabled: at !== null,
    staleTime: Infinity,
    placeholderData: (before) => before,
  })
  const journal = useJournal(id)
  if (now.isPending) return <Waiting />
  if (!now.data) return <Trouble error={now.error} again={() => void now.refetch()} />
  const shown = moment === null ? now.data : (then.data ?? now.data)
  const definition = written.data?.workflow
  const chosen = step || undefined
  const entries = moment === null ? journal.entries : journal.entries.filter((entry) => entry.sequence <= moment)
  const stateOf = (name: string) => stateInGraph(shown, name)
  return (
    <>
      <Head execution={now.data} acts={<Acts execution={now.data} askFork={() => setForking(true)} />} />
      {moment === null && <StuckHere stuck={stuckAt(now.data)} id={id} approvals={open.data?.approvals ?? []} choose={setStep} />}
      <Moments last={now.data.lastSequence} moment={moment} set={setMoment} journal={journal} />
      <Tabs
        label="Views of the execution"
        at={tab || 'graph'}
        go={(next) => setTab(next === 'graph' ? '' : next)}
        tabs={[
          { id: 'graph', label: 'Graph' },
          { id: 'waterfall', label: 'Waterfall' },
          { id: 'journal', label: 'Journal', count: journal.summary?.totalEntries },
          { id: 'data', label: 'Data' },
        ]}
      >
        {tab === 'journal' ? (
          <JournalView journal={journal} moment={moment} goTo={setMoment} />
        ) : tab === 'data' ? (
          <Data execution={shown} />
        ) : (
          <div className={`grid min-h-0 gap-3.5 ${chosen ? 'lg:grid-cols-[1fr_22rem]' : ''}`}>
            {tab === 'waterfall' ? (
              <Waterfall execution={shown} entries={entries} chosen={chosen} choose={setStep} />
            ) : (
              <div className="h-[28rem] min-w-0 rounded-lg border border-line bg-panel lg:sticky lg:top-0 lg:h-[max(28rem,calc(100dvh-16rem))]">
                <Suspense fallback={<Waiting what="Drawing" />}>
                  {definition && (
                    <Graph definition={definition} stateOf={stateOf} noteOf={(name) => note(shown, name)} chosen={chosen} choose={setStep} />
                  )}
                </Suspense>
              </div>
            )}
            {chosen && (
              <StepPanel
                id={chosen}
                execution={shown}
                definition={definition}
                entries={entries}
                actions={<Button tone="quiet" onClick={() => setStep('')}>Close</Button>}
              />
            )}
          </div>
        )}
      </Tabs>
      {isForking && definition && (
        <Fork execution={now.data} definition={definition} step={chosen ?? now.data.stepOrder[0] ?? ''} close={() => setForking(false)} />
      )}
    </>
  )
}

/** A step that is or was undone is shown so, whatever it came to before. */
function stateInGraph(execution: Execution, name: string): string {
  const step = execution.steps[name]
  if (step?.compensating) return 'compensating'
  if (step?.compensated) return 'compensated'
  return step?.status ?? 'pending'
}

function note(execution: Execution, name: string): string | undefined {
  const step = execution.steps[name]
  if (!step || step.status === 'pending') return undefined
  const took = step.startTime && step.endTime ? ` · ${span(Date.parse(step.endTime) - Date.parse(step.startTime))}` : ''
  const undo = step.compensating ? ' · is being undone' : step.compensated ? ' · undone' : step.compensated === false ? ' · not undone' : ''
  return `${step.status}${undo}${took}${step.attempts > 1 ? ` · ${step.attempts} attempts` : ''}`
}

function Head({ execution, acts }: { execution: Execution; acts: ReactNode }) {
  const { workflow, usage, executionId } = execution
  const spent = (usage ?? {}) as { tokens?: number; cost?: number }
  return (
    <header className="mb-3 flex flex-wrap items-start justify-between gap-x-4 gap-y-2">
      <div className="min-w-0">
        <div className="flex flex-wrap items-center gap-2">
          <Link to="/executions" aria-label="Back to all executions" className="rounded p-1 text-soft hover:bg-raised"><ArrowLeft size={16} aria-hidden /></Link>
          <h1 className="text-lg leading-7">{workflow.name}</h1>
          <StateBadge state={execution.status} />
        </div>
        <div className="figures mt-0.5 flex flex-wrap items-center gap-x-4 gap-y-0.5 pl-8 text-xs text-soft">
          <span className="flex items-center gap-0.5"><code className="font-mono">{executionId}</code><Copy text={executionId} label="Copy the id" /></span>
          <Link to={`/workflows/${encodeURIComponent(workflow.id)}`} className="hover:text-accent">{workflow.id} {workflow.version}</Link>
          <span>began <Ago at={execution.startedAt ?? execution.createdAt} /></span>
          <span>took <Took ms={execution.duration} from={execution.startedAt} /></span>
          {(spent.tokens ?? 0) > 0 && <span>{compact(spent.tokens ?? 0)} tokens</span>}
          {(spent.cost ?? 0) > 0 && <span>${(spent.cost ?? 0).toFixed(4)}</span>}
          {execution.parentExecutionId && <Kin id={execution.parentExecutionId}>started by</Kin>}
          {execution.forkedFrom && <Kin id={execution.forkedFrom}>forked from</Kin>}
          {Object.entries(execution.tags ?? {}).map(([key, value]) => (
            <Link key={key} to={`/executions?q=${encodeURIComponent(`${key}=${value}`)}`} className="rounded bg-raised px-1.5 font-mono hover:text-accent">{key}={value}</Link>
          ))}
        </div>
      </div>
      <div className="flex flex-wrap items-center gap-1.5">{acts}</div>
    </header>
  )
}

const Kin = ({ id, children }: { id: string; children: ReactNode }) => (
  <span>{children} <Link to={`/executions/${encodeURIComponent(id)}`} className="text-accent underline">another execution</Link></span>
)

function StuckHere({ stuck, id, approvals, choose }: { stuck: Stuck[]; id: string; approvals: Approval[]; choose: (step: string) => void }) {
  if (stuck.length === 0) return null
  return (
    <section aria-label="Stuck here" className="mb-3 flex flex-col gap-2">
      {stuck.slice(0, 4).map((one) => {
        const Icon = one.hue === 'bad' ? AlertTriangle : Hourglass
        const approval = one.cure === 'approve' ? approvals.find((open) => open.stepId === one.step) : undefined
        return (
          <div key={`${one.step ?? ''}${one.what}`} className="flex gap-3 rounded-lg border border-line bg-panel px-3.5 py-2.5">
            <Icon size={17} aria-hidden className={`mt-0.5 shrink-0 ${one.hue === 'bad' ? 'text-bad' : 'text-wait'}`} />
            <div className="min-w-0 flex-1">
              <p className="break-words">
                {one.step && <button type="button" onClick={() => choose(one.step ?? '')} className="font-semibold hover:text-accent">{one.step}</button>}
                {one.step && ': '}{one.what}
                {one.at && <span className="text-soft"> {one.isRetry ? 'The next try is' : 'The wait ends'} <Ago at={one.at} />.</span>}
              </p>
              {approval && <div className="mt-2.5 max-w-md"><Decide key={approval.token} approval={approval} /></div>}
              {one.cure === 'resolve' && one.step && <div className="mt-2"><Resolve id={id} step={one.step} /></div>}
            </div>
          </div>
        )
      })}
    </section>
  )
}

function Moments({ last, moment, set, journal }: { last: number; moment: number | null; set: (moment: number | null) => void; journal: Journal }) {
  if (last < 2) return null
  const at = moment ?? last
  const entry = journal.entries.find((one) => one.sequence === at)
  const words = moment === null ? `now, ${last.toLocaleString('en')} entries` : `${at} of ${last}${entry ? `: ${entry.type} ${entry.stepId ?? ''} at ${span(entry.timestamp)}` : ''}`
  return (
    <div className={`mb-3 flex flex-wrap items-center gap-3 rounded-lg border min-h-11 px-3.5 py-1 ${moment === null ? 'border-line bg-panel' : 'border-accent bg-accent-wash'}`}>
      <History size={15} aria-hidden className="text-soft" />
      <input
        type="range"
        aria-label="Moment in the journal"
        aria-valuetext={entry ? `${entry.type} ${entry.stepId ?? ''}` : String(at)}
        min={1}
        max={last}
        value={at}
        onChange={(event) => {
          const next = Number(event.target.value)
          set(next >= last ? null : next)
        }}
        className="min-w-40 flex-1 accent-(--accent)"
      />
      <span className="figures w-64 truncate text-xs text-soft xl:w-96" title={words}>
        {words}
      </span>
      {moment !== null && <Button tone="quiet" onClick={() => set(null)}>Back to now</Button>}
    </div>
  )
}

function Data({ execution }: { execution: Execution }) {
  return (
    <div className="grid gap-3.5 lg:grid-cols-2">
      <Part name="Variables"><Code value={execution.variables ?? {}} label="Variables" /></Part>
      <Part name="Outputs"><Code value={execution.outputs} label="Outputs" /></Part>
      {execution.errors.length > 0 && <Part name="Errors"><Code value={execution.errors} label="Errors" /></Part>}
      <Part name="Whole execution"><Code value={execution} label="Whole execution" /></Part>
    </div>
  )
}

const Part = ({ name, children }: { name: string; children: ReactNode }) => (
  <div className="min-w-0">
    <h2 className="mb-1 text-xs font-medium text-soft">{name}</h2>
    {children}
  </div>
)

