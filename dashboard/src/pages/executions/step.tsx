// One step of an execution: how it stands, what it gave, how often it was tried.
import { useEffect, useMemo, useRef } from 'react'
import type { Execution, Json, JournalEntry } from '../../api/client'
import type { Definition } from '../../api/workflows'
import { Link } from '../../app/router'
import { kindOf } from '../../graph/model'
import { Facts, Panel } from '../../ui/basics'
import { Code } from '../../ui/code'
import { StateBadge } from '../../ui/state'
import { Ago, span, Took } from '../../ui/time'
import { useWide } from '../../ui/wide'
import { attemptsOf } from './attempts'
import { filled } from './input'

export function StepPanel({ id, execution, definition, entries, actions }: {
  id: string
  execution: Execution
  definition: Definition | undefined
  entries: JournalEntry[]
  actions?: React.ReactNode
}) {
  const step = execution.steps[id]
  const written = definition?.steps.find((one) => one.id === id)
  const attempts = useMemo(() => attemptsOf(entries, id), [entries, id])
  const facts: [string, React.ReactNode][] = [['State', <StateBadge key="state" state={step?.status ?? 'pending'} />]]
  if (written) facts.push(['Kind', kindOf(written)])
  if (step?.startTime) facts.push(['Began', <Ago key="began" at={step.startTime} />], ['Took', <Took key="took" from={step.startTime} to={step.endTime} />])
  if (step?.nextRetryAt) facts.push(['Next try', <Ago key="next" at={step.nextRetryAt} />])
  if (step?.skipReason) facts.push(['Skipped', step.skipReason])
  if (step?.aliasFor) facts.push(['In place of', step.aliasFor])
  if (step?.compensating) facts.push(['Undo', <StateBadge key="undo" state="compensating" label="running" />])
  if (step?.compensated !== undefined) facts.push(['Undo', <StateBadge key="undo" state={step.compensated ? 'compensated' : 'failed'} label={step.compensated ? 'undone' : 'not undone'} />])
  if (step?.childExecutionId) {
    facts.push(['Started', <Link key="child" className="text-accent underline" to={`/executions/${encodeURIComponent(step.childExecutionId)}`}>another execution</Link>])
  }
  const frame = useRef<HTMLDivElement>(null)
  const isWide = useWide()
  // Below the graph it would be chosen unseen.
  useEffect(() => {
    if (!isWide) frame.current?.scrollIntoView({ block: 'start' })
  }, [id, isWide])
  return (
    <div ref={frame} className="min-w-0">
      <Panel title={<span className="break-words">{written?.name ?? id}</span>} actions={actions}>
        <div className="flex flex-col gap-3.5">
          <Facts of={facts} />
          {step?.error && (
            <div className="rounded-md bg-bad-wash px-3 py-2 text-bad">
              <p className="break-words">{step.error.message}</p>
              <p className="mt-0.5 text-xs"><code>{step.error.code}</code> · {step.error.isRetryable ? 'trying again may help' : 'trying the same again does not help'}</p>
            </div>
          )}
          {attempts.length > 0 && (
            <div>
              <h3 className="mb-1 text-xs text-soft">Attempts</h3>
              <ol className="flex flex-col gap-1">
                {attempts.map((attempt) => (
                  <li key={attempt.number} className="flex items-center gap-2 text-xs">
                    <span className="figures min-w-5 text-faint">{attempt.isUndo ? 'undo ' : ''}{attempt.item === undefined ? (attempt.isUndo ? '' : attempt.number) : `item ${attempt.item}`}</span>
                    <StateBadge state={attempt.outcome} {...(attempt.code ? { label: attempt.code } : {})} />
                    <span className="figures ml-auto text-soft">
                      at {span(attempt.beganMs)}{attempt.endedMs === null ? '' : `, for ${span(attempt.endedMs - attempt.beganMs)}`}
                    </span>
                  </li>
                ))}
              </ol>
            </div>
          )}
          {written?.input !== undefined && <Input written={written.input} execution={execution} />}
          {step?.output !== undefined && <Part name="Output"><Code value={step.output} label="Output" /></Part>}
          {step?.items !== undefined && <Part name="Items"><Code value={step.items} label="Items" /></Part>}
          {step?.waitingFor !== undefined && <Part name="Waits for"><Code value={step.waitingFor} label="Waits for" /></Part>}
        </div>
      </Panel>
    </div>
  )
}

function Input({ written, execution }: { written: Json; execution: Execution }) {
  const { value, isWhole } = useMemo(() => filled(written, execution), [written, execution])
  const isSame = useMemo(() => JSON.stringify(value) === JSON.stringify(written), [value, written])
  return (
    <Part name={isWhole ? 'Input' : isSame ? 'Input, as written' : 'Input, as far as it can be told'}>
      <Code value={value} label="Input" />
      {!isSame && (
        <details className="mt-1">
          <summary className="text-xs text-soft">As it is written</summary>
          <Code value={written} label="Input as written" className="mt-1" />
        </details>
      )}
    </Part>
  )
}

const Part = ({ name, children }: { name: string; children: React.ReactNode }) => (
  <div className="min-w-0">
    <h3 className="mb-1 text-xs text-soft">{name}</h3>
    {children}
  </div>
)
