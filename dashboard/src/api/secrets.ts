// Named secrets. A value goes to the server and never comes back.
import { ask, type Schemas } from './client'

export type Secret = Schemas['Secret']

export interface NewSecret {
  name: string
  value: string
  workflows: string[]
  agents: string[]
  to: string[]
}

const one = (name: string): string => `/v1/secrets/${encodeURIComponent(name)}`

export const secrets = () => ask<{ secrets: Secret[]; locked?: string | null }>('/v1/secrets')

export const setSecret = (secret: NewSecret) => ask<Secret>('/v1/secrets', { method: 'POST', body: secret })

export const rotateSecret = (name: string, value: string) => ask<Secret>(one(name), { method: 'PUT', body: { value } })

export const deleteSecret = (name: string) => ask<{ name: string; deleted: true }>(one(name), { method: 'DELETE' })
