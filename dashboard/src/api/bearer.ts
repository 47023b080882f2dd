// The token of a server that asks for one. It is kept for this tab only.
import { create } from 'zustand'

const NAME = 'orchestr8.token'

interface Known {
  token: string | null
  /** The server has refused what we have, or that we have nothing. */
  isRefused: boolean
}

const read = (): string | null => {
  try {
    return sessionStorage.getItem(NAME)
  } catch {
    return null
  }
}

export const useBearer = create<Known>(() => ({ token: read(), isRefused: false }))

export const bearer = (): string | null => useBearer.getState().token

/** What a socket offers: a page can set no headers there, so the token goes along in letters that a protocol may have. */
export function protocols(): string[] {
  const token = bearer()
  if (token === null) return ['orchestr8']
  const bytes = String.fromCharCode(...new TextEncoder().encode(token))
  return ['orchestr8', `orchestr8.bearer.${btoa(bytes).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')}`]
}

export const refuseBearer = (): void => useBearer.setState({ isRefused: true })

export function giveBearer(token: string): void {
  try {
    sessionStorage.setItem(NAME, token)
  } catch {
    // A browser that keeps nothing asks again after a reload.
  }
  useBearer.setState({ token, isRefused: false })
}
