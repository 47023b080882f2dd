// Knowledge: the documents, and what they answer.
import { useQuery } from '@tanstack/react-query'
import { BookOpen, Quote } from 'lucide-react'
import { useState } from 'react'
import { children, search, type Passage } from '../../api/knowledge'
import { Link, useQueryValue } from '../../app/router'
import { Button, Empty, PageHead, Panel, Trouble, Waiting } from '../../ui/basics'
import { Document } from './document'
import { highlight } from './highlight'
import { Tree } from './tree'

const COUNT = 8

export default function Knowledge({ parts }: { parts: string[] }) {
  const [query, setQuery] = useQueryValue('q')
  const [text, setText] = useState(query)
  const root = useQuery({ queryKey: ['children', 'root'], queryFn: () => children('root') })
  const isEmpty = root.data?.children.length === 0
  return (
    <>
      <PageHead title="Knowledge" about="Documents that people and agents write, and the passages that answer a question." />
      <form
        role="search"
        className="mb-3 flex gap-2"
        onSubmit={(event) => {
          event.preventDefault()
          setQuery(text.trim())
        }}
      >
        <input type="search" aria-label="Ask the documents" placeholder="Ask the documents  ( / )" className="field" value={text} onChange={(event) => setText(event.target.value)} />
        <Button type="submit" tone="accent">Ask</Button>
      </form>
      {root.error && !root.data ? <Trouble error={root.error} /> : null}
      {isEmpty && query === '' ? (
        <Panel>
          <Empty icon={BookOpen} title="There are no documents yet">
            Put a folder of Markdown in:
            <code className="mt-2 block rounded bg-raised px-2 py-1 font-mono text-xs">orchestr8 knowledge import docs</code>
          </Empty>
        </Panel>
      ) : (
        <div className="grid min-h-0 gap-3.5 md:grid-cols-[16rem_1fr]">
          <Panel title="Documents" flush className={`self-start ${parts[0] || query ? 'max-md:hidden' : ''}`}><Tree chosen={parts[0]} /></Panel>
          <div className="flex min-w-0 flex-col gap-3.5">
            {query !== '' && <Answers query={query} />}
            {parts[0] !== undefined && <Document key={parts[0]} id={parts[0]} />}
            {query === '' && parts[0] === undefined && <div className="max-md:hidden"><Panel><Empty icon={BookOpen} title="Choose a document, or ask a question" /></Panel></div>}
          </div>
        </div>
      )}
    </>
  )
}

function Answers({ query }: { query: string }) {
  const found = useQuery({ queryKey: ['search', query], queryFn: () => search(query, COUNT), staleTime: 10_000 })
  if (found.isPending) return <Panel><Waiting what="Looking" /></Panel>
  if (!found.data) return <Panel><Trouble error={found.error} /></Panel>
  const best = Math.max(...found.data.context.map((one) => one.score), 0.0001)
  return (
    <Panel title="Passages" actions={<span className="text-xs text-soft">{found.data.retrieval ?? `${found.data.context.length} found`}</span>} flush>
      {found.data.response && <p className="border-b border-line bg-accent-wash px-3.5 py-2.5 text-[14px]">{found.data.response}</p>}
      {found.data.context.length === 0 && <Empty icon={Quote} title="Nothing answers this" />}
      <ol className="divide-y divide-line/60">
        {found.data.context.map((one) => <Cited key={`${one.document_id}:${one.offset}`} passage={one} query={query} best={best} />)}
      </ol>
    </Panel>
  )
}

function Cited({ passage, query, best }: { passage: Passage; query: string; best: number }) {
  return (
    <li className="px-3.5 py-2.5">
      <p className="mb-1 flex items-center gap-2 text-xs text-soft">
        <Link to={`/knowledge/${encodeURIComponent(passage.document_id)}`} className="font-medium text-accent hover:underline">{passage.metadata?.title ?? passage.document_id}</Link>
        <span className="figures">revision {passage.revision}, from {passage.offset}</span>
        <span className="ml-auto h-1.5 w-20 overflow-hidden rounded-full bg-idle-wash" aria-hidden><span className="block h-full bg-accent" style={{ width: `${(passage.score / best) * 100}%` }} /></span>
        <span className="figures" title="Score">{passage.score.toFixed(3)}</span>
      </p>
      <p className="whitespace-pre-wrap">
        {highlight(passage.snippet, query).map((piece, index) =>
          piece.isHit ? <mark key={index} className="rounded-sm bg-wait-wash px-0.5 text-wait">{piece.text}</mark> : <span key={index}>{piece.text}</span>,
        )}
      </p>
    </li>
  )
}
