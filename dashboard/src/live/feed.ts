// What happens on the server, live: over a WebSocket, over server-sent events where that does not open, and again after every loss.
import { create } from 'zustand'
import { authorization, findOutWhy } from '../api/client'
import { protocols } from '../api/bearer'
import { backoffMs } from './backoff'
import { Batch } from './batch'
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
}

export const useConnection = create<Connection>(() => ({
  phase: 'connecting',
  via: 'websocket',
  retryAt: null,
  failures: 0,
  returns: 0,
  eventsPerSecond: 0,
}))

type Listener = (events: LiveEvent[]) => void

const listeners = new Set<Listener>()

export function listen(listener: Listener): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

const batch = new Batch<LiveEvent>((events, dropped) => {
  rate.count(events.length + dropped)
  // Who missed something asks anew.
  if (dropped > 0) useConnection.setState(({ returns }) => ({ returns: returns + 1 }))
  for (const listener of listeners) listener(events)
})

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
  const usesEvents = refusedSockets >= 2
  useConnection.setState({ phase: 'connecting', via: usesEvents ? 'events' : 'websocket', retryAt: null })
  close = usesEvents ? overEvents() : overSocket()
}

function hear(text: string): void {
  let event: LiveEvent
  try {
    event = JSON.parse(text) as LiveEvent
  } catch {
    return
  }
  if (event.id !== undefined) lastId = event.id
  if (event.type === 'connection.established') {
    lastId ??= (event.data as { lastEventId?: number } | undefined)?.lastEventId
    opened()
  } else if (event.type !== 'pong') {
    batch.add(event)
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
