// API tokens: created and rotated here, shown once, never read back.
import { ask, type Schemas } from './client'

export type ApiToken = Schemas['ApiToken']
export type ApiTokenWithSecret = ApiToken & { token: string }

export interface NewToken {
  name: string
  tenant?: string
  roles: string[]
  scope: string[]
  expiresAt?: string
  /** Takes over what belongs to the name of a revoked token. */
  reuseName?: true
}

const at = (id: string, what: string): string => `/v1/tokens/${encodeURIComponent(id)}/${what}`

export const tokens = (cursor: string | null) =>
  ask<{ tokens: ApiToken[]; nextCursor: string | null }>('/v1/tokens', { query: { cursor, limit: 200 } })

export const createToken = (token: NewToken) => ask<ApiTokenWithSecret>('/v1/tokens', { body: token })

export const rotateToken = (id: string, graceMs: number) => ask<ApiTokenWithSecret>(at(id, 'rotate'), { body: { graceMs } })

export const revokeToken = (id: string) => ask<ApiToken>(at(id, 'revoke'), { body: {} })
