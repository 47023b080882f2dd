// One workflow: its graph, its revisions, a form to run it, and an editor.
import { useQuery } from '@tanstack/react-query'
import { ArrowLeft, Play } from 'lucide-react'
import { lazy, Suspense, useState } from 'react'
import type { Json, Workflow } from '../../api/client'
import { execute, workflow as ask, type Definition } from '../../api/workflows'
import { go, Link, useQueryValue } from '../../app/router'
import { Button, Panel, Trouble, Waiting } from '../../ui/basics'
import { Code, pretty } from '../../ui/code'
import { beginning, SchemaForm, type Schema } from '../../ui/schema-form'
import { Badge } from '../../ui/state'
import { Tabs } from '../../ui/tabs'
import { Ago } from '../../ui/time'
import { useAct } from '../executions/acts'

const Graph = lazy(() => import('../../graph/graph'))
const Editor = lazy(() => import('./editor'))

export default function One({ id }: { id: string }) {
  const [tab, setTab] = useQueryValue('tab')
  const [revision, setRevision] = useQueryValue('revision')
  const newest = useQuery({ queryKey: ['workflow', id], queryFn: () => ask(id) })
  const older = useQuery({ queryKey: ['workflow', id, revision], queryFn: () => ask(id, Number(revision)), enabled: revision !== '', staleTime: Infinity })
  if (newest.isPending) return <Waiting />
  if (!newest.data) return <Trouble error={newest.error} again={() => void newest.refetch()} />
  const shown = revision === '' ? newest.data : (older.data ?? newest.data)
  return (
    <>
      <header className="mb-3 flex flex-wrap items-center gap-2">
        <Link to="/workflows" aria-label="Back to all workflows" className="rounded p-1 text-soft hover:bg-raised"><ArrowLeft size={16} aria-hidden /></Link>
        <h1 className="text-lg">{shown.name}</h1>
        <Badge>{shown.version}</Badge>
        <Badge hue={revision === '' ? 'good' : 'wait'}>revision {shown.revision}</Badge>
        <Link to={`/executions?workflow=${encodeURIComponent(id)}`} className="text-accent hover:underline md:ml-auto">Its executions</Link>
        {shown.description && <p className="w-full pl-8 text-soft">{shown.description}</p>}
      </header>
      <Tabs
        label="Views of the workflow"
        at={tab || 'run'}
        go={(next) => setTab(next === 'run' ? '' : next)}
        tabs={[
          { id: 'run', label: 'Graph and run' },
          { id: 'definition', label: 'Definition' },
          { id: 'revisions', label: 'Revisions', count: newest.data.revisions.length },
          { id: 'edit', label: 'Edit' },
        ]}
      >
        {tab === 'definition' ? (
          <Code value={shown.workflow} label="Definition" className="[&_pre]:max-h-none" />
        ) : tab === 'revisions' ? (
          <Revisions workflow={newest.data} at={shown.revision} choose={(number) => setRevision(number === newest.data.revision ? '' : String(number))} />
        ) : tab === 'edit' ? (
          <Suspense fallback={<Waiting />}><Editor key={shown.hash} begin={`${pretty(shown.workflow)}\n`} /></Suspense>
        ) : (
          <div className="grid gap-3.5 lg:grid-cols-[1fr_22rem]">
            <div className="h-[28rem] min-w-0 rounded-lg border border-line bg-panel lg:h-[max(28rem,calc(100dvh-13rem))]">
              <Suspense fallback={<Waiting what="Drawing" />}><Graph definition={shown.workflow} /></Suspense>
            </div>
            <Run key={shown.hash} id={id} definition={shown.workflow} inputs={shown.inputs as Json | null | undefined} />
          </div>
        )}
      </Tabs>
    </>
  )
}

/** Without a schema of its inputs, its variables say what can be given. */
function schemaOf(definition: Definition, inputs: Json | null | undefined): Schema {
  const variables = definition.variables ?? definition.context?.variables ?? {}
  const given = (inputs ?? {}) as Schema
  const properties: Record<string, Schema> = {}
  for (const [name, value] of Object.entries(variables)) {
    const type = Array.isArray(value) ? 'array' : value === null ? undefined : typeof value
    properties[name] = { ...(type ? { type } : {}), default: value }
  }
  for (const [name, schema] of Object.entries(given.properties ?? {})) {
    properties[name] = { ...schema, ...(variables[name] === undefined ? {} : { default: variables[name] }) }
  }
  return { ...given, type: 'object', properties }
}

function Run({ id, definition, inputs }: { id: string; definition: Definition; inputs: Json | null | undefined }) {
  const schema = schemaOf(definition, inputs)
  const [value, setValue] = useState<Json>(() => beginning(schema))
  const [isBusy, act] = useAct()
  const hasFields = Object.keys(schema.properties ?? {}).length > 0
  return (
    <Panel title="Run it" className="self-start">
      <form
        className="flex flex-col gap-3"
        onSubmit={(event) => {
          event.preventDefault()
          act(async () => {
            const begun = await execute({ workflowId: id, inputs: value })
            go(`/executions/${encodeURIComponent(begun.executionId)}`)
          })
        }}
      >
        {hasFields ? <SchemaForm schema={schema as unknown as Json} value={value} change={setValue} /> : <p className="text-soft">It takes no inputs.</p>}
        <Button type="submit" tone="accent" icon={Play} busy={isBusy}>Run</Button>
      </form>
    </Panel>
  )
}

function Revisions({ workflow, at, choose }: { workflow: Workflow; at: number; choose: (revision: number) => void }) {
  return (
    <ul className="divide-y divide-line/60 rounded-lg border border-line bg-panel">
      {workflow.revisions.map((one) => (
        <li key={one.revision}>
          <button type="button" aria-pressed={one.revision === at} onClick={() => choose(one.revision)} className={`flex w-full items-center gap-4 px-3.5 py-2 text-left hover:bg-raised ${one.revision === at ? 'bg-accent-wash' : ''}`}>
            <span className="figures w-24 font-medium">revision {one.revision}</span>
            <span className="figures w-16">{one.version}</span>
            <code className="min-w-0 flex-1 truncate font-mono text-xs text-faint">{one.hash}</code>
            <span className="text-soft"><Ago at={one.appliedAt} /></span>
          </button>
        </li>
      ))}
    </ul>
  )
}
