// Tools: all of them, a form for each, and the messages behind it.
import { useQuery } from '@tanstack/react-query'
import { ArrowLeft, Play, Wrench } from 'lucide-react'
import { useMemo, useState } from 'react'
import { rpc, toolCall, tools, valueOf, type RpcAnswer, type Tool } from '../../api/mcp'
import type { Json } from '../../api/client'
import { Link, useQueryValue } from '../../app/router'
import { Button, Empty, Field, PageHead, Panel, Trouble, Waiting } from '../../ui/basics'
import { Code, pretty } from '../../ui/code'
import { beginning, SchemaForm } from '../../ui/schema-form'
import { Badge } from '../../ui/state'
import { Tabs } from '../../ui/tabs'
import { span } from '../../ui/time'
import { useAct } from '../executions/acts'
import { Servers } from './servers'

/** Tools of other servers are named after them. */
export const serverOf = (name: string): string => (name.includes('.') ? (name.split('.')[0] ?? '') : '')

export default function Tools({ parts }: { parts: string[] }) {
  const found = useQuery({ queryKey: ['tools'], queryFn: tools, refetchInterval: 30_000 })
  const [search, setSearch] = useQueryValue('q')
  const chosen = found.data?.find((tool) => tool.name === parts[0])
  const shown = useMemo(
    () => (found.data ?? []).filter((tool) => `${tool.name} ${tool.title ?? ''} ${tool.description ?? ''}`.toLowerCase().includes(search.toLowerCase())),
    [found.data, search],
  )
  if (found.isPending) return <Waiting what="Loading tools" />
  if (!found.data) return <Trouble error={found.error} again={() => void found.refetch()} />
  return (
    <>
      <PageHead title="Tools" about="What agents can call here: built in, and of other MCP servers." />
      <div className="grid min-h-0 flex-1 gap-3.5 md:grid-cols-[17rem_1fr]">
        <div className={`flex min-h-0 min-w-0 flex-col gap-3.5 ${chosen ? 'max-md:hidden' : ''}`}>
          <Panel flush className="min-h-0 overflow-hidden">
            <div className="p-2">
              <input type="search" aria-label="Search tools" placeholder="Search  ( / )" className="field" value={search} onChange={(event) => setSearch(event.target.value)} />
            </div>
            <nav aria-label="Tools" className="max-h-[32rem] overflow-y-auto pb-1.5 md:max-h-[max(20rem,calc(100dvh-24rem))]">
              {shown.map((tool) => (
                <Link
                  key={tool.name}
                  to={`/tools/${encodeURIComponent(tool.name)}${search === '' ? '' : `?q=${encodeURIComponent(search)}`}`}
                  aria-current={tool.name === chosen?.name ? 'true' : undefined}
                  className={`block px-3 py-1.5 hover:bg-raised ${tool.name === chosen?.name ? 'bg-accent-wash text-accent' : ''}`}
                >
                  <span className="block truncate font-medium">{tool.name}</span>
                  <span className="block truncate text-xs text-soft">{tool.title ?? tool.description ?? ''}</span>
                </Link>
              ))}
              {shown.length === 0 && <p className="px-3 py-4 text-center text-soft">No tool fits.</p>}
            </nav>
          </Panel>
          <Servers />
        </div>
        {chosen ? <One key={chosen.name} tool={chosen} /> : <div className="max-md:hidden"><Panel><Empty icon={Wrench} title="Choose a tool">Each has a form made from its schema.</Empty></Panel></div>}
      </div>
    </>
  )
}

function One({ tool }: { tool: Tool }) {
  const [tab, setTab] = useState('form')
  const [args, setArgs] = useState<Json>(() => beginning(tool.inputSchema))
  const [raw, setRaw] = useState<string | null>(null)
  const [done, setDone] = useState<{ answer: RpcAnswer; ms: number } | null>(null)
  const [isBusy, act] = useAct()
  const message = useMemo(() => toolCall(tool.name, args), [tool.name, args])
  const send = () =>
    act(async () => {
      const began = performance.now()
      const sent = tab === 'raw' && raw !== null ? (JSON.parse(raw) as Record<string, Json>) : message
      setDone(null)
      const answer = await rpc(sent)
      setDone({ answer, ms: performance.now() - began })
    })
  const marks = tool.annotations ?? {}
  const isBad = done !== null && (done.answer.error !== undefined || done.answer.result?.['isError'] === true)
  return (
    <div className="flex min-w-0 flex-col gap-3.5">
      <Panel>
        <div className="mb-1 flex flex-wrap items-center gap-2">
          <Link to="/tools" aria-label="Back to all tools" className="rounded p-1 text-soft md:hidden"><ArrowLeft size={16} aria-hidden /></Link>
          <h2 className="font-mono text-[15px]">{tool.name}</h2>
          {marks.readOnlyHint && <Badge hue="good">only reads</Badge>}
          {marks.destructiveHint && <Badge hue="bad">may destroy</Badge>}
          {marks.idempotentHint && !marks.readOnlyHint && <Badge>safe to repeat</Badge>}
          {marks.openWorldHint && <Badge hue="wait">reaches out</Badge>}
          {serverOf(tool.name) !== '' && <Badge hue="accent">{serverOf(tool.name)}</Badge>}
        </div>
        <p className="mb-3 text-soft">{tool.description}</p>
        <Tabs label="How to call it" at={tab} go={setTab} tabs={[{ id: 'form', label: 'Form' }, { id: 'raw', label: 'JSON-RPC' }, { id: 'schema', label: 'Schema' }]}>
          {tab === 'schema' ? (
            <Code value={tool.inputSchema} label="Input schema" />
          ) : tab === 'raw' ? (
            <Field label="Message">
              <textarea className="field min-h-48 font-mono text-xs" spellCheck={false} value={raw ?? pretty(message)} onChange={(event) => setRaw(event.target.value)} />
            </Field>
          ) : Object.keys(tool.inputSchema.properties ?? {}).length === 0 ? (
            <p className="text-soft">It takes no arguments.</p>
          ) : (
            <SchemaForm schema={tool.inputSchema as unknown as Json} value={args} change={setArgs} />
          )}
        </Tabs>
        {tab !== 'schema' && <Button className="mt-3" tone="accent" icon={Play} busy={isBusy} onClick={send}>Call</Button>}
      </Panel>
      {done && (
        <Panel title={<span className={isBad ? 'text-bad' : 'text-good'}>{isBad ? 'It failed' : 'It answered'}</span>} actions={<span className="figures text-xs text-soft">{span(done.ms)}</span>}>
          <Code value={tab === 'raw' ? done.answer : (done.answer.error ?? valueOf(done.answer))} label="Answer" />
        </Panel>
      )}
    </div>
  )
}
