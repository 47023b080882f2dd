import { expect, test } from 'vitest'
import { graphOf } from '../graph/model'
import { pathOf } from '../graph/route'
import { beginning, withField } from '../ui/schema-form'
import { diff } from '../ui/diff'
import { highlight } from './knowledge/highlight'
import { quantile, summarise, timeTold } from './overview/figures'
import { SILENT, told } from './sessions/conversation'
import { rowsOf } from './sessions/tree'
import { words } from './tokens/scope'
import { lineOf, positionOf } from './workflows/positions'

test('a graph has what steps wait for, choose, and fall back to', () => {
  const { nodes, edges } = graphOf({
    steps: [
      { id: 'a', agentId: '@orchestr8/echo', fallbackStepId: 'd' },
      { id: 'b', dependencies: ['a', 'gone'], switch: { cases: [{ value: 'x', steps: ['c'] }], default: ['d'] } },
      { id: 'c', dependsOn: ['b'], approval: {} },
      { id: 'd' },
    ],
  })
  expect(nodes.map((node) => node.kind)).toEqual(['echo', 'switch', 'approval', 'step'])
  expect(edges.map((edge) => `${edge.from}>${edge.to}:${edge.label ?? ''}`)).toEqual(['a>d:if it fails', 'a>b:', 'b>c:x', 'b>d:else', 'b>c:'])
})

test('handlers follow the last steps of the body', () => {
  const { nodes, edges } = graphOf({
    steps: [{ id: 'a' }, { id: 'b', dependsOn: ['a'] }],
    onFailure: [{ id: 'tell', agentId: '@orchestr8/http' }, { id: 'told', dependsOn: ['tell'] }],
    finally: [{ id: 'clean' }],
  })
  expect(nodes.map((node) => node.kind)).toEqual(['step', 'step', 'http, on failure', 'step, on failure', 'step, finally'])
  expect(edges.map((edge) => `${edge.from}>${edge.to}:${edge.label ?? ''}`)).toEqual(['a>b:', 'b>tell:on failure', 'tell>told:', 'b>clean:finally'])
})

test('a long edge is drawn from its first point to its last', () => {
  const [a, b, c, d] = [{ x: 0, y: 0 }, { x: 10, y: 10 }, { x: 10, y: 30.04 }, { x: 0, y: 40 }]
  expect(pathOf([a, d])).toBe('M0,0 L0,40')
  expect(pathOf([a, b, d])).toBe('M0,0 Q10,10 0,40')
  expect(pathOf([a, b, c, d])).toBe('M0,0 Q10,10 10,20 Q10,30 0,40')
  expect(pathOf([a])).toBe('')
})

test('a difference keeps every line and its order', () => {
  const lines = diff('a\nb\nc\nd', 'a\nx\nc\nd\ne')
  expect(lines.map((line) => `${{ same: ' ', added: '+', removed: '-' }[line.kind]}${line.text}`)).toEqual([' a', '-b', '+x', ' c', ' d', '+e'])
  expect(diff('same', 'same')).toEqual([{ kind: 'same', text: 'same' }])
  for (const [one, other] of [['', 'a'], ['a\nb', 'b\na'], ['x', '']] as const) {
    const found = diff(one, other)
    expect(found.filter((line) => line.kind !== 'added').map((line) => line.text).join('\n')).toBe(one)
    expect(found.filter((line) => line.kind !== 'removed').map((line) => line.text).join('\n')).toBe(other)
  }
})

test('words that were asked for are marked, common ones and parts of others are not', () => {
  const hits = (text: string, query: string) => highlight(text, query).filter((piece) => piece.isHit).map((piece) => piece.text)
  expect(hits('Refunds are paid; a refund is paid.', 'when are refunds paid?')).toEqual(['Refunds', 'paid', 'refund', 'paid'])
  expect(hits('the prepaid card', 'paid')).toEqual([])
  expect(hits('a+b (c)', 'a+b (c)')).toEqual([])
  expect(highlight('text', '')).toEqual([{ text: 'text', isHit: false }])
})

test('the last hour is counted by the moment of the end', () => {
  const now = 3_600_000 * 10
  const at = (ms: number) => new Date(now - ms).toISOString()
  const of = (status: string, ms: number, duration: number) => ({ status, completedAt: at(ms), duration }) as never
  const hour = summarise([of('completed', 30_000, 10), of('failed', 30_000, 30), of('completed', 5_000_000, 1)], now, 3_600_000, 60)
  expect(hour.ended).toBe(2)
  expect(hour.errorRate).toBe(0.5)
  expect([hour.p50, hour.p95]).toEqual([10, 30])
  expect(hour.buckets.reduce((sum, bucket) => sum + bucket.failed, 0)).toBe(1)
  expect(hour.buckets.map((bucket) => bucket.errorRate).filter((part) => part !== null)).toEqual([0.5])
  expect(quantile([], 0.5)).toBeNull()
})

test('figures are of the time that the newest executions tell all of', () => {
  const now = 3_600_000 * 10
  const begun = (ms: number) => ({ status: 'completed', createdAt: new Date(now - ms).toISOString(), completedAt: new Date(now - ms).toISOString(), duration: 1 }) as never
  const told = (...ages: number[]) => timeTold(ages.map(begun), 2, now, 30)
  expect([told(), told(5_000), told(5_000, 29_000), told(0, 0), told(0, 9_000_000)]).toEqual([3_600_000, 600_000, 30_000, 1_000, 3_600_000])
  // Fifty a second, and more before them than were given: the rate is not thinned by time that nobody asked about.
  const many = Array.from({ length: 500 }, (_, index) => begun(index * 20))
  const { ended, perMinute } = summarise(many, now + 1, timeTold(many, 500, now + 1, 30), 30)
  expect(ended).toBe(500)
  expect(perMinute).toBeGreaterThan(2_800)
})

test('a place in JSON is found, and the nearest one where there is none', () => {
  const text = '{\n  "steps": [\n    { "id": "a", "x\\"y": [1, {"z": 2}] },\n    { "id": "b" }\n  ]\n}'
  expect(text.slice(positionOf(text, '/steps/1/id'))).toMatch(/^"b"/)
  expect(lineOf(text, positionOf(text, '/steps/1/id'))).toBe(4)
  expect(lineOf(text, positionOf(text, '/steps/1/agentId'))).toBe(4)
  expect(text.slice(positionOf(text, '/steps/0/x"y/1/z'))).toMatch(/^2/)
  expect(positionOf('{ "a": ', '/a/b')).toBeGreaterThanOrEqual(0)
  expect(positionOf('', '/a')).toBe(0)
})

test('a conversation grows by its events', () => {
  const said = { role: 'assistant', content: [{ type: 'text' as const, text: 'hi' }] }
  const events = [{ type: 'agent_start' }, { type: 'message_update', message: said }, { type: 'tool_execution_start', toolCallId: 't' }]
  const working = events.reduce(told, SILENT)
  expect(working).toMatchObject({ isWorking: true, partial: said, running: ['t'], messages: [] })
  const ended = [{ type: 'tool_execution_end', toolCallId: 't' }, { type: 'message_end', message: said }, { type: 'agent_end' }].reduce(told, working)
  expect(ended).toMatchObject({ isWorking: false, partial: null, running: [], messages: [said] })
  expect(told(SILENT, { type: 'new_kind' })).toBe(SILENT)
})

test('a tree indents only where it branches, and knows the way to the leaf', () => {
  const node = (entryId: string, parentId: string | null) => ({ entryId, parentId, entryType: 'message', timestamp: '' })
  const rows = rowsOf([node('0', null), node('1', '0'), node('2', '1'), node('3', '1'), node('4', '3')], '4')
  expect(rows.map((one) => `${one.node.entryId}${one.depth}${one.isCurrent ? '*' : ''}`)).toEqual(['00*', '10*', '21', '31*', '41*'])
})

test('a form begins with defaults and sends nothing that was left empty', () => {
  expect(beginning({ properties: { a: { default: 5 }, b: { type: 'string' }, c: { const: true } } })).toEqual({ a: 5, c: true })
  expect(withField({ a: 1, b: 2 }, 'a', undefined)).toEqual({ b: 2 })
  expect(withField({ b: 2 }, 'a', null)).toEqual({ b: 2, a: null })
})

test('a scope is read as people write lists', () => {
  expect(words('face:mcp, executions.*\n workflows.list')).toEqual(['face:mcp', 'executions.*', 'workflows.list'])
  expect(words('  ')).toEqual([])
})
