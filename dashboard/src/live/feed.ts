// What happens on the server, live: over a WebSocket, over server-sent events where that does not open, and again after every loss.
import { create } from 'zustand'
import { authorization, findOutWhy } from '../api/client'
import { protocols } from '../api/bearer'
import { backoffMs } from './backoff'
import { Batch } from './batch'
import { Burst } from './burst'
import { SentEvents } from './sse'

export interface LiveEvent {
  type: string
  id?: number
  executionId?: string
  workflowId?: string
  stepId?: string
  timestamp: string
  level?: string
  entry?: string
  data?: unknown
}

export type Phase = 'connecting' | 'live' | 'away'

export interface Connection {
  phase: Phase
  via: 'websocket' | 'events'
  /** When the next try is made, in milliseconds of the clock. */
  retryAt: number | null
  failures: number
  /** Grows each time a connection is made after one was lost: what is shown may be old. */
  returns: number
  eventsPerSecond: number
  /** How many events of the latest burst nobody looked at one by one; what they changed was asked for anew. */
  skipped: number
}

export const useConnection = create<Connection>(() => ({
  phase: 'connecting',
  via: 'websocket',
  retryAt: null,
  failures: 0,
  returns: 0,
  eventsPerSecond: 0,
  skipped: 0,
}))

/** Hears what happened; or, where much was skipped, that anything may have. */
type Listener = (events: LiveEvent[], skipped: number) => void

const listeners = new Set<Listener>()

export function listen(listener: Listener): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

const tell = (events: LiveEvent[], skipped: number): void => {
  for (const listener of listeners) listener(events, skipped)
}

const burst = new Burst((fresh, total) => {
  useConnection.setState({ skipped: total })
  tell([], fresh)
})

/** Three thousand usual events a second. Where there are more, one look at the server costs less than each of them; a long one counts as many. */
const BOUNDS = { everyMs: 100, limit: 300, weigh: (text: string) => Math.max(1, text.length / 10_000) }

/** Texts, not events: what is skipped is not even read. */
const batch = new Batch<string>(BOUNDS, (texts, skipped) => {
  rate.count(texts.length + skipped)
  if (skipped > 0) {
    burst.skip(texts.length + skipped)
    rememberLast(texts)
    return
  }
  const events = texts.flatMap(read)
  for (const event of events) lastId = event.id ?? lastId
  if (events.length > 0) tell(events, 0)
})

/** Where to go on after a loss: the newest event that has a number. */
function rememberLast(texts: string[]): void {
  for (const text of texts.toReversed()) {
    const id = read(text)[0]?.id
    if (id === undefined) continue
    lastId = id
    return
  }
}

/** How many events came in the last seconds. */
const rate = {
  counts: [] as [number, number][],
  count(events: number): void {
    this.counts.push([performance.now(), events])
  },
  measure(): number {
    const since = performance.now() - 5_000
    this.counts = this.counts.filter(([at]) => at >= since)
    return Math.round(this.counts.reduce((sum, [, events]) => sum + events, 0) / 5)
  },
}

let lastId: number | undefined
let timer: ReturnType<typeof setTimeout> | undefined
let close: (() => void) | undefined
/** A WebSocket that never opened: a proxy in between may not know them. */
let refusedSockets = 0

export function begin(): void {
  connect()
  addEventListener('online', () => tryNow())
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible') tryNow()
  })
  setInterval(() => {
    const eventsPerSecond = rate.measure()
    if (useConnection.getState().eventsPerSecond !== eventsPerSecond) useConnection.setState({ eventsPerSecond })
  }, 1_000)
}

export function tryNow(): void {
  if (useConnection.getState().phase !== 'away') return
  clearTimeout(timer)
  connect()
}

function connect(): void {
  close?.()
  // What was heard and not yet looked at says where to go on.
  batch.flush()
  const usesEvents = refusedSockets >= 2
  useConnection.setState({ phase: 'connecting', via: usesEvents ? 'events' : 'websocket', retryAt: null })
  close = usesEvents ? overEvents() : overSocket()
}

function read(text: string): LiveEvent[] {
  try {
    const event = JSON.parse(text) as LiveEvent
    return event.type === 'pong' ? [] : [event]
  } catch {
    return []
  }
}

function hear(text: string): void {
  if (useConnection.getState().phase === 'live') {
    batch.add(text)
    return
  }
  // The first word on every connection is that there is one.
  for (const event of read(text)) {
    if (event.type !== 'connection.established') continue
    lastId ??= (event.data as { lastEventId?: number } | undefined)?.lastEventId
    opened()
  }
}

function opened(): void {
  const { failures, returns } = useConnection.getState()
  useConnection.setState({ phase: 'live', failures: 0, retryAt: null, returns: failures > 0 ? returns + 1 : returns })
}

function lost(): void {
  close = undefined
  const failures = useConnection.getState().failures + 1
  const wait = backoffMs(failures)
  useConnection.setState({ phase: 'away', failures, retryAt: Date.now() + wait })
  clearTimeout(timer)
  timer = setTimeout(connect, wait)
}

function overSocket(): () => void {
  const query = lastId === undefined ? '' : `?lastEventId=${lastId}`
  const socket = new WebSocket(`${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/ws${query}`, protocols())
  let wasOpen = false
  let isOurs = true
  socket.onmessage = (message) => hear(String(message.data))
  socket.onopen = () => {
    wasOpen = true
    refusedSockets = 0
  }
  socket.onclose = () => {
    if (!isOurs) return
    if (!wasOpen) {
      refusedSockets += 1
      findOutWhy()
    }
    lost()
  }
  return () => {
    isOurs = false
    socket.close()
  }
}

function overEvents(): () => void {
  const ending = new AbortController()
  const query = lastId === undefined ? '' : `?lastEventId=${lastId}`
  const run = async () => {
    const response = await fetch(`/v1/events${query}`, { headers: authorization(), signal: ending.signal })
    if (!response.ok || response.body === null) throw new Error(String(response.status))
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
    const events = new SentEvents()
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      for (const sent of events.take(value)) hear(sent.data)
    }
  }
  run()
    .catch(() => undefined)
    .finally(() => {
      if (ending.signal.aborted) return
      // The next time a WebSocket may work again.
      refusedSockets = 0
      lost()
    })
  return () => ending.abort()
}
