// One document: what it says, what it was, and what changed in between.
import { useQuery } from '@tanstack/react-query'
import { ArrowLeft } from 'lucide-react'
import { useMemo } from 'react'
import { document as ask, history, type Revision } from '../../api/knowledge'
import { Link, useQueryValue } from '../../app/router'
import { Panel, Trouble, Waiting } from '../../ui/basics'
import { Code } from '../../ui/code'
import { Badge } from '../../ui/state'
import { Tabs } from '../../ui/tabs'
import { Ago } from '../../ui/time'
import { diff } from '../../ui/diff'
import { Changes } from '../../ui/changes'

export function Document({ id }: { id: string }) {
  const [tab, setTab] = useQueryValue('tab')
  const found = useQuery({ queryKey: ['document', id], queryFn: () => ask(id) })
  const past = useQuery({ queryKey: ['history', id], queryFn: () => history(id) })
  if (found.isPending) return <Waiting />
  if (!found.data) return <Panel><Trouble error={found.error} /></Panel>
  const title = (found.data.metadata?.['title'] as string | undefined) ?? found.data.path ?? id
  return (
    <Panel>
      <header className="mb-2 flex flex-wrap items-center gap-2">
        <Link to="/knowledge" aria-label="Back to all documents" className="rounded p-1 text-soft md:hidden"><ArrowLeft size={16} aria-hidden /></Link>
        <h2 className="text-[15px]">{title}</h2>
        <Badge>revision {found.data.revision}</Badge>
        <span className="figures ml-auto text-xs text-soft">{found.data.content.mime_type} · {found.data.content_length.toLocaleString('en')} characters · changed <Ago at={found.data.updated_at} /></span>
      </header>
      <Tabs
        label="Views of the document"
        at={tab || 'text'}
        go={(next) => setTab(next === 'text' ? '' : next)}
        tabs={[{ id: 'text', label: 'Text' }, { id: 'history', label: 'History', count: past.data?.revisions.length }, { id: 'metadata', label: 'Metadata' }]}
      >
        {tab === 'history' ? (
          <History id={id} revisions={past.data?.revisions ?? []} />
        ) : tab === 'metadata' ? (
          <Code value={found.data.metadata ?? {}} label="Metadata" />
        ) : (
          <pre tabIndex={0} aria-label="Text of the document" className="overflow-auto font-sans leading-6 whitespace-pre-wrap break-words">{found.data.content.body}</pre>
        )}
      </Tabs>
    </Panel>
  )
}

function History({ id, revisions }: { id: string; revisions: Revision[] }) {
  const [text, setText] = useQueryValue('revision')
  const at = Number(text) || revisions[0]?.revision || 1
  const index = revisions.findIndex((one) => one.revision === at)
  const before = revisions[index + 1]?.revision
  const now = useQuery({ queryKey: ['document', id, at], queryFn: () => ask(id, at), staleTime: Infinity, enabled: revisions.length > 0 })
  const then = useQuery({ queryKey: ['document', id, before], queryFn: () => ask(id, before), staleTime: Infinity, enabled: before !== undefined })
  const lines = useMemo(
    () => (now.data && (before === undefined || then.data) ? diff(then.data?.content.body ?? '', now.data.content.body) : []),
    [now.data, then.data, before],
  )
  return (
    <div className="grid gap-3.5 lg:grid-cols-[15rem_1fr]">
      <ol aria-label="Revisions" className="flex flex-col gap-0.5">
        {revisions.map((one) => (
          <li key={one.revision}>
            <button type="button" aria-pressed={one.revision === at} onClick={() => setText(String(one.revision))} className={`flex w-full items-center gap-2 rounded px-2 py-1 text-left hover:bg-raised ${one.revision === at ? 'bg-accent-wash' : ''}`}>
              <span className="figures w-6 text-faint">{one.revision}</span>
              <span className="min-w-0 flex-1 truncate">{one.op} <span className="text-soft">by {one.by}</span></span>
              <span className="text-xs text-soft"><Ago at={one.at} /></span>
            </button>
          </li>
        ))}
      </ol>
      <Changes lines={lines} />
    </div>
  )
}
