// Workflows: what is stored, one of them, and schedules.
import { useQuery } from '@tanstack/react-query'
import { CalendarPlus, FilePlus2, Workflow as Sign } from 'lucide-react'
import { lazy, Suspense, useState } from 'react'
import type { WorkflowSummary } from '../../api/client'
import { schedules, workflows } from '../../api/workflows'
import { go, Link, useQueryValue } from '../../app/router'
import { Button, Empty, PageHead, Panel, Trouble, Waiting } from '../../ui/basics'
import { Table, type Column } from '../../ui/table'
import { Tabs } from '../../ui/tabs'
import { Ago } from '../../ui/time'
import { NewSchedule, Schedules } from './schedules'
import { TEMPLATE } from './template'

const Editor = lazy(() => import('./editor'))
const One = lazy(() => import('./one'))

export default function Workflows({ parts }: { parts: string[] }) {
  const [first] = parts
  if (first === 'new') {
    return (
      <>
        <PageHead title="New workflow" about="The server checks it while you type." />
        <Suspense fallback={<Waiting />}><Editor begin={TEMPLATE} /></Suspense>
      </>
    )
  }
  return first === undefined ? <List /> : <One key={first} id={first} />
}

function List() {
  const [tab, setTab] = useQueryValue('tab')
  const planned = useQuery({ queryKey: ['schedules'], queryFn: schedules })
  const found = useQuery({ queryKey: ['workflows'], queryFn: () => workflows() })
  const [isPlanning, setPlanning] = useState(false)
  return (
    <>
      <PageHead title="Workflows" about="Steps that wait for each other, stored under a name.">
        {tab === 'schedules' && <Button icon={CalendarPlus} disabled={!found.data?.workflows.length} onClick={() => setPlanning(true)}>New schedule</Button>}
        <Button icon={FilePlus2} tone="accent" onClick={() => go('/workflows/new')}>New workflow</Button>
      </PageHead>
      <Tabs
        label="Workflows and schedules"
        at={tab || 'stored'}
        go={(next) => setTab(next === 'stored' ? '' : next)}
        tabs={[
          { id: 'stored', label: 'Stored', count: found.data?.workflows.length },
          { id: 'schedules', label: 'Schedules', count: planned.data?.schedules.length },
        ]}
      >
        {tab === 'schedules' ? <Schedules list={planned.data?.schedules} error={planned.error} /> : <Stored list={found.data?.workflows} error={found.error} />}
      </Tabs>
      {isPlanning && <NewSchedule workflows={found.data?.workflows ?? []} close={() => setPlanning(false)} />}
    </>
  )
}

const COLUMNS: Column<WorkflowSummary>[] = [
  {
    name: 'Name',
    width: 'minmax(10rem, 1fr)',
    cell: (row) => <Link to={`/workflows/${encodeURIComponent(row.id)}`} className="font-medium hover:text-accent">{row.name}</Link>,
  },
  { name: 'About', width: 'minmax(0, 2fr)', wideOnly: true, cell: (row) => <span className="text-soft">{row.description ?? ''}</span> },
  { name: 'Version', width: '6rem', cell: (row) => <span className="figures">{row.version}</span> },
  { name: 'Revision', width: '5rem', right: true, wideOnly: true, cell: (row) => <span className="figures">{row.revision}</span> },
  { name: 'Steps', width: '4rem', right: true, wideOnly: true, cell: (row) => <span className="figures">{row.steps}</span> },
  { name: 'Stored', width: '6.5rem', right: true, cell: (row) => <span className="text-soft"><Ago at={row.appliedAt} /></span> },
]

function Stored({ list, error }: { list: WorkflowSummary[] | undefined; error: unknown }) {
  if (error && !list) return <Trouble error={error} />
  if (!list) return <Waiting />
  if (list.length === 0) {
    return (
      <Panel>
        <Empty icon={Sign} title="No workflow is stored" action={<Button icon={FilePlus2} onClick={() => go('/workflows/new')}>Write one here</Button>}>
          Or make a project with one in it:
          <code className="mt-2 block rounded bg-raised px-2 py-1 font-mono text-xs">orchestr8 init my-project</code>
        </Empty>
      </Panel>
    )
  }
  return (
    <div className="flex min-h-80 flex-1 flex-col overflow-hidden rounded-lg border border-line bg-panel">
      <Table label="Stored workflows" columns={COLUMNS} rows={list} keyOf={(row) => row.id} open={(row) => go(`/workflows/${encodeURIComponent(row.id)}`)} />
    </div>
  )
}
