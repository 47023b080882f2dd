import { expect, test } from 'vitest'
import type { Execution, ExecutionSummary, JournalEntry } from '../../api/client'
import { attemptsOf } from './attempts'
import { filled } from './input'
import { isOpenBelow, withEvents, withNewest, withOlder } from './merge'
import { searchOf } from './search'
import { stuckAt } from './stuck'

const row = (id: string, status: ExecutionSummary['status'] = 'running'): ExecutionSummary => ({
  executionId: id, status, workflow: { id: 'w', name: 'W', version: '1.0.0' }, correlationId: 'c', createdAt: '2026-01-01T00:00:00.000Z',
})
const ids = (rows: ExecutionSummary[]) => rows.map((one) => one.executionId).join('')

test('words with = are tags, anything else is a correlation id', () => {
  expect(searchOf('')).toEqual({})
  expect(searchOf('customer=42  env=prod')).toEqual({ where: ['customer=42', 'env=prod'] })
  expect(searchOf('order-17')).toEqual({ correlationId: 'order-17' })
  expect(searchOf('=42')).toEqual({ correlationId: '=42' })
})

test('new executions come on top and known ones are brought up to date', () => {
  const { rows, isCut } = withNewest([row('b'), row('a')], [row('c'), row('b', 'completed')], false)
  expect([ids(rows), isCut]).toEqual(['cba', false])
  expect(rows[1]?.status).toBe('completed')
})

test('what no longer fits is gone, and what was not read stays', () => {
  expect(ids(withNewest([row('d'), row('c'), row('b'), row('a')], [row('e'), row('b')], false).rows)).toBe('eba')
  expect(ids(withNewest([row('b'), row('a')], [row('b')], true).rows)).toBe('b')
})

test('a page with nothing in common leaves no gap in the list', () => {
  const apart = withNewest([row('b'), row('a')], [row('z'), row('y')], false)
  expect([ids(apart.rows), apart.isCut]).toEqual(['zy', true])
  expect(ids(withNewest([], [row('b'), row('a')], true).rows)).toBe('ba')
  expect(ids(withOlder([row('c'), row('b')], [row('b'), row('a')]))).toBe('cba')
})

test('after events were skipped it is read as far as something may have ended unseen', () => {
  const shown = [row('d'), row('c', 'completed'), row('b'), row('a', 'failed')]
  expect(isOpenBelow(shown, [row('d'), row('c')])).toBe(true)
  expect(isOpenBelow(shown, [row('d'), row('c'), row('b')])).toBe(false)
})

test('events end what is shown, and filters still hold', () => {
  const rows = [row('b'), row('a')]
  const ended = [{ type: 'workflow.completed', executionId: 'a', timestamp: '2026-01-01T00:00:01.000Z', data: { duration: 7 } }]
  expect(withEvents(rows, ended)[1]).toMatchObject({ status: 'completed', duration: 7 })
  expect(ids(withEvents(rows, ended, 'running'))).toBe('b')
  const rolling = withEvents(rows, [{ type: 'workflow.compensating', executionId: 'a', timestamp: '', data: {} }])
  expect(rolling[1]).toMatchObject({ status: 'compensating', completedAt: null })
  const back = [{ type: 'workflow.compensated', executionId: 'a', timestamp: '2026-01-01T00:00:01.000Z', data: { duration: 9 } }]
  expect(withEvents(rolling, back)[1]).toMatchObject({ status: 'compensated', duration: 9 })
  expect(withEvents(rows, [{ type: 'step.started', executionId: 'a', timestamp: '' }])).toBe(rows)
})

const execution = (more: Partial<Execution>): Execution => ({
  executionId: 'e', status: 'running', workflow: { id: 'w', name: 'W', version: '1' }, steps: {}, stepOrder: Object.keys(more.steps ?? {}), outputs: {},
  errors: [], createdAt: '', startedAt: null, completedAt: null, duration: null, correlationId: 'c', lastSequence: 1, ...more,
})

test('what holds an execution up is said, with the moment it goes on', () => {
  const waits = execution({ steps: { review: { status: 'waiting', attempts: 0, waitingFor: { approval: true, until: 'T' } } } })
  expect(stuckAt(waits)).toMatchObject([{ step: 'review', cure: 'approve', at: 'T' }])
  const timer = execution({ steps: { rest: { status: 'waiting', attempts: 0, waitingFor: { event: null, until: 'T' } } } })
  expect(stuckAt(timer)).toMatchObject([{ what: 'It waits for its time.', at: 'T' }])
  const error = { code: 'TIMEOUT' as const, message: 'slow', isRetryable: true, category: 'timeout' as const, attempts: 1 }
  const retries = execution({ steps: { call: { status: 'retrying', attempts: 2, nextRetryAt: 'N', error } } })
  expect(stuckAt(retries)).toMatchObject([{ step: 'call', isRetry: true, at: 'N' }])
  expect(stuckAt(execution({ status: 'paused' }))).toMatchObject([{ cure: 'resume' }])
  expect(stuckAt(execution({ status: 'completed', steps: { a: { status: 'waiting', attempts: 0 } } }))).toEqual([])
  const lost = execution({ steps: { pay: { status: 'unknown', attempts: 1 } } })
  expect(stuckAt(lost)).toMatchObject([{ step: 'pay', cure: 'resolve' }])
})

const entry = (sequence: number, type: string, data: object, timestamp: number): JournalEntry => ({
  sequence, timestamp, correlationId: 'c', type, stepId: 's', level: 'info', data,
})

test('attempts are read from the journal, also of items side by side', () => {
  const entries = [
    entry(1, 'step-start', { attempt: 1 }, 0),
    entry(2, 'step-failed', { code: 'TIMEOUT' }, 5),
    entry(3, 'step-start', { attempt: 2 }, 9),
    entry(4, 'step-complete', {}, 12),
  ]
  expect(attemptsOf(entries, 's')).toMatchObject([{ number: 1, outcome: 'failed', code: 'TIMEOUT', endedMs: 5 }, { number: 2, outcome: 'completed', endedMs: 12 }])
  const items = [entry(1, 'step-start', { index: 0 }, 0), entry(2, 'step-start', { index: 1 }, 0), entry(3, 'step-complete', { index: 1 }, 4)]
  expect(attemptsOf(items, 's').map((one) => one.outcome)).toEqual(['running', 'completed'])
  expect(attemptsOf(items, 'other')).toEqual([])
})

test('an undo is an attempt of its own', () => {
  const entries = [
    entry(1, 'step-start', { attempt: 1, index: 0 }, 0),
    entry(2, 'step-complete', { index: 0 }, 5),
    entry(3, 'step-compensating', { attempt: 1, index: 0, compensation: true }, 9),
    entry(4, 'step-compensation-failed', { index: 0, compensation: true, code: 'TIMEOUT' }, 12),
  ]
  const [done, undo] = attemptsOf(entries, 's')
  expect(done).toMatchObject({ outcome: 'completed', endedMs: 5 })
  expect(done?.isUndo).toBeUndefined()
  expect(undo).toMatchObject({ outcome: 'failed', isUndo: true, item: 0, beganMs: 9, endedMs: 12, code: 'TIMEOUT' })
})

test('what could not be undone is said, and a rollback shows how far it is', () => {
  const error = { code: 'TIMEOUT' as const, message: 'no answer', isRetryable: true, category: 'timeout' as const, attempts: 1 }
  const compensation = { cause: 'failed' as const, undone: 1, remaining: 2, notUndone: [{ stepId: 'pay', index: 3, error }] }
  const rolling = execution({ status: 'compensating', compensation, steps: { ship: { status: 'failed', attempts: 1, error } } })
  expect(stuckAt(rolling).map((one) => one.what)).toEqual([
    'What it did is being undone: 1 undone, 2 to do.',
    'Not undone (item 3): no answer',
    'no answer (TIMEOUT, trying again may help)',
  ])
  expect(stuckAt(rolling).some((one) => one.cure)).toBe(false)
  expect(stuckAt({ ...rolling, status: 'compensated' }).at(-1)).toMatchObject({ step: 'ship', cure: 'retry' })
})

test('what a step was given is told as far as it is known here', () => {
  const known = { variables: { who: 'Ada', list: [1, { x: 2 }] }, steps: { greet: { status: 'completed' as const, attempts: 1, output: { text: 'Hi', n: 3 } } } }
  const whole = { text: '${variables.who}: ${steps.greet.output.text} ${ steps.greet.output.n }', all: '${variables.list}', one: ['${variables.list[1].x}'], n: 1 }
  expect(filled(whole, known)).toEqual({ value: { text: 'Ada: Hi 3', all: [1, { x: 2 }], one: [2], n: 1 }, isWhole: true })
  for (const written of ['${item}', '${secrets.KEY}', '${steps.later.output}', '${variables.who | upper}', '${variables.constructor}', '${steps.greet.status}', 'x ${a ${b}}']) {
    expect(filled(written, known)).toEqual({ value: written, isWhole: false })
  }
  expect(filled('${variables.who} and ${item}', known)).toEqual({ value: 'Ada and ${item}', isWhole: false })
})

test('the search field finds executions by the beginning of their id, by last and by correlation id', () => {
  expect(searchOf('')).toEqual({})
  expect(searchOf('last')).toEqual({ id: 'last' })
  expect(searchOf('019a9676')).toEqual({ id: '019a9676' })
  expect(searchOf('exec-019A9676-12')).toEqual({ id: 'exec-019A9676-12' })
  expect(searchOf('019a967')).toEqual({ correlationId: '019a967' })
  expect(searchOf('order-4711')).toEqual({ correlationId: 'order-4711' })
  const uuid = '3f2b8c1e-9a4d-4e5f-8a7b-0c1d2e3f4a5b'
  expect(searchOf(uuid)).toEqual({ correlationId: uuid })
  expect(searchOf(`exec-${uuid}`)).toEqual({ id: `exec-${uuid}` })
})
