// Keeps what is shown true: live events say which answers are old, and they are asked for again, not too often.
import { QueryClient } from '@tanstack/react-query'
import { Failure } from '../api/client'
import { listen, useConnection, type LiveEvent } from '../live/feed'
import { say } from '../ui/toast'

const EVERY_MS = 700
/** While much happens the server and the page have other things to do. */
const BUSY_EVERY_MS = 2_000
const BUSY_PER_SECOND = 300
/** Beyond so many executions at once it is simpler to ask for all that are shown. */
const TOUCHED_LIMIT = 200
/** What events of any execution change. */
const CHANGING = new Set(['metrics', 'system', 'recent', 'approvals', 'schedules'])

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
let isAnyTouched = false
let timer: ReturnType<typeof setTimeout> | undefined

/** One walk over what is kept, however many executions have moved. */
function refresh(): void {
  const [ids, isAny] = [new Set<unknown>(touched), isAnyTouched]
  timer = undefined
  touched.clear()
  isAnyTouched = false
  void queries.invalidateQueries({
    predicate: ({ queryKey: [kind, id] }) => CHANGING.has(String(kind)) || (kind === 'execution' && (isAny || ids.has(id))),
  })
}

function touch(events: LiveEvent[], skipped: number): void {
  let figures: unknown
  for (const event of events) {
    if (event.executionId !== undefined) touched.add(event.executionId)
    if (event.type === 'metrics.update') figures = event.data
  }
  if (figures !== undefined) queries.setQueryData(['metrics'], figures)
  if (skipped > 0 || touched.size > TOUCHED_LIMIT) {
    isAnyTouched = true
    touched.clear()
  }
  if (isAnyTouched || touched.size > 0) timer ??= setTimeout(refresh, useConnection.getState().eventsPerSecond > BUSY_PER_SECOND ? BUSY_EVERY_MS : EVERY_MS)
}

export function keepFresh(): void {
  listen(touch)
  useConnection.subscribe((now, before) => {
    if (now.returns !== before.returns) void queries.invalidateQueries()
    if (now.skipped !== before.skipped) say(`${now.skipped.toLocaleString('en')} events skipped, reloaded`, { key: 'skipped', hint: 'More came at once than one can look at.' })
  })
}
