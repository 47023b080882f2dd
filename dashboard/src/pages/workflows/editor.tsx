// A definition being written: the server checks it while one types, and says everything that is wrong at once.
import { useQuery } from '@tanstack/react-query'
import { CheckCircle2, Save, XCircle } from 'lucide-react'
import { lazy, Suspense, useDeferredValue, useEffect, useMemo, useRef, useState } from 'react'
import type { Json, Problem } from '../../api/client'
import { apply, validate, type Definition } from '../../api/workflows'
import { queries } from '../../app/fresh'
import { go } from '../../app/router'
import { Button, Panel } from '../../ui/basics'
import { say } from '../../ui/toast'
import { useAct } from '../executions/acts'
import { lineOf, positionOf } from './positions'

const Graph = lazy(() => import('../../graph/graph'))

export default function Editor({ begin }: { begin: string }) {
  const [text, setText] = useState(begin)
  const [isBusy, act] = useAct()
  const area = useRef<HTMLTextAreaElement>(null)
  const settled = useDebounced(text, 250)
  const parsed = useMemo(() => parse(settled), [settled])
  const checked = useQuery({
    queryKey: ['validate', settled],
    queryFn: ({ signal }) => validate(parsed.value ?? null, signal),
    enabled: parsed.value !== undefined,
    staleTime: Infinity,
    gcTime: 30_000,
    placeholderData: (before) => before,
  })
  const problems: Problem[] = parsed.problem ? [parsed.problem] : (checked.data?.problems ?? [])
  const isValid = parsed.value !== undefined && checked.data?.valid === true && settled === text
  const drawn = useDeferredValue(asDefinition(parsed.value))
  const jump = (position: number) => {
    area.current?.focus()
    area.current?.setSelectionRange(position, position)
    const line = lineOf(text, position)
    area.current?.scrollTo({ top: Math.max(0, (line - 4) * 20) })
  }
  const save = () =>
    act(async () => {
      const done = await apply(JSON.parse(text) as Json)
      say(done.unchanged ? 'It is stored like this already.' : `Stored as revision ${done.revision}.`)
      await queries.invalidateQueries({ queryKey: ['workflows'] })
      await queries.invalidateQueries({ queryKey: ['workflow', done.id] })
      go(`/workflows/${encodeURIComponent(done.id)}`)
    })
  return (
    <div className="grid min-h-0 gap-3.5 lg:grid-cols-[1.2fr_1fr]">
      <Panel
        title="Definition"
        flush
        actions={<Button tone="accent" icon={Save} busy={isBusy} disabled={!isValid} onClick={save}>Store</Button>}
      >
        <Lines text={text} wrong={problems.map((one) => lineOf(text, positionOf(text, one.path)))} area={area} change={setText} />
      </Panel>
      <div className="flex min-w-0 flex-col gap-3.5">
        <Panel
          title={
            problems.length === 0
              ? <span className="flex items-center gap-1.5 text-good"><CheckCircle2 size={15} aria-hidden /> {checked.data ? 'Everything is in order' : 'Checking …'}</span>
              : <span className="flex items-center gap-1.5 text-bad"><XCircle size={15} aria-hidden /> {problems.length === 1 ? 'One thing is wrong' : `${problems.length} things are wrong`}</span>
          }
          flush
        >
          <ul aria-label="Problems" className="max-h-72 divide-y divide-line/60 overflow-auto">
            {problems.map((one) => {
              const position = positionOf(text, one.path)
              return (
                <li key={one.path + one.message}>
                  <button type="button" onClick={() => jump(position)} className="w-full px-3.5 py-2 text-left hover:bg-raised">
                    <span className="figures text-xs text-faint">line {lineOf(text, position)} · <code>{one.path || '/'}</code></span>
                    <span className="block">{one.message}</span>
                    {one.hint && <span className="block text-xs text-soft">{one.hint}</span>}
                  </button>
                </li>
              )
            })}
          </ul>
        </Panel>
        <div className="h-80 rounded-lg border border-line bg-panel lg:h-auto lg:min-h-80 lg:flex-1">
          <Suspense fallback={null}>{drawn && <Graph definition={drawn} />}</Suspense>
        </div>
      </div>
    </div>
  )
}

function Lines({ text, wrong, area, change }: { text: string; wrong: number[]; area: React.RefObject<HTMLTextAreaElement | null>; change: (text: string) => void }) {
  const gutter = useRef<HTMLDivElement>(null)
  const marked = new Set(wrong)
  const count = text.split('\n').length
  return (
    <div className="flex h-[30rem] font-mono text-xs leading-5 lg:h-[max(30rem,calc(100dvh-17rem))]">
      <div ref={gutter} aria-hidden className="w-11 shrink-0 overflow-hidden border-r border-line bg-raised py-2 text-right text-faint select-none">
        {Array.from({ length: count }, (_, index) => (
          <div key={index} className={`pr-2 ${marked.has(index + 1) ? 'bg-bad-wash font-semibold text-bad' : ''}`}>{index + 1}</div>
        ))}
      </div>
      <textarea
        ref={area}
        aria-label="Definition of the workflow, as JSON"
        spellCheck={false}
        wrap="off"
        value={text}
        onChange={(event) => change(event.target.value)}
        onScroll={(event) => {
          if (gutter.current) gutter.current.scrollTop = event.currentTarget.scrollTop
        }}
        className="min-w-0 flex-1 resize-none bg-transparent px-2.5 py-2 outline-none"
      />
    </div>
  )
}

function parse(text: string): { value?: Json; problem?: Problem } {
  try {
    return { value: JSON.parse(text) as Json }
  } catch (error) {
    return { problem: { path: '', message: (error as Error).message, hint: 'Workflows are written in JSON.', code: 'PARSE' } }
  }
}

/** Enough of a workflow to draw. */
export function asDefinition(value: Json | undefined): Definition | undefined {
  const steps = (value as { steps?: unknown } | null | undefined)?.steps
  if (!Array.isArray(steps)) return undefined
  const sound = steps.filter((step): step is Definition['steps'][number] => typeof (step as { id?: unknown } | null)?.id === 'string')
  const known = new Set(sound.map((step) => step.id))
  return sound.length === known.size && sound.length > 0 ? { ...(value as unknown as Definition), steps: sound } : undefined
}

function useDebounced(value: string, ms: number): string {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms)
    return () => clearTimeout(timer)
  }, [value, ms])
  return settled
}
