// Other MCP servers, how it stands with them, and what they have changed.
import type { paths } from '../../generated/openapi'
import { ask, freshKey } from './client'

type Given<Path extends keyof paths> = paths[Path] extends { get: { responses: { 200: { content: { 'application/json': infer Body } } } } } ? Body : never

export type Server = Given<'/dashboard/servers'>['servers'][number]
export type Quarantined = Given<'/tools/quarantined'>['tools'][number]

export const servers = () => ask<Given<'/dashboard/servers'>>('/v1/dashboard/servers')
export const quarantined = () => ask<Given<'/tools/quarantined'>>('/v1/tools/quarantined')
/** Takes the definition that was looked at, and no other. */
export const accept = ({ server, tool, changed }: Quarantined) =>
  ask<object>('/v1/tools/accept', { body: { server, tool, changed }, headers: { 'idempotency-key': freshKey() } })
