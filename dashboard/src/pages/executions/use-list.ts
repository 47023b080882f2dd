// The executions that fit a filter: page after page as one scrolls, and live at the top.
import { useCallback, useEffect, useRef, useState } from 'react'
import type { ExecutionSummary } from '../../api/client'
import { executions, type Filter } from '../../api/workflows'
import { listen, useConnection } from '../../live/feed'
import { isJoined, isOpenBelow, withEvents, withNewest, withOlder } from './merge'

const PAGE = 500
const NEWEST = 100
/** How many pages are read to join the newest to what is shown; beyond them the list begins anew. */
const PAGES_LIMIT = 8
const REFRESH_MS = 900

interface List {
  rows: ExecutionSummary[]
  isLoading: boolean
  isEnd: boolean
  error: unknown
  more: () => void
  again: () => void
}

/** What was shown last, for whoever comes back: it is there at once, also when the server is away. */
let kept: { key: string; rows: ExecutionSummary[] } = { key: '', rows: [] }

type Change = (rows: ExecutionSummary[]) => ExecutionSummary[]

export function useList(filter: Filter): List {
  const [rows, setRows] = useState<ExecutionSummary[]>([])
  const [isLoading, setLoading] = useState(true)
  const [isEnd, setEnd] = useState(false)
  const [error, setError] = useState<unknown>(null)
  // Changes come from several sides between two drawings; each begins with what the last one left.
  const shown = useRef<ExecutionSummary[]>([])
  const cursor = useRef<string | null>(null)
  const asking = useRef<AbortController | null>(null)
  const returns = useConnection((connection) => connection.returns)
  const key = JSON.stringify(filter)

  const put = useCallback((change: Change) => {
    shown.current = change(shown.current)
    kept = { key, rows: shown.current }
    setRows(shown.current)
  }, [key])
  const endAt = useCallback((next: string | null) => {
    cursor.current = next
    setEnd(next === null)
  }, [])

  const load = useCallback(
    (isFirst: boolean) => {
      if (!isFirst && asking.current) return
      asking.current?.abort()
      const mine = new AbortController()
      asking.current = mine
      setLoading(true)
      executions(JSON.parse(key) as Filter, PAGE, isFirst ? null : cursor.current, mine.signal)
        .then((page) => {
          if (mine.signal.aborted) return
          endAt(page.nextCursor)
          setError(null)
          put((rows) => (isFirst ? page.executions : withOlder(rows, page.executions)))
        })
        .catch((cause: unknown) => {
          if (!mine.signal.aborted) setError(cause)
        })
        .finally(() => {
          if (asking.current !== mine) return
          asking.current = null
          setLoading(false)
        })
    },
    [key, put, endAt],
  )

  useEffect(() => put(() => (kept.key === key ? kept.rows : [])), [key, put])
  useEffect(() => {
    load(true)
    return () => {
      asking.current?.abort()
      asking.current = null
    }
  }, [load, returns])

  useEffect(() => {
    const over = new AbortController()
    const filter = JSON.parse(key) as Filter
    let timer: ReturnType<typeof setTimeout> | undefined
    let isReading = false
    let isSkipped = false
    const refresh = async () => {
      timer = undefined
      isReading = true
      const isAfterSkip = isSkipped
      isSkipped = false
      try {
        const { read, next } = await readNewest(filter, () => shown.current, isAfterSkip, over.signal)
        if (over.signal.aborted) return
        const merged = withNewest(shown.current, read, next === null)
        if (merged.isCut) {
          // An older page on its way belongs to the list that was.
          asking.current?.abort()
          asking.current = null
          setLoading(false)
          endAt(next)
        }
        put(() => merged.rows)
        setError(null)
      } catch {
        // Whoever is away is asked again when it is back.
      } finally {
        isReading = false
      }
    }
    const later = () => {
      timer ??= setTimeout(() => {
        timer = undefined
        if (isReading) later()
        else void refresh()
      }, REFRESH_MS)
    }
    const stop = listen((events, skipped) => {
      if (skipped === 0 && !events.some((event) => event.executionId !== undefined)) return
      isSkipped ||= skipped > 0
      if (events.length > 0) put((rows) => withEvents(rows, events, filter.status))
      later()
    })
    return () => {
      over.abort()
      stop()
      clearTimeout(timer)
    }
  }, [key, put, endAt])

  const more = useCallback(() => {
    if (cursor.current !== null) load(false)
  }, [load])
  return { rows, isLoading, isEnd, error, more, again: () => load(true) }
}

/** From the newest on, until it joins what is shown; after events were skipped, until all below has ended for certain. */
async function readNewest(filter: Filter, shown: () => ExecutionSummary[], isAfterSkip: boolean, signal: AbortSignal) {
  const read: ExecutionSummary[] = []
  let next: string | null = null
  for (let pages = 0; pages < PAGES_LIMIT; pages += 1) {
    const page = await executions(filter, pages === 0 ? NEWEST : PAGE, next, signal)
    read.push(...page.executions)
    next = page.nextCursor
    const isKnown = isJoined(shown(), read) && !(isAfterSkip && isOpenBelow(shown(), read))
    if (next === null || shown().length === 0 || isKnown) break
  }
  return { read, next }
}
