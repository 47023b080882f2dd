// One step of an execution: how it stands, what it gave, how often it was tried.
import { useMemo } from 'react'
import type { Execution, JournalEntry } from '../../api/client'
import type { Definition } from '../../api/workflows'
import { Link } from '../../app/router'
import { kindOf } from '../../graph/model'
import { Facts, Panel } from '../../ui/basics'
import { Code } from '../../ui/code'
import { StateBadge } from '../../ui/state'
import { Ago, span, Took } from '../../ui/time'
import { attemptsOf } from './attempts'

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
  if (step?.compensated) facts.push(['Undone', 'what it did was undone'])
  if (step?.childExecutionId) {
    facts.push(['Started', <Link key="child" className="text-accent underline" to={`/executions/${encodeURIComponent(step.childExecutionId)}`}>another execution</Link>])
  }
  return (
    <Panel title={<span className="break-all">{written?.name ?? id}</span>} actions={actions} className="lg:sticky lg:top-0">
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
                  <span className="figures min-w-5 text-faint">{attempt.item === undefined ? attempt.number : `item ${attempt.item}`}</span>
                  <StateBadge state={attempt.outcome} {...(attempt.code ? { label: attempt.code } : {})} />
                  <span className="figures ml-auto text-soft">
                    at {span(attempt.beganMs)}{attempt.endedMs === null ? '' : `, for ${span(attempt.endedMs - attempt.beganMs)}`}
                  </span>
                </li>
              ))}
            </ol>
          </div>
        )}
        {step?.output !== undefined && <Part name="Output"><Code value={step.output} label="Output" /></Part>}
        {step?.items !== undefined && <Part name="Items"><Code value={step.items} label="Items" /></Part>}
        {step?.waitingFor !== undefined && <Part name="Waits for"><Code value={step.waitingFor} label="Waits for" /></Part>}
        {written?.input !== undefined && <Part name="Input, as written"><Code value={written.input} label="Input" /></Part>}
      </div>
    </Panel>
  )
}

const Part = ({ name, children }: { name: string; children: React.ReactNode }) => (
  <div className="min-w-0">
    <h3 className="mb-1 text-xs text-soft">{name}</h3>
    {children}
  </div>
)
