// Tools, asked for as every MCP client does: JSON-RPC on /mcp, in its newest revision, which needs no handshake.
import { answer, Failure, type Json } from './client'
import { SentEvents } from '../live/sse'
import type { Schema } from '../ui/schema-form'

const REVISION = '2026-07-28'

export interface Tool {
  name: string
  title?: string
  description?: string
  inputSchema: Schema
  outputSchema?: Schema
  annotations?: { readOnlyHint?: boolean; destructiveHint?: boolean; idempotentHint?: boolean; openWorldHint?: boolean }
}

export interface RpcAnswer {
  jsonrpc: '2.0'
  id: number
  result?: Record<string, Json>
  error?: { code: number; message: string; data?: Json }
}

let lastId = 0

export function rpcRequest(method: string, params: Record<string, Json>): Record<string, Json> {
  lastId += 1
  return {
    jsonrpc: '2.0',
    id: lastId,
    method,
    params: {
      ...params,
      _meta: { 'io.modelcontextprotocol/protocolVersion': REVISION, 'io.modelcontextprotocol/clientCapabilities': {} },
    },
  }
}

/** Sends a message as it is and gives the answer as it is. */
export async function rpc(message: Record<string, Json>): Promise<RpcAnswer> {
  const params = message['params'] as { name?: Json } | undefined
  const headers: Record<string, string> = {
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': REVISION,
    'mcp-method': String(message['method'] ?? ''),
  }
  if (typeof params?.name === 'string') headers['mcp-name'] = params.name
  const response = await answer('/mcp', { body: message, headers })
  if (!response.headers.get('content-type')?.startsWith('text/event-stream')) return (await response.json()) as RpcAnswer
  const sent = new SentEvents().take(`${await response.text()}\n\n`).map((one) => JSON.parse(one.data) as RpcAnswer)
  const last = sent.findLast((one) => one.id === message['id'])
  if (!last) throw new Failure('The answer never came.', 502, 'NO_ANSWER')
  return last
}

export async function tools(): Promise<Tool[]> {
  const found: Tool[] = []
  let cursor: string | undefined
  do {
    const page = await rpc(rpcRequest('tools/list', cursor === undefined ? {} : { cursor }))
    if (page.error) throw new Failure(page.error.message, 200, String(page.error.code))
    const result = page.result as unknown as { tools: Tool[]; nextCursor?: string }
    found.push(...result.tools)
    cursor = result.nextCursor
  } while (cursor !== undefined)
  return found
}

export const toolCall = (name: string, args: Json) => rpcRequest('tools/call', { name, arguments: args })

/** What a tool gave, as a value: structured where it is, else its text, read as JSON where it is that. */
export function valueOf(answer: RpcAnswer): Json {
  const result = answer.result as { structuredContent?: Json; content?: { type: string; text?: string }[] } | undefined
  if (result?.structuredContent !== undefined) return result.structuredContent
  const texts = (result?.content ?? []).flatMap((part) => (part.text === undefined ? [] : [part.text]))
  if (texts.length !== 1) return texts.length === 0 ? ((result ?? null) as Json) : texts
  const [text = ''] = texts
  try {
    return JSON.parse(text) as Json
  } catch {
    return text
  }
}

export async function call(name: string, args: Json): Promise<Json> {
  const answered = await rpc(toolCall(name, args))
  if (answered.error) throw new Failure(answered.error.message, 200, String(answered.error.code))
  const value = valueOf(answered)
  if (answered.result?.['isError'] === true) {
    const fault = value as { message?: string; code?: string }
    throw new Failure(fault.message ?? 'The tool failed.', 200, fault.code ?? 'TOOL')
  }
  return value
}
