// Every execution, newest first; what is looked for stands in the address.
import { useQuery } from '@tanstack/react-query'
import { PlayCircle } from 'lucide-react'
import { useEffect, useState } from 'react'
import type { ExecutionSummary } from '../../api/client'
import { workflows, type Filter } from '../../api/workflows'
import { go, Link, setQuery, usePlace } from '../../app/router'
import { Button, Empty, PageHead, Trouble, Waiting } from '../../ui/basics'
import { StateBadge } from '../../ui/state'
import { Table, type Column } from '../../ui/table'
import { Ago, Took } from '../../ui/time'
import { useWide } from '../../ui/wide'
import { searchOf } from './search'
import { useList } from './use-list'

const STATUSES = ['queued', 'running', 'waiting', 'paused', 'cancelling', 'compensating', 'completed', 'failed', 'cancelled', 'compensated']

/** The beginning of an id, which the search finds. */
export const shortId = (id: string): string => id.replace(/^exec-/, '').slice(0, 18)
const placeOf = (row: ExecutionSummary): string => `/executions/${encodeURIComponent(row.executionId)}`

export const COLUMNS: Column<ExecutionSummary>[] = [
  {
    name: 'Workflow',
    width: 'minmax(9rem, 1.4fr)',
    cell: (row) => (
      <Link to={placeOf(row)} tabIndex={-1} className="font-medium hover:text-accent" onClick={(event) => event.stopPropagation()}>
        {row.workflow.name}
      </Link>
    ),
  },
  { name: 'State', width: '8rem', cell: (row) => <StateBadge state={row.status} /> },
  {
    name: 'Why, or its id',
    width: 'minmax(0, 2fr)',
    wideOnly: true,
    cell: (row) => (row.error ? <span className="text-bad" title={row.error.message}>{row.error.message}</span> : <span className="font-mono text-xs text-faint">{shortId(row.executionId)}</span>),
  },
  { name: 'Took', width: '6rem', right: true, wideOnly: true, cell: (row) => <Took ms={row.duration} from={row.startedAt} /> },
  { name: 'Created', width: '6.5rem', right: true, cell: (row) => <span className="text-soft"><Ago at={row.createdAt} /></span> },
]

export function List() {
  const search = usePlace((place) => place.search)
  const values = new URLSearchParams(search)
  const text = values.get('q') ?? ''
  const filter: Filter = {
    status: values.get('status') ?? undefined,
    workflowId: values.get('workflow') ?? undefined,
    since: values.get('since') ?? undefined,
    until: values.get('until') ?? undefined,
    ...searchOf(text),
  }
  const list = useList(filter)
  const isFiltered = [...values.keys()].length > 0
  return (
    <>
      <PageHead title="Executions" about="Every run of a workflow, newest first, live." />
      <Filters />
      <div className="flex min-h-80 flex-1 flex-col overflow-hidden rounded-lg border border-line bg-panel">
        {list.error ? <Trouble error={list.error} again={list.again} /> : null}
        {list.rows.length === 0 ? (
          list.error ? null : list.isLoading ? <Waiting what="Loading executions" /> : <None isFiltered={isFiltered} text={text} />
        ) : (
          <Table
            label="Executions"
            columns={COLUMNS}
            rows={list.rows}
            keyOf={(row) => row.executionId}
            open={(row) => go(placeOf(row))}
            more={list.isEnd ? undefined : list.more}
          />
        )}
        {list.rows.length > 0 && (
          <p className="figures border-t border-line px-3.5 py-1.5 text-xs text-faint" data-testid="count">
            {list.rows.length.toLocaleString('en')} shown{list.isEnd ? ', that is all' : list.isLoading ? ', loading more …' : ', scroll for more'}
          </p>
        )}
      </div>
    </>
  )
}

function Filters() {
  const isWide = useWide()
  const values = new URLSearchParams(usePlace((place) => place.search))
  const known = useQuery({ queryKey: ['workflows'], queryFn: () => workflows() })
  const asked = values.get('q') ?? ''
  const [text, setText] = useState(asked)
  // The address may change without the field: a link was followed, or one went back.
  useEffect(() => setText((now) => (now.trim() === asked ? now : asked)), [asked])
  useEffect(() => {
    const timer = setTimeout(() => {
      if (text.startsWith('exec-') && text.length > 30) go(`/executions/${encodeURIComponent(text)}`)
      else setQuery({ q: text.trim() })
    }, 300)
    return () => clearTimeout(timer)
  }, [text])
  return (
    <div role="search" className="mb-3 flex flex-wrap gap-2 max-md:grid max-md:grid-cols-2">
      <input
        type="search"
        aria-label="Correlation id, execution id or tags"
        placeholder={isWide ? 'Execution id or its beginning, last, correlation id, or tags such as customer=42  ( / )' : 'Correlation id, execution id or tag'}
        className="field min-w-0 flex-[2_1_16rem] max-md:col-span-2"
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <Choice label="State" value={values.get('status') ?? ''} all="Any state" options={STATUSES} set={(status) => setQuery({ status })} />
      <Choice
        label="Workflow"
        value={values.get('workflow') ?? ''}
        all="Any workflow"
        options={(known.data?.workflows ?? []).map((one) => one.id)}
        set={(workflow) => setQuery({ workflow })}
      />
      <Moment label="Since" about="Created since" name="since" value={values.get('since') ?? ''} />
      <Moment label="Until" about="Created until" name="until" value={values.get('until') ?? ''} />
      {[...values.keys()].length > 0 && (
        <Button
          tone="quiet"
          onClick={() => {
            setText('')
            go('/executions', { replace: true })
          }}
        >
          Clear
        </Button>
      )}
    </div>
  )
}

function Moment({ label, about, name, value }: { label: string; about: string; name: string; value: string }) {
  return (
    <label className="flex min-w-0 flex-[1_1_12rem] items-center gap-2 text-soft max-md:flex-col max-md:items-start max-md:gap-0.5">
      <span className="text-xs">{label}</span>
      <input
        type="datetime-local"
        aria-label={about}
        className="field min-w-0"
        value={value === '' ? '' : localValue(value)}
        onChange={(event) => setQuery({ [name]: event.target.value === '' ? '' : new Date(event.target.value).toISOString() })}
      />
    </label>
  )
}

/** A moment as the browser's field writes it, in the time of the place. */
function localValue(iso: string): string {
  const date = new Date(iso)
  if (Number.isNaN(date.getTime())) return ''
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

function Choice({ label, value, all, options, set }: { label: string; value: string; all: string; options: string[]; set: (value: string) => void }) {
  const shown = value === '' || options.includes(value) ? options : [value, ...options]
  return (
    <select aria-label={label} className="field w-auto min-w-0 flex-[1_1_9rem]" value={value} onChange={(event) => set(event.target.value)}>
      <option value="">{all}</option>
      {shown.map((option) => <option key={option}>{option}</option>)}
    </select>
  )
}

function None({ isFiltered, text }: { isFiltered: boolean; text: string }) {
  if (isFiltered) return <Empty icon={PlayCircle} title="Nothing fits these filters">{text !== '' && <Named text={text} />}</Empty>
  return (
    <Empty icon={PlayCircle} title="Nothing has run yet" action={<Link to="/workflows" className="text-accent underline">Choose a workflow</Link>}>
      Run one from the command line and watch it appear here:
      <code className="mt-2 block rounded bg-raised px-2 py-1 font-mono text-xs">orchestr8 run examples/hello-world.json</code>
    </Empty>
  )
}

/** Whoever types the name of a workflow means its executions. */
function Named({ text }: { text: string }) {
  const known = useQuery({ queryKey: ['workflows'], queryFn: () => workflows() })
  const named = (known.data?.workflows ?? []).filter((one) => `${one.id} ${one.name}`.toLowerCase().includes(text.toLowerCase()))
  return (
    <>
      <p>No execution has the id, correlation id or tags <code className="font-mono text-xs break-all">{text}</code>.</p>
      {named.length > 0 && (
        <p className="mt-2 flex flex-wrap items-center justify-center gap-x-3">
          Executions of:
          {named.slice(0, 5).map((one) => (
            <Link key={one.id} to={`/executions?workflow=${encodeURIComponent(one.id)}`} className="text-accent underline">{one.name}</Link>
          ))}
        </p>
      )}
    </>
  )
}
