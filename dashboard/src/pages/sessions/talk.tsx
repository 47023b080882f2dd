// One session: what was said, what is being said, and a word of one's own.
import { useQuery } from '@tanstack/react-query'
import { ArrowLeft, GitBranch, GitFork, OctagonX, Send, Undo2 } from 'lucide-react'
import { useEffect, useReducer, useRef, useState, type KeyboardEvent } from 'react'
import { command, onEvent, useSessionLine, type Message, type SessionEvent, type Stats, type TreeNode } from '../../api/session'
import { queries } from '../../app/fresh'
import { go, Link } from '../../app/router'
import { Batch } from '../../live/batch'
import { Button, Panel, Trouble, Waiting } from '../../ui/basics'
import { compact } from '../../ui/time'
import { complain, say } from '../../ui/toast'
import { SILENT, told, type Conversation } from './conversation'
import { Said } from './said'
import { rowsOf } from './tree'

/** Each piece holds all that was said so far, so much more than this is never drawn in time; then the session is read anew. */
const PIECES = { everyMs: 50, limit: 2_000 }

type Step = { kind: 'all'; messages: Message[]; isWorking: boolean } | { kind: 'events'; events: SessionEvent[] }

const reduce = (conversation: Conversation, step: Step): Conversation =>
  step.kind === 'all' ? { ...SILENT, messages: step.messages, isWorking: step.isWorking } : step.events.reduce(told, conversation)

export function Talk({ id }: { id: string }) {
  const [conversation, dispatch] = useReducer(reduce, SILENT)
  const [error, setError] = useState<unknown>(null)
  const [isRead, setRead] = useState(false)
  const [isTree, setTree] = useState(false)
  const [round, again] = useReducer((count: number) => count + 1, 0)
  const opened = useSessionLine((line) => line.opened)
  useEffect(() => {
    let isOver = false
    // Pieces of an answer come quickly; they are drawn together.
    const batch = new Batch<SessionEvent>(PIECES, (events, skipped) => {
      if (isOver) return
      if (skipped > 0) again()
      else dispatch({ kind: 'events', events })
    })
    const stop = onEvent((session, event) => {
      if (session !== id) return
      batch.add(event)
      if (event.type === 'agent_end') void queries.invalidateQueries({ queryKey: ['session', id] })
    })
    const read = async () => {
      const { messages } = await command<{ messages: Message[] }>('get_messages', { sessionId: id })
      const state = await command<{ isStreaming: boolean }>('get_state', { sessionId: id })
      if (isOver) return
      dispatch({ kind: 'all', messages, isWorking: state.isStreaming })
      setRead(true)
      setError(null)
      await command('switch_session', { sessionId: id })
    }
    read().catch((cause: unknown) => {
      if (!isOver) setError(cause)
    })
    return () => {
      isOver = true
      stop()
    }
  }, [id, opened, round])
  if (error && !isRead) return <Panel><Trouble error={error} again={again} /></Panel>
  if (!isRead) return <Waiting what="Reading" />
  return (
    <div className="flex min-h-[28rem] min-w-0 flex-1 flex-col overflow-hidden rounded-lg border border-line bg-panel">
      <Head id={id} toggle={() => setTree(!isTree)} isTree={isTree} />
      {isTree ? (
        <Branches
          id={id}
          moved={() => {
            setTree(false)
            again()
          }}
        />
      ) : (
        <Messages conversation={conversation} />
      )}
      <Prompt id={id} isWorking={conversation.isWorking} />
    </div>
  )
}

function Head({ id, toggle, isTree }: { id: string; toggle: () => void; isTree: boolean }) {
  const stats = useQuery({ queryKey: ['session', id, 'stats'], queryFn: () => command<Stats>('get_session_stats', { sessionId: id }) })
  const context = useQuery({ queryKey: ['session', id, 'context'], queryFn: () => command<{ percent: number | null }>('get_context_usage', { sessionId: id }) })
  return (
    <header className="flex min-h-11 flex-wrap items-center gap-x-4 gap-y-1 border-b border-line px-3.5 py-1.5">
      <Link to="/sessions" aria-label="Back to all sessions" className="rounded p-1 text-soft md:hidden"><ArrowLeft size={16} aria-hidden /></Link>
      <h2 className="min-w-0 flex-1 truncate text-[13px]">{id}</h2>
      {stats.data && (
        <p className="figures flex flex-wrap gap-x-3 text-xs text-soft max-md:order-last max-md:w-full" data-testid="stats">
          <span>{compact(stats.data.tokens.input)} tokens in, {compact(stats.data.tokens.output)} out</span>
          <span>${stats.data.cost === 0 ? '0' : stats.data.cost.toFixed(4)}</span>
          {typeof context.data?.percent === 'number' && <span>{context.data.percent.toFixed(1)} % of the context</span>}
        </p>
      )}
      <Button tone={isTree ? 'accent' : 'quiet'} icon={GitBranch} aria-pressed={isTree} onClick={toggle}>Tree</Button>
    </header>
  )
}

function Messages({ conversation }: { conversation: Conversation }) {
  const frame = useRef<HTMLDivElement>(null)
  const isAtEnd = useRef(true)
  const { messages, partial } = conversation
  useEffect(() => {
    if (isAtEnd.current) frame.current?.scrollTo({ top: frame.current.scrollHeight })
  }, [messages, partial])
  return (
    <div
      ref={frame}
      tabIndex={0}
      role="log"
      aria-label="Conversation"
      onScroll={(event) => {
        const { scrollHeight, scrollTop, clientHeight } = event.currentTarget
        isAtEnd.current = scrollHeight - scrollTop - clientHeight < 60
      }}
      className="min-h-0 flex-1 overflow-y-auto px-3.5 py-4"
    >
      {messages.length === 0 && !partial && <p className="py-10 text-center text-soft">Say something to begin.</p>}
      <ol className="mx-auto flex max-w-3xl flex-col gap-4">
        {messages.map((message, index) => <Said key={index} message={message} running={conversation.running} />)}
        {partial && <Said message={partial} running={conversation.running} isPartial />}
        {conversation.isWorking && !partial && <li className="pulse text-soft">The agent works …</li>}
      </ol>
    </div>
  )
}

function Prompt({ id, isWorking }: { id: string; isWorking: boolean }) {
  const [text, setText] = useState('')
  const isOpen = useSessionLine((line) => line.isOpen)
  const send = () => {
    const message = text.trim()
    if (message === '' || !isOpen) return
    setText('')
    command(isWorking ? 'steer' : 'prompt', { sessionId: id, message }).catch((error: unknown) => {
      setText((now) => (now === '' ? message : now))
      complain(error)
    })
  }
  const press = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
    event.preventDefault()
    send()
  }
  return (
    <form
      className="flex items-end gap-2 border-t border-line p-2.5"
      onSubmit={(event) => {
        event.preventDefault()
        send()
      }}
    >
      <textarea
        aria-label="Your message"
        rows={1}
        placeholder={isWorking ? 'A word in between, to steer it' : 'Message, Enter to send'}
        className="field max-h-40 min-h-[34px] flex-1 resize-none [field-sizing:content]"
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={press}
      />
      {isWorking && <Button tone="danger" className="min-h-[34px]" icon={OctagonX} onClick={() => void command('abort', { sessionId: id }).catch(complain)}>Abort</Button>}
      <Button type="submit" tone="accent" className="min-h-[34px]" icon={Send} disabled={!isOpen || text.trim() === ''}>{isWorking ? 'Steer' : 'Send'}</Button>
    </form>
  )
}

function Branches({ id, moved }: { id: string; moved: () => void }) {
  const found = useQuery({
    queryKey: ['session', id, 'tree'],
    queryFn: () => command<{ nodes: TreeNode[]; currentLeafId: string | null }>('get_tree', { sessionId: id }),
    staleTime: 0,
  })
  if (!found.data) return found.error ? <Trouble error={found.error} /> : <Waiting />
  const fork = async (entryId: string) => {
    const made = await command<{ sessionId?: string; newSessionId?: string }>('fork', { sessionId: id, entryId })
    const fresh = made.newSessionId ?? made.sessionId
    say('A new session begins before that message.')
    await queries.invalidateQueries({ queryKey: ['sessions'] })
    if (fresh) go(`/sessions/${encodeURIComponent(fresh)}`)
  }
  const back = async (entryId: string) => {
    await command('navigate_tree', { sessionId: id, targetId: entryId })
    await queries.invalidateQueries({ queryKey: ['session', id] })
    moved()
  }
  return (
    <ol aria-label="Tree of messages" className="min-h-0 flex-1 overflow-y-auto py-2">
      {rowsOf(found.data.nodes, found.data.currentLeafId).map(({ node, depth, isCurrent }) => (
        <li key={node.entryId} style={{ paddingLeft: 14 + depth * 18 }} className={`group flex min-h-9 items-center gap-2 py-0.5 pr-3 hover:bg-raised ${isCurrent ? '' : 'text-soft'}`}>
          <span aria-hidden className={`size-2 shrink-0 rounded-full ${isCurrent ? 'bg-accent' : 'bg-line'}`} />
          <span className="w-20 shrink-0 text-xs text-soft">{node.role ?? node.entryType}</span>
          <span className="min-w-0 flex-1 truncate">{node.text || '…'}</span>
          {!isCurrent && <Button tone="quiet" icon={Undo2} onClick={() => void back(node.entryId).catch(complain)}>Go here</Button>}
          {node.role === 'user' && <Button tone="quiet" icon={GitFork} onClick={() => void fork(node.entryId).catch(complain)}>Fork</Button>}
        </li>
      ))}
    </ol>
  )
}
