// Other MCP servers, and how it stands with them.
import { ask } from './client'

export interface Server {
  name: string
  phase: string
  tools: number
  quarantined: string[]
  problem?: string | null
}

export const servers = () => ask<{ servers: Server[] }>('/v1/dashboard/servers')
