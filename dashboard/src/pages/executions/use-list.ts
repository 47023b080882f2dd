// The executions that fit a filter: page after page as one scrolls, and live at the top.
import { useCallback, useEffect, useRef, useState } from 'react'
import type { ExecutionSummary } from '../../api/client'
import { executions, type Filter } from '../../api/workflows'
import { listen, useConnection } from '../../live/feed'
import { withEvents, withNewest, withOlder } from './merge'

const PAGE = 500
const NEWEST = 100
const REFRESH_MS = 900

interface List {
  rows: ExecutionSummary[]
  isLoading: boolean
  isEnd: boolean
  error: unknown
  more: () => void
  again: () => void
}

export function useList(filter: Filter): List {
  const [rows, setRows] = useState<ExecutionSummary[]>([])
  const [isLoading, setLoading] = useState(true)
  const [isEnd, setEnd] = useState(false)
  const [error, setError] = useState<unknown>(null)
  const cursor = useRef<string | null>(null)
  const asking = useRef<AbortController | null>(null)
  const returns = useConnection((connection) => connection.returns)
  const key = JSON.stringify(filter)

  const load = useCallback(
    (isFirst: boolean) => {
      if (!isFirst && asking.current) return
      asking.current?.abort()
      const mine = new AbortController()
      asking.current = mine
      setLoading(true)
      executions(JSON.parse(key) as Filter, PAGE, isFirst ? null : cursor.current, mine.signal)
        .then((page) => {
          cursor.current = page.nextCursor
          setEnd(page.nextCursor === null)
          setError(null)
          setRows((rows) => (isFirst ? page.executions : withOlder(rows, page.executions)))
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
    [key],
  )

  useEffect(() => {
    setRows([])
    load(true)
    return () => {
      asking.current?.abort()
      asking.current = null
    }
  }, [load, returns])

  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    const filter = JSON.parse(key) as Filter
    const refresh = () => {
      timer = undefined
      executions(filter, NEWEST)
        .then((page) => setRows((rows) => withNewest(rows, page.executions, page.nextCursor === null)))
        .catch(() => undefined)
    }
    const stop = listen((events) => {
      if (!events.some((event) => event.executionId !== undefined)) return
      setRows((rows) => withEvents(rows, events, filter.status))
      timer ??= setTimeout(refresh, REFRESH_MS)
    })
    return () => {
      stop()
      clearTimeout(timer)
    }
  }, [key])

  const more = useCallback(() => {
    if (cursor.current !== null) load(false)
  }, [load])
  return { rows, isLoading, isEnd, error, more, again: () => load(true) }
}
