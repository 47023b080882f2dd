// Keeps what is shown true: live events say which answers are old, and they are asked for again, not too often.
import { QueryClient } from '@tanstack/react-query'
import { Failure } from '../api/client'
import { listen, useConnection } from '../live/feed'

const EVERY_MS = 700

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 2_000,
      refetchOnWindowFocus: true,
      // What is wrong stays wrong; a server that is away is asked again when it is back.
      retry: (count, error) => count < 2 && !(error instanceof Failure && (error.isAway || error.status < 500)),
    },
  },
})

const touched = new Set<string>()
let timer: ReturnType<typeof setTimeout> | undefined

function refresh(): void {
  timer = undefined
  const ids = [...touched]
  touched.clear()
  for (const key of ['metrics', 'system', 'recent', 'approvals', 'schedules']) {
    void queries.invalidateQueries({ queryKey: [key] })
  }
  for (const id of ids) void queries.invalidateQueries({ queryKey: ['execution', id] })
}

export function keepFresh(): void {
  listen((events) => {
    for (const event of events) {
      if (event.executionId !== undefined) touched.add(event.executionId)
      if (event.type === 'metrics.update') queries.setQueryData(['metrics'], event.data)
    }
    if (touched.size > 0) timer ??= setTimeout(refresh, EVERY_MS)
  })
  useConnection.subscribe((now, before) => {
    if (now.returns !== before.returns) void queries.invalidateQueries()
  })
}
