// The entry of a server as it is typed into the form.
import type { NewServer } from '../../api/servers'

export interface EntryFields {
  name: string
  kind: 'program' | 'address'
  command: string
  url: string
  pairs: string
}

/** The words of a command line; quotes keep blanks together. */
export const wordsOf = (line: string): string[] =>
  [...line.matchAll(/"([^"]*)"|'([^']*)'|([^\s"']+)/g)].map((match) => match[1] ?? match[2] ?? match[3] ?? '')

/** One name and value per line, separated by the first `=` or `:`. */
export const pairsOf = (text: string): Record<string, string> =>
  Object.fromEntries(
    text
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '')
      .map((line) => {
        const at = line.search(/[=:]/)
        return at < 0 ? [line, ''] : [line.slice(0, at).trim(), line.slice(at + 1).trim()]
      }),
  )

export function entryOf({ name, kind, command, url, pairs }: EntryFields): NewServer {
  const named = pairsOf(pairs)
  const hasPairs = Object.keys(named).length > 0
  if (kind === 'address') return { name, url, ...(hasPairs && { headers: named }) }
  const [program = '', ...args] = wordsOf(command)
  return { name, command: program, ...(args.length > 0 && { args }), ...(hasPairs && { env: named }) }
}
