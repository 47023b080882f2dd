// When each step ran, one below the other.
import { GanttChart } from 'lucide-react'
import type { Execution, JournalEntry } from '../../api/client'
import { Empty } from '../../ui/basics'
import { FILL, lookOf, TEXT } from '../../ui/state'
import { span, useClock } from '../../ui/time'
import { attemptsOf } from './attempts'

export function Waterfall({ execution, entries, chosen, choose }: {
  execution: Execution
  entries: JournalEntry[]
  chosen: string | undefined
  choose: (step: string) => void
}) {
  const now = useClock()
  const begin = Date.parse(execution.startedAt ?? execution.createdAt)
  const end = execution.completedAt ? Date.parse(execution.completedAt) : now
  const whole = Math.max(1, end - begin)
  if (execution.stepOrder.length === 0) return <Empty icon={GanttChart} title="No step has begun" />
  return (
    <div className="rounded-lg border border-line bg-panel py-1.5">
      <div aria-hidden className="figures flex gap-2 px-3.5 py-1 text-[11px] text-faint">
        <span className="w-[30%]" />
        <span className="flex min-w-0 flex-1 justify-between"><span>0</span><span>{span(whole / 2)}</span><span>{span(whole)}</span></span>
        <span className="w-16" />
      </div>
      <ul>
        {execution.stepOrder.map((id) => {
          const step = execution.steps[id]
          const look = lookOf(step?.status ?? 'pending')
          const from = step?.startTime ? Date.parse(step.startTime) : null
          const to = step?.endTime ? Date.parse(step.endTime) : step?.startTime && !execution.completedAt ? now : from
          const left = from === null ? 0 : ((from - begin) / whole) * 100
          const width = from === null || to === null ? 0 : ((to - from) / whole) * 100
          const undo = step?.compensating || step?.compensated !== undefined ? attemptsOf(entries, id).filter((one) => one.isUndo) : []
          return (
            <li key={id}>
              <button
                type="button"
                onClick={() => choose(id)}
                aria-pressed={id === chosen}
                className={`flex w-full items-center gap-2 px-3.5 py-1 text-left hover:bg-raised ${id === chosen ? 'bg-accent-wash' : ''}`}
              >
                <span className="flex w-[30%] min-w-0 items-center gap-1.5">
                  <look.icon size={13} aria-hidden className={`shrink-0 ${TEXT[look.hue]} ${look.moves ? 'pulse' : ''}`} />
                  <span className="truncate">{id}</span>
                  {(step?.attempts ?? 0) > 1 && <span className="figures text-xs text-wait">×{step?.attempts}</span>}
                </span>
                <span className="relative h-4 min-w-0 flex-1">
                  {from !== null && (
                    <span
                      className={`absolute top-0.5 h-3 min-w-[3px] rounded-sm ${FILL[look.hue]} ${look.hue === 'idle' ? 'opacity-40' : 'opacity-80'}`}
                      style={{ left: `${Math.min(99.5, Math.max(0, left))}%`, width: `${Math.min(100 - left, width)}%` }}
                    />
                  )}
                  {undo.map((one) => (
                    <span
                      key={one.number}
                      title={`undo: ${one.outcome}`}
                      className={`absolute top-1.5 h-1.5 min-w-[3px] rounded-sm ${FILL[lookOf(one.endedMs === null ? 'compensating' : one.outcome).hue]}`}
                      style={{ left: `${Math.min(99.5, (one.beganMs / whole) * 100)}%`, width: `${(((one.endedMs ?? end - begin) - one.beganMs) / whole) * 100}%` }}
                    />
                  ))}
                </span>
                <span className="figures w-16 text-right text-xs text-soft">{from === null || to === null ? (step?.status ?? '') : span(to - from)}</span>
              </button>
            </li>
          )
        })}
      </ul>
    </div>
  )
}
