import { expect, test, vi } from 'vitest'
import { backoffMs } from './backoff'
import { Batch } from './batch'
import { SentEvents } from './sse'

test('waits grow, are bounded, and differ between clients', () => {
  expect(backoffMs(0, () => 1)).toBe(500)
  expect(backoffMs(3, () => 1)).toBe(4_000)
  expect(backoffMs(3, () => 0)).toBe(2_000)
  expect(backoffMs(50, () => 1)).toBe(15_000)
})

test('events that come together are given together', () => {
  vi.useFakeTimers()
  const given: number[][] = []
  const batch = new Batch<number>((items) => given.push(items))
  for (let event = 0; event < 500; event += 1) batch.add(event)
  expect(given).toEqual([])
  vi.advanceTimersByTime(200)
  expect(given.map((items) => items.length)).toEqual([500])
  batch.add(1)
  vi.advanceTimersByTime(200)
  expect(given.length).toBe(2)
  vi.useRealTimers()
})

test('what nobody takes in time is bounded, and the loss is told', () => {
  vi.useFakeTimers()
  let lost = 0
  let kept: number[] = []
  const batch = new Batch<number>((items, dropped) => {
    kept = items
    lost = dropped
  })
  for (let event = 0; event < 6_000; event += 1) batch.add(event)
  vi.advanceTimersByTime(200)
  expect([kept.length, kept[0], lost]).toEqual([5_000, 1_000, 1_000])
  vi.useRealTimers()
})

test('server-sent events are read from any pieces', () => {
  const text = 'retry: 1000\nid: 1\nevent: step.started\ndata: {"a":1}\n\n: still here\n\ndata: one\ndata: two\n\ndata: rest'
  const whole = new SentEvents().take(text)
  expect(whole).toEqual([{ event: 'step.started', data: '{"a":1}' }, { event: 'message', data: 'one\ntwo' }])
  const reader = new SentEvents()
  expect([...text].flatMap((piece) => reader.take(piece))).toEqual(whole)
})
