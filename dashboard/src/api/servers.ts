// Other MCP servers, how it stands with them, and what they have changed.
import type { paths } from '../../generated/openapi'
import { ask, freshKey, type Schemas } from './client'

type Given<Path extends keyof paths> = paths[Path] extends { get: { responses: { 200: { content: { 'application/json': infer Body } } } } } ? Body : never

export type Server = Schemas['McpServer']
export type Quarantined = Given<'/tools/quarantined'>['tools'][number]

/** The members of an entry that the form asks for. */
export interface NewServer {
  name: string
  command?: string
  args?: string[]
  env?: Record<string, string>
  url?: string
  headers?: Record<string, string>
}

const one = (name: string): string => `/v1/servers/${encodeURIComponent(name)}`

export const servers = () => ask<Given<'/servers'>>('/v1/servers')
export const addServer = (server: NewServer) => ask<{ name: string }>('/v1/servers', { method: 'POST', body: server })
export const removeServer = (name: string) => ask<{ name: string }>(one(name), { method: 'DELETE' })
export const restartServer = (name: string) => ask<{ name: string }>(`${one(name)}/restart`, { method: 'POST' })
export const serverLogs = (name: string) => ask<{ lines: string[]; limit: number }>(`${one(name)}/logs`)
export const quarantined = () => ask<Given<'/tools/quarantined'>>('/v1/tools/quarantined')
/** Takes the definition that was looked at, and no other. */
export const accept = ({ server, tool, changed }: Quarantined) =>
  ask<object>('/v1/tools/accept', { body: { server, tool, changed }, headers: { 'idempotency-key': freshKey() } })
