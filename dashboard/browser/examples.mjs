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

/** One step that waits until it is told to go on, so that no test runs against the clock. */
export const held = (id) => {
  const workflow = waiting(id, 1)
  workflow.steps[1] = { id: 'rest', dependencies: ['first'], wait: { event: 'go', timeoutMs: 3_600_000 } }
  return workflow
}

export const letGo = (server, id) => server.ask(`/v1/executions/${id}/events`, { name: 'go', payload: {} })

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
  await server.ask('/aacp/agents/builder', { topics: ['builds'], description: 'Builds what the planner plans' }, 'PUT')
  for (const payload of ['one', 'two', 'three']) await server.ask('/aacp/messages', { sourceAgentId: 'planner', targetAgentId: 'builder', messageType: 'EVENT', payload })
  await server.ask('/aacp/agents/builder/acks', { inboxSeq: 1 })
  await server.ask('/aacp/messages?wait=10', { sourceAgentId: 'planner', targetAgentId: 'echo', messageType: 'REQUEST', payload: { type: 'hello' } })
  return ids
}

/** Another MCP server in a few lines of shell. Its one tool is described by a file, so that a test can change it. */
export const OTHER = {
  'orchestr8.toml': "[mcpServers.other]\ncommand = 'sh'\nargs = ['server.sh']\n",
  about: 'Says-hello',
  'server.sh': `while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\\([0-9]*\\).*/\\1/p')
  case "$line" in
    *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}}' ;;
    *'"tools/list"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"hi","description":"'$(cat about)'","inputSchema":{"type":"object"}}]}}' ;;
    *'"tools/call"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"hi from sh"}]}}' ;;
    *'"method":"notifications'*) ;;
    *) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"no"}}' ;;
  esac
done
`,
}
