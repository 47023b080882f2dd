import { expect, test, vi } from 'vitest'
import { backoffMs } from './backoff'
import { Batch } from './batch'
import { Burst } from './burst'
import { SentEvents } from './sse'

test('waits grow, are bounded, and differ between clients', () => {
  expect(backoffMs(0, () => 1)).toBe(500)
  expect(backoffMs(3, () => 1)).toBe(4_000)
  expect(backoffMs(3, () => 0)).toBe(2_000)
  expect(backoffMs(50, () => 1)).toBe(15_000)
})

const BOUNDS = { everyMs: 100, limit: 300 }

test('events that come together are given together', () => {
  vi.useFakeTimers()
  const given: number[][] = []
  const batch = new Batch<number>(BOUNDS, (items) => given.push(items))
  for (let event = 0; event < 300; event += 1) batch.add(event)
  expect(given).toEqual([])
  vi.advanceTimersByTime(100)
  expect(given.map((items) => items.length)).toEqual([300])
  batch.add(1)
  vi.advanceTimersByTime(100)
  expect(given.length).toBe(2)
  vi.useRealTimers()
})

test('what nobody takes in time is bounded, and the loss is told', () => {
  vi.useFakeTimers()
  const given: [number[], number][] = []
  const batch = new Batch<number>(BOUNDS, (items, skipped) => given.push([items, skipped]))
  for (let event = 0; event < 1_000; event += 1) batch.add(event)
  vi.advanceTimersByTime(100)
  expect(given.map(([items, skipped]) => [items.length, items.at(-1), skipped])).toEqual([[100, 999, 900]])
  batch.add(1)
  batch.flush()
  expect(given[1]).toEqual([[1], 0])
  vi.advanceTimersByTime(1_000)
  expect(given.length).toBe(2)
  vi.useRealTimers()
})

test('one that is large takes the room of many', () => {
  vi.useFakeTimers()
  const given: [string[], number][] = []
  const batch = new Batch<string>({ everyMs: 100, limit: 10, weigh: (text) => text.length }, (items, skipped) => given.push([items, skipped]))
  for (const text of ['aaaa', 'bbbbbb', 'c', 'a text that is larger than everything']) batch.add(text)
  vi.advanceTimersByTime(100)
  expect(given).toEqual([[['a text that is larger than everything'], 3]])
  vi.useRealTimers()
})

test('ten seconds of 4,000 events each lead to a hundred batches and ten looks at the server', () => {
  vi.useFakeTimers()
  const looks: [number, number][] = []
  const burst = new Burst((fresh, total) => looks.push([fresh, total]), () => Date.now())
  let given = 0
  const batch = new Batch<number>(BOUNDS, (items, skipped) => {
    given += 1
    if (skipped > 0) burst.skip(items.length + skipped)
  })
  for (let ms = 0; ms < 10_000; ms += 1) {
    for (let event = 0; event < 4; event += 1) batch.add(event)
    vi.advanceTimersByTime(1)
  }
  vi.advanceTimersByTime(2_000)
  expect(given).toBeLessThanOrEqual(101)
  expect(looks.length).toBeLessThanOrEqual(11)
  expect(looks.reduce((sum, [fresh]) => sum + fresh, 0)).toBe(40_000)
  expect(looks.at(-1)?.[1]).toBe(40_000)
  // Another one, later, is counted by itself.
  vi.advanceTimersByTime(20_000)
  burst.skip(7)
  vi.advanceTimersByTime(2_000)
  expect(looks.at(-1)).toEqual([7, 7])
  vi.useRealTimers()
})

test('server-sent events are read from any pieces', () => {
  const text = 'retry: 1000\nid: 1\nevent: step.started\ndata: {"a":1}\n\n: still here\n\ndata: one\ndata: two\n\ndata: rest'
  const whole = new SentEvents().take(text)
  expect(whole).toEqual([{ event: 'step.started', data: '{"a":1}' }, { event: 'message', data: 'one\ntwo' }])
  const reader = new SentEvents()
  expect([...text].flatMap((piece) => reader.take(piece))).toEqual(whole)
})
