// Documents, for people: plain REST, and the search as a tool.
import { ask, type Json } from './client'
import { call } from './mcp'

export interface DocumentSummary {
  id: string
  title?: string
  path?: string
  parent_id: string
  revision: number
  mime_type: string
  content_length: number
  created_at: string
  updated_at: string
  metadata?: Record<string, Json>
}

export interface Document extends Omit<DocumentSummary, 'mime_type'> {
  content: { body: string; mime_type: string }
}

export interface Revision {
  revision: number
  at: string
  by: string
  op: string
  title?: string
}

export interface Passage {
  document_id: string
  snippet: string
  score: number
  offset: number
  length: number
  revision: number
  metadata?: { title?: string }
}

export interface Found {
  context: Passage[]
  response?: string
  retrieval?: string
}

const one = (id: string): string => `/documents/${encodeURIComponent(id)}`

export const children = (id: string) => ask<{ children: DocumentSummary[] }>(`${one(id)}/children`, { query: { limit: 200 } })
export const document = (id: string, revision?: number) => ask<Document>(one(id), { query: { full: 'true', revision } })
export const history = (id: string) => ask<{ revisions: Revision[] }>(`${one(id)}/history`, { query: { limit: 100 } })
export const search = async (query: string, count: number): Promise<Found> =>
  (await call('search_knowledge', { query, top_k: count })) as unknown as Found
