// The agent {{name}}: POST /process does the work, GET /health says that it lives. Needs nothing but Node 22.18 or newer.
//
// Start it:    node agent.ts
// Try it:      curl -s localhost:{{port}}/process -d '{"text": "hello"}'

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'

const PORT = Number(process.env.PORT ?? '{{port}}')
const LARGEST_BODY = 1024 * 1024

type Context = { execution?: string; correlation?: string; key?: string }

/** An input that will never do. Anything else that is thrown is tried again. */
class WrongInput extends Error {}

/**
 * Your work goes here. `data` is the input of the step; what you return becomes its output.
 *
 * `context.key` is the same for every attempt of one step: if you charge a card or send a mail, remember the key,
 * and do nothing the second time.
 */
async function work(data: { text?: unknown }, _context: Context): Promise<unknown> {
  if (typeof data.text !== 'string') throw new WrongInput('text is missing')
  return { text: data.text.toUpperCase() }
}

async function read(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = []
  let length = 0
  for await (const piece of request) {
    length += piece.length
    if (length > LARGEST_BODY) throw new WrongInput('the input is too large')
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString('utf8')
}

function answer(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}

function header(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name]
  return Array.isArray(value) ? value[0] : value
}

const server = createServer(async (request, response) => {
  if (request.method === 'GET' && request.url === '/health') return answer(response, 200, { status: 'ok' })
  if (request.method !== 'POST' || request.url !== '/process') {
    return answer(response, 404, { success: false, error: 'there is only POST /process and GET /health' })
  }
  const context: Context = {
    execution: header(request, 'x-execution-id'),
    correlation: header(request, 'x-correlation-id'),
    key: header(request, 'idempotency-key'),
  }
  try {
    const data = JSON.parse((await read(request)) || '{}')
    answer(response, 200, { success: true, data: { result: await work(data, context) } })
  } catch (failure) {
    const isWrong = failure instanceof WrongInput || failure instanceof SyntaxError
    answer(response, isWrong ? 400 : 500, { success: false, error: String((failure as Error).message) })
  }
})

server.listen(PORT, '127.0.0.1', () => {
  const address = server.address()
  console.log(`{{name}} listens on http://127.0.0.1:${typeof address === 'object' ? address?.port : PORT}`)
})
