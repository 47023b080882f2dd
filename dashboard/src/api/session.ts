// Sessions, over the WebSocket that every client of theirs uses: commands go out, each is answered once, events come as they happen.
import { create } from 'zustand'
import { backoffMs } from '../live/backoff'
import { protocols, useBearer } from './bearer'
import { Failure, findOutWhy, freshKey, type Json } from './client'

export interface Model {
  id: string
  provider: string
  name: string
}

export interface SessionInfo {
  sessionId: string
  createdAt: string
  cwd: string
  isStreaming: boolean
  messageCount: number
  model: Model | null
  name?: string
  thinkingLevel: string
}

export type Content =
  | { type: 'text'; text: string }
  | { type: 'thinking'; thinking?: string; text?: string }
  | { type: 'toolCall'; id: string; name: string; arguments: Json }
  | { type: 'image'; mimeType?: string }

export interface Message {
  role: 'user' | 'assistant' | 'toolResult' | string
  content: Content[] | string
  timestamp?: number
  toolCallId?: string
  toolName?: string
  isError?: boolean
  stopReason?: string
  errorMessage?: string
  usage?: { input: number; output: number; cost: number }
}

export interface TreeNode {
  entryId: string
  parentId: string | null
  entryType: string
  role?: string
  text?: string
  timestamp: string
}

export interface Stats {
  totalMessages: number
  toolCalls: number
  cost: number
  tokens: { input: number; output: number; total: number }
}

export interface SessionEvent {
  type: string
  message?: Message
  [more: string]: unknown
}

interface Heard {
  type: string
  id?: string
  success?: boolean
  error?: string
  errorCode?: string
  data?: unknown
  sessionId?: string
  seq?: number
  event?: SessionEvent
}

interface Waiting {
  give: (data: unknown) => void
  fail: (failure: Failure) => void
}

type Hears = (sessionId: string, event: SessionEvent) => void

export const useSessionLine = create<{ isOpen: boolean; opened: number }>(() => ({ isOpen: false, opened: 0 }))

const waiting = new Map<string, Waiting>()
const hearers = new Set<Hears>()
const noticed = new Set<() => void>()
let socket: WebSocket | undefined
let failures = 0
let timer: ReturnType<typeof setTimeout> | undefined
let queue: string[] = []
let users = 0

/** Holds the line open while somebody looks at sessions. */
export function hold(): () => void {
  users += 1
  if (users === 1) connect()
  return () => {
    users -= 1
    if (users === 0) {
      socket?.close()
      socket = undefined
    }
  }
}

function connect(): void {
  if (users === 0) return
  const mine = new WebSocket(`${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/ws/session`, protocols())
  socket = mine
  let wasOpen = false
  mine.onopen = () => {
    wasOpen = true
    failures = 0
    useSessionLine.setState(({ opened }) => ({ isOpen: true, opened: opened + 1 }))
    for (const text of queue) mine.send(text)
    queue = []
  }
  mine.onmessage = (message) => hear(JSON.parse(String(message.data)) as Heard)
  mine.onclose = () => {
    useSessionLine.setState({ isOpen: false })
    for (const one of waiting.values()) one.fail(new Failure('The connection was lost; what became of it is shown when it is back.', 0, 'LOST'))
    waiting.clear()
    // What was said to be lost is not sent later after all.
    queue = []
    if (socket !== mine) return
    if (!wasOpen) findOutWhy()
    failures += 1
    timer = setTimeout(connect, backoffMs(failures))
  }
}

// Whoever has just shown a token need not wait for the next try.
useBearer.subscribe((now, before) => {
  if (now.token === before.token || socket?.readyState === WebSocket.OPEN) return
  clearTimeout(timer)
  failures = 0
  connect()
})

function hear(heard: Heard): void {
  if (heard.type === 'response' && heard.id !== undefined) {
    const one = waiting.get(heard.id)
    waiting.delete(heard.id)
    if (heard.success) one?.give(heard.data)
    else one?.fail(new Failure(heard.error ?? 'It failed.', 200, heard.errorCode ?? 'FAILED'))
  } else if (heard.type === 'event' && heard.sessionId !== undefined && heard.event) {
    for (const hearer of hearers) hearer(heard.sessionId, heard.event)
  } else if (heard.type === 'session_created' || heard.type === 'session_deleted') {
    for (const notice of noticed) notice()
  }
}

export function command<T>(type: string, more: Record<string, unknown> = {}): Promise<T> {
  const id = freshKey()
  const text = JSON.stringify({ type, id, ...more })
  return new Promise<T>((give, fail) => {
    waiting.set(id, { give: (data) => give(data as T), fail })
    if (socket?.readyState === WebSocket.OPEN) socket.send(text)
    else queue.push(text)
  })
}

export function onEvent(hearer: Hears): () => void {
  hearers.add(hearer)
  return () => hearers.delete(hearer)
}

export function onChange(notice: () => void): () => void {
  noticed.add(notice)
  return () => noticed.delete(notice)
}

export const listSessions = () => command<{ sessions: SessionInfo[] }>('list_sessions')
export const textOf = (message: Message): string =>
  typeof message.content === 'string' ? message.content : message.content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('')
