// The journal of one execution: read to its end, then followed.
import { useCallback, useEffect, useRef, useState } from 'react'
import type { JournalEntry, JournalPage } from '../../api/client'
import { journal } from '../../api/workflows'
import { listen, useConnection } from '../../live/feed'

const PAGE = 1_000
const FOLLOW_MS = 400

export interface Journal {
  entries: JournalEntry[]
  summary: JournalPage['summary'] | null
  isRead: boolean
  error: unknown
}

const NOTHING: Journal = { entries: [], summary: null, isRead: false, error: null }

export function useJournal(id: string): Journal {
  const [read, setRead] = useState<Journal>(NOTHING)
  const last = useRef(0)
  const isAsking = useRef(false)
  const isAskedAgain = useRef(false)
  const returns = useConnection((connection) => connection.returns)

  const follow = useCallback(
    async (isOver: () => boolean) => {
      // What is written while a page is on its way may not be on it: then it is asked once more.
      isAskedAgain.current = true
      if (isAsking.current) return
      isAsking.current = true
      try {
        for (let hasMore = true; (hasMore || isAskedAgain.current) && !isOver(); ) {
          isAskedAgain.current = false
          const page = await journal(id, last.current, PAGE)
          if (isOver()) return
          // The same page may have been asked for twice.
          const fresh = page.entries.filter((entry) => entry.sequence > last.current)
          last.current = fresh.at(-1)?.sequence ?? last.current
          hasMore = page.pagination.hasMore && fresh.length > 0
          setRead((before) => ({
            entries: fresh.length === 0 ? before.entries : [...before.entries, ...fresh],
            summary: page.summary,
            isRead: !hasMore,
            error: null,
          }))
        }
      } catch (error) {
        if (!isOver()) setRead((before) => ({ ...before, error }))
      } finally {
        isAsking.current = false
      }
    },
    [id],
  )

  useEffect(() => {
    let isOver = false
    let timer: ReturnType<typeof setTimeout> | undefined
    const over = () => isOver
    void follow(over)
    const stop = listen((events, skipped) => {
      if (skipped === 0 && !events.some((event) => event.executionId === id)) return
      timer ??= setTimeout(() => {
        timer = undefined
        void follow(over)
      }, FOLLOW_MS)
    })
    return () => {
      isOver = true
      isAsking.current = false
      clearTimeout(timer)
      stop()
    }
  }, [id, follow, returns])
  return read
}
