// Messages between agents: who is there, what was asked and what became of it, and what was given up.
import { useQuery } from '@tanstack/react-query'
import { ArrowLeftRight, Bot, Mail, MailX, RotateCw } from 'lucide-react'
import { useState } from 'react'
import { agents, deadLetter, deadLetters, pairs, queues, redrive, requests, type Agent, type DeadLetter, type Pair, type Request } from '../../api/messages'
import { queries } from '../../app/fresh'
import { useQueryValue } from '../../app/router'
import { Button, Empty, Figure, PageHead, Panel, Trouble, Waiting } from '../../ui/basics'
import { Code } from '../../ui/code'
import { Dialog } from '../../ui/dialog'
import { Badge, StateBadge } from '../../ui/state'
import { Table, type Column } from '../../ui/table'
import { Tabs } from '../../ui/tabs'
import { Ago } from '../../ui/time'
import { say } from '../../ui/toast'
import { useAct } from '../executions/acts'

const STATUSES = ['PENDING', 'COMPLETED', 'FAILED', 'UNKNOWN']
const EVERY_MS = 5_000

export default function Messages() {
  const [tab, setTab] = useQueryValue('tab')
  const there = useQuery({ queryKey: ['agents'], queryFn: agents, refetchInterval: EVERY_MS })
  const dead = useQuery({ queryKey: ['dead-letters'], queryFn: deadLetters, refetchInterval: EVERY_MS })
  return (
    <>
      <PageHead title="Messages" about="What agents send each other: numbered, acknowledged, and never worked on twice." />
      <Queues />
      <Tabs
        label="Requests, pairs, agents and dead letters"
        at={tab || 'requests'}
        go={(next) => setTab(next === 'requests' ? '' : next)}
        tabs={[
          { id: 'requests', label: 'Requests' },
          { id: 'pairs', label: 'Pairs' },
          { id: 'agents', label: 'Agents', count: there.data?.agents.length },
          { id: 'dead', label: 'Dead letters', count: dead.data?.dead_letters.length },
        ]}
      >
        {tab === 'pairs' ? (
          <Pairs />
        ) : tab === 'agents' ? (
          <Agents list={there.data?.agents} error={there.error} />
        ) : tab === 'dead' ? (
          <Dead list={dead.data?.dead_letters} error={dead.error} />
        ) : (
          <Requests />
        )}
      </Tabs>
    </>
  )
}

function Queues() {
  const found = useQuery({ queryKey: ['queues'], queryFn: queues, refetchInterval: EVERY_MS })
  const sum = (name: 'queued' | 'in_flight' | 'dead_letters') => (found.data?.queues ?? []).reduce((total, line) => total + line[name], 0)
  if (!found.data) return null
  const dead = sum('dead_letters')
  return (
    <Panel className="mb-3.5">
      <div className="grid grid-cols-3 gap-4">
        <Figure label="Waiting" value={sum('queued')} />
        <Figure label="Being worked on" value={sum('in_flight')} tone={sum('in_flight') > 0 ? 'text-busy' : ''} />
        <Figure label="Given up" value={dead} tone={dead > 0 ? 'text-bad' : ''} />
      </div>
    </Panel>
  )
}

const COLUMNS: Column<Request>[] = [
  { name: 'From', width: 'minmax(0, 1fr)', cell: (row) => row.sourceAgentId },
  { name: 'To', width: 'minmax(0, 1fr)', cell: (row) => row.targetAgentId },
  { name: 'Request', width: 'minmax(0, 1.6fr)', wideOnly: true, cell: (row) => <code className="font-mono text-xs text-faint">{row.requestId}</code> },
  { name: 'Tries', width: '4rem', right: true, wideOnly: true, cell: (row) => <span className="figures">{row.attempts}</span> },
  { name: 'State', width: '7.5rem', cell: (row) => <StateBadge state={row.status === 'PENDING' ? 'waiting' : row.status.toLowerCase()} label={row.status.toLowerCase()} /> },
  { name: 'When', width: '6.5rem', right: true, cell: (row) => <span className="text-soft"><Ago at={row.timestamp} /></span> },
]

function Requests() {
  const [status, setStatus] = useQueryValue('status')
  const [agent, setAgent] = useQueryValue('agent')
  const [open, setOpen] = useState<Request | null>(null)
  const found = useQuery({ queryKey: ['requests', status, agent], queryFn: () => requests(status, agent), refetchInterval: EVERY_MS })
  const list = found.data?.requests
  return (
    <>
      <div role="search" className="mb-3 flex flex-wrap gap-2">
        <input type="search" aria-label="Agent" placeholder="Agent  ( / )" className="field flex-1" value={agent} onChange={(event) => setAgent(event.target.value)} />
        <select aria-label="State" className="field w-auto" value={status} onChange={(event) => setStatus(event.target.value)}>
          <option value="">Any state</option>
          {STATUSES.map((one) => <option key={one}>{one}</option>)}
        </select>
      </div>
      <div className="flex min-h-72 flex-1 flex-col overflow-hidden rounded-lg border border-line bg-panel">
        {found.error && !list ? <Trouble error={found.error} /> : null}
        {!list && !found.error && <Waiting />}
        {list?.length === 0 && <Empty icon={Mail} title="No agent has asked another anything">Requests appear here with what became of them. One whose outcome is unknown is tried again.</Empty>}
        {list && list.length > 0 && <Table label="Requests" columns={COLUMNS} rows={list} keyOf={(row) => row.requestId} open={setOpen} />}
      </div>
      {open && <Dialog title="Request" close={() => setOpen(null)} wide><Code value={open} label="Request" /></Dialog>}
    </>
  )
}

const PAIR_COLUMNS: Column<Pair>[] = [
  { name: 'From', width: 'minmax(0, 1fr)', cell: (row) => row.sourceAgentId },
  { name: 'To', width: 'minmax(0, 1fr)', cell: (row) => row.targetAgentId },
  { name: 'Sent', width: '5rem', right: true, wideOnly: true, cell: (row) => <span className="figures">{row.seq.toLocaleString('en')}</span> },
  { name: 'Acknowledged', width: '7.5rem', right: true, wideOnly: true, cell: (row) => <span className="figures">{row.ack.toLocaleString('en')}</span> },
  { name: 'Unacknowledged', width: '8.5rem', right: true, cell: (row) => <span className={`figures ${row.unacknowledged > 0 ? 'font-medium text-wait' : 'text-soft'}`}>{row.unacknowledged.toLocaleString('en')}</span> },
  { name: 'Behind a gap', width: '7.5rem', right: true, wideOnly: true, cell: (row) => <span className={`figures ${row.held > 0 ? 'font-medium text-bad' : 'text-soft'}`}>{row.held.toLocaleString('en')}</span> },
  { name: 'Oldest sent', width: '7rem', right: true, wideOnly: true, cell: (row) => <span className="text-soft">{row.waitingSince ? <Ago at={row.waitingSince} /> : '–'}</span> },
]

/** Between whom messages go, those with most unacknowledged first. */
function Pairs() {
  const [agent, setAgent] = useQueryValue('agent')
  const found = useQuery({ queryKey: ['pairs', agent], queryFn: () => pairs(agent), refetchInterval: EVERY_MS, placeholderData: (before) => before })
  const list = found.data?.pairs
  return (
    <>
      <div role="search" className="mb-3">
        <input type="search" aria-label="Agent" placeholder="Agent  ( / )" className="field" value={agent} onChange={(event) => setAgent(event.target.value)} />
      </div>
      <div className="flex min-h-72 flex-1 flex-col overflow-hidden rounded-lg border border-line bg-panel">
        {found.error && !list ? <Trouble error={found.error} /> : null}
        {!list && !found.error && <Waiting />}
        {list?.length === 0 && (
          <Empty icon={ArrowLeftRight} title={agent === '' ? 'No agent has sent anything yet' : 'This agent has neither sent nor got anything'}>
            Each pair of agents counts its messages. What the receiver has not acknowledged is kept, and brought again.
          </Empty>
        )}
        {list && list.length > 0 && <Table label="Pairs" columns={PAIR_COLUMNS} rows={list} keyOf={(row) => `${row.sourceAgentId}\n${row.targetAgentId}`} />}
      </div>
    </>
  )
}

function Agents({ list, error }: { list: Agent[] | undefined; error: unknown }) {
  if (error && !list) return <Trouble error={error} />
  if (!list) return <Waiting />
  if (list.length === 0) return <Panel><Empty icon={Bot} title="No agent is registered" /></Panel>
  return (
    <ul className="grid gap-2 sm:grid-cols-2 xl:grid-cols-3">
      {list.map((one) => (
        <li key={one.agentId} className="rounded-lg border border-line bg-panel px-3.5 py-2.5">
          <p className="flex items-center justify-between gap-2">
            <span className="truncate font-medium">{one.agentId}</span>
            <StateBadge state={one.state === 'idle' ? 'healthy' : one.state === 'busy' ? 'running' : one.state === 'draining' ? 'waiting' : 'cancelled'} label={one.state} />
          </p>
          {one.description && <p className="truncate text-soft">{one.description}</p>}
          <p className="mt-1 flex flex-wrap items-center gap-1.5 text-xs text-soft">
            <Badge>{one.kind}</Badge>
            {(one.topics ?? []).map((topic) => <Badge key={topic} hue="accent">{topic}</Badge>)}
            {one.lastSeenAt && <span className="ml-auto">seen <Ago at={one.lastSeenAt} /></span>}
          </p>
        </li>
      ))}
    </ul>
  )
}

function Dead({ list, error }: { list: DeadLetter[] | undefined; error: unknown }) {
  const [open, setOpen] = useState<number | null>(null)
  if (error && !list) return <Trouble error={error} />
  if (!list) return <Waiting />
  if (list.length === 0) return <Panel><Empty icon={MailX} title="Nothing was given up">Envelopes that failed as often as they may are kept here until somebody sends them on their way again.</Empty></Panel>
  return (
    <>
      <ul className="flex flex-col gap-2">
        {list.map((one) => <Letter key={one.seq} letter={one} look={() => setOpen(one.seq)} />)}
      </ul>
      {open !== null && <Whole seq={open} close={() => setOpen(null)} />}
    </>
  )
}

function Letter({ letter, look }: { letter: DeadLetter; look: () => void }) {
  const [isBusy, act] = useAct()
  const again = () =>
    act(async () => {
      await redrive(letter.seq)
      say('It is on its way again.')
      await queries.invalidateQueries({ queryKey: ['dead-letters'] })
      await queries.invalidateQueries({ queryKey: ['queues'] })
    })
  return (
    <li className="flex flex-wrap items-center gap-x-5 gap-y-1.5 rounded-lg border border-line bg-panel px-3.5 py-2.5">
      <button type="button" onClick={look} className="min-w-48 flex-1 text-left">
        <span className="block font-medium hover:text-accent">{letter.subject}</span>
        <span className="block break-words text-bad">{letter.why}</span>
      </button>
      <span className="figures text-xs text-soft">{letter.attempts} tries, by {letter.principal}</span>
      <span className="text-xs text-soft"><Ago at={letter.dead_at} /></span>
      <Button icon={RotateCw} busy={isBusy} onClick={again}>Redrive</Button>
    </li>
  )
}

function Whole({ seq, close }: { seq: number; close: () => void }) {
  const found = useQuery({ queryKey: ['dead-letter', seq], queryFn: () => deadLetter(seq) })
  return <Dialog title={`Dead letter ${seq}`} close={close} wide>{found.data ? <Code value={found.data} label="Dead letter" /> : found.error ? <Trouble error={found.error} /> : <Waiting />}</Dialog>
}
