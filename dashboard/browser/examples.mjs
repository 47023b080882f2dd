// The data that the pages are looked at with.
import { readFileSync } from 'node:fs'

const example = (name) => JSON.parse(readFileSync(new URL(`../../examples/${name}`, import.meta.url), 'utf8'))

export const HANDBOOK = '0f9c2a52-5d0f-4f57-9c0f-0a1b2c3d4e5f'

/** One step that waits as long as it is told. */
export const waiting = (id, durationMs) => ({
  id, version: '1.0.0', name: `Waits ${id}`,
  steps: [
    { id: 'first', agentId: '@orchestr8/echo', input: { text: 'one' } },
    { id: 'rest', dependencies: ['first'], wait: { durationMs } },
    { id: 'last', agentId: '@orchestr8/echo', dependencies: ['rest'], input: { text: 'two' } },
  ],
})

export async function putIn(server) {
  for (const name of ['hello-world', 'data-pipeline', 'order-saga', 'multi-agent', 'approval', 'nightly']) {
    await server.ask('/v1/workflows', { workflow: example(`${name}.json`) }, 'PUT')
  }
  await server.ask('/v1/schedules', example('nightly.schedule.json'), 'PUT')
  const run = (workflowId) => server.ask('/v1/workflows/execute', { workflowId }).then((begun) => begun.executionId)
  const ids = { pipeline: await run('data-pipeline'), saga: await run('order-saga'), approval: await run('approval'), hello: await run('hello-world') }
  await Promise.all([server.ended(ids.pipeline), server.ended(ids.saga), server.ended(ids.hello)])
  await server.ask('/documents', {
    document_id: HANDBOOK, parent_id: 'root', metadata: { title: 'Handbook' },
    content: { mime_type: 'text/markdown', body: '# Handbook\n\nRefunds are paid within 14 days of the return.\n\n## Shipping\n\nParcels leave every morning.' },
  })
  await server.ask(`/documents/${HANDBOOK}`, { old_str: '14 days', new_str: '10 days' }, 'PATCH')
  return ids
}
