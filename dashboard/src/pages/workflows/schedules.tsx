// Schedules: what runs when, and a form for another one.
import { CalendarClock, CalendarPlus, Pause, Play, Trash2, Zap } from 'lucide-react'
import { useState } from 'react'
import type { Schedule, WorkflowSummary } from '../../api/client'
import { applySchedule, moveSchedule, removeSchedule } from '../../api/workflows'
import { queries } from '../../app/fresh'
import { Link } from '../../app/router'
import { Button, Empty, Field, Panel, Trouble, Waiting } from '../../ui/basics'
import { Dialog } from '../../ui/dialog'
import { Badge, StateBadge } from '../../ui/state'
import { Ago } from '../../ui/time'
import { say } from '../../ui/toast'
import { useAct } from '../executions/acts'

const look = () => queries.invalidateQueries({ queryKey: ['schedules'] })

export function Schedules({ list, error }: { list: Schedule[] | undefined; error: unknown }) {
  if (error && !list) return <Trouble error={error} />
  if (!list) return <Waiting />
  if (list.length === 0) {
    return (
      <Panel>
        <Empty icon={CalendarClock} title="Nothing is scheduled">
          <code className="mt-2 block rounded bg-raised px-2 py-1 font-mono text-xs">orchestr8 schedule apply examples/nightly.schedule.json</code>
        </Empty>
      </Panel>
    )
  }
  return (
    <ul className="flex flex-col gap-2">
      {list.map((one) => <Plan key={one.id} plan={one} />)}
    </ul>
  )
}

function Plan({ plan }: { plan: Schedule }) {
  const [isBusy, act] = useAct()
  const [isRemoving, setRemoving] = useState(false)
  const move = (what: 'pause' | 'resume' | 'trigger') =>
    act(async () => {
      const done = await moveSchedule(plan.id, what)
      if (done.executionId) say('It has begun.')
      await look()
    })
  return (
    <li className="flex flex-wrap items-center gap-x-5 gap-y-2 rounded-lg border border-line bg-panel px-3.5 py-2.5">
      <div className="min-w-48 flex-1">
        <p className="flex items-center gap-2 font-medium">{plan.id} {plan.paused ? <StateBadge state="paused" /> : <Badge hue="good">active</Badge>}</p>
        <p className="text-soft">
          runs <Link to={`/workflows/${encodeURIComponent(plan.workflowId)}`} className="text-accent underline">{plan.workflowId}</Link>
          {' '}at <code className="font-mono text-xs">{plan.cron}</code> {plan.timeZone ?? 'UTC'}
        </p>
      </div>
      <p className="text-xs text-soft">next <Ago at={plan.nextAt} /></p>
      <p className="text-xs text-soft">
        last{' '}
        {plan.lastExecutionId ? <Link className="underline" to={`/executions/${encodeURIComponent(plan.lastExecutionId)}`}><Ago at={plan.lastAt} /></Link> : <Ago at={plan.lastAt} />}
      </p>
      <div className="flex gap-1.5">
        <Button icon={Zap} busy={isBusy} onClick={() => move('trigger')}>Now</Button>
        {plan.paused
          ? <Button icon={Play} busy={isBusy} onClick={() => move('resume')}>Resume</Button>
          : <Button icon={Pause} busy={isBusy} onClick={() => move('pause')}>Pause</Button>}
        <Button icon={Trash2} tone="danger" aria-label={`Remove ${plan.id}`} title="Remove" onClick={() => setRemoving(true)} />
      </div>
      {isRemoving && <Remove id={plan.id} close={() => setRemoving(false)} />}
    </li>
  )
}

function Remove({ id, close }: { id: string; close: () => void }) {
  const [isBusy, act] = useAct()
  const remove = () =>
    act(async () => {
      await removeSchedule(id)
      say(`${id} is removed.`)
      close()
      await look()
    })
  return (
    <Dialog title={`Remove ${id}?`} close={close}>
      <p className="mb-3 text-soft">Nothing begins by it any more. What it has begun goes on, and the workflow stays.</p>
      <div className="flex justify-end gap-2">
        <Button onClick={close}>Keep it</Button>
        <Button tone="danger" icon={Trash2} busy={isBusy} onClick={remove}>Remove it</Button>
      </div>
    </Dialog>
  )
}

const OVERLAPS = { skip: 'leave it out', queue: 'begin it afterwards', cancel: 'cancel the last one', allow: 'run both' } as const
const BACKFILLS = { none: 'none of them', one: 'the last of them', all: 'all of them' } as const

export function NewSchedule({ workflows, close }: { workflows: WorkflowSummary[]; close: () => void }) {
  const [workflowId, setWorkflow] = useState(workflows[0]?.id ?? '')
  const [named, setNamed] = useState<string | null>(null)
  const [cron, setCron] = useState('0 8 * * 1-5')
  const [timeZone, setZone] = useState(Intl.DateTimeFormat().resolvedOptions().timeZone)
  const [overlap, setOverlap] = useState<keyof typeof OVERLAPS>('skip')
  const [backfill, setBackfill] = useState<keyof typeof BACKFILLS>('none')
  const [isBusy, act] = useAct()
  const id = named ?? `${workflowId}-schedule`
  return (
    <Dialog title="New schedule" close={close}>
      <form
        className="flex flex-col gap-3"
        onSubmit={(event) => {
          event.preventDefault()
          act(async () => {
            const made = await applySchedule({ id, workflowId, cron: cron.trim(), overlap, backfill, ...(timeZone.trim() === '' ? {} : { timeZone: timeZone.trim() }) })
            say(`${made.id} is scheduled.`)
            close()
            await look()
          })
        }}
      >
        <Field label="Workflow">
          <select className="field" value={workflowId} onChange={(event) => setWorkflow(event.target.value)}>
            {workflows.map((one) => <option key={one.id} value={one.id}>{one.name}</option>)}
          </select>
        </Field>
        <Field label="Name of the schedule" hint="One with the same name is replaced.">
          <input className="field" required pattern="[a-zA-Z0-9_\-]{1,128}" title="Letters, digits, _ and -" value={id} onChange={(event) => setNamed(event.target.value)} />
        </Field>
        <div className="grid gap-3 sm:grid-cols-2">
          <Field label="When, as cron has it" hint="Minute, hour, day, month, day of the week.">
            <input className="field font-mono" required maxLength={256} value={cron} onChange={(event) => setCron(event.target.value)} />
          </Field>
          <Field label="Time zone" hint="UTC if it is left empty.">
            <input className="field" maxLength={128} value={timeZone} onChange={(event) => setZone(event.target.value)} />
          </Field>
          <Choice label="If the last one still runs" of={OVERLAPS} value={overlap} set={setOverlap} />
          <Choice label="Of those missed while away, run" of={BACKFILLS} value={backfill} set={setBackfill} />
        </div>
        <div className="flex justify-end gap-2">
          <Button onClick={close}>Close</Button>
          <Button type="submit" tone="accent" icon={CalendarPlus} busy={isBusy}>Schedule</Button>
        </div>
      </form>
    </Dialog>
  )
}

function Choice<Name extends string>({ label, of, value, set }: { label: string; of: Record<Name, string>; value: Name; set: (value: Name) => void }) {
  return (
    <Field label={label}>
      <select className="field" value={value} onChange={(event) => set(event.target.value as Name)}>
        {(Object.entries(of) as [Name, string][]).map(([name, words]) => <option key={name} value={name}>{words}</option>)}
      </select>
    </Field>
  )
}
