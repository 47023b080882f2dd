// Where we are, and how to get elsewhere: the address of the browser is the whole state of navigation.
import { create } from 'zustand'
import type { AnchorHTMLAttributes, MouseEvent } from 'react'

interface Place {
  path: string
  search: string
}

const here = (): Place => ({ path: location.pathname, search: location.search })

export const usePlace = create<Place>(here)

addEventListener('popstate', () => usePlace.setState(here()))

export function go(to: string, { replace = false } = {}): void {
  if (to === location.pathname + location.search) return
  history[replace ? 'replaceState' : 'pushState'](null, '', to)
  usePlace.setState(here())
}

/** The parts of the path below the root, each as it was meant. */
export function parts(path: string): string[] {
  return path
    .split('/')
    .filter((part) => part !== '')
    .map((part) => {
      try {
        return decodeURIComponent(part)
      } catch {
        return part
      }
    })
}

/** One value of the query, and how to change it without leaving a trace of every letter in the history. */
export function useQueryValue(name: string): [string, (value: string) => void] {
  const search = usePlace((place) => place.search)
  const value = new URLSearchParams(search).get(name) ?? ''
  return [value, (next) => setQuery({ [name]: next })]
}

export function setQuery(changes: Record<string, string>): void {
  const values = new URLSearchParams(location.search)
  for (const [name, value] of Object.entries(changes)) {
    if (value === '') values.delete(name)
    else values.set(name, value)
  }
  const text = values.toString()
  go(location.pathname + (text === '' ? '' : `?${text}`), { replace: true })
}

type LinkProps = Omit<AnchorHTMLAttributes<HTMLAnchorElement>, 'href'> & { to: string }

export function Link({ to, onClick, ...rest }: LinkProps) {
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event)
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey
    if (event.defaultPrevented || !isPlain) return
    event.preventDefault()
    go(to)
  }
  return <a href={to} onClick={follow} {...rest} />
}
