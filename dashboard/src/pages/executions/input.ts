// What a step was given: its input as written, with the outputs and variables it names put in.
import type { Execution, Json } from '../../api/client'

const EXPRESSION = /\$\{([^${}]*)\}/g
const PATH = /^(steps|variables)((?:\.[\p{L}\p{N}_-]+|\[\d+\])+)$/u

export interface Filled {
  value: Json
  /** Whether nothing was left as written: an item of a list, a secret, or something that has to be computed. */
  isWhole: boolean
}

export function filled(template: Json, execution: Pick<Execution, 'steps' | 'variables'>): Filled {
  let isWhole = true
  const miss = (written: string): string => {
    isWhole = false
    return written
  }
  const words = (text: string): Json => {
    const alone = /^\$\{([^${}]*)\}$/.exec(text)
    if (alone) return valueAt(alone[1] ?? '', execution) ?? miss(text)
    const put = text.replace(EXPRESSION, (written, path: string) => {
      const value = valueAt(path, execution)
      if (value === undefined) return miss(written)
      return typeof value === 'string' ? value : JSON.stringify(value)
    })
    // What is nested or escaped was not read at all.
    return put === text && text.includes('${') ? miss(text) : put
  }
  const walk = (value: Json): Json => {
    if (typeof value === 'string') return words(value)
    if (Array.isArray(value)) return value.map(walk)
    if (value === null || typeof value !== 'object') return value
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, walk(inner)]))
  }
  return { value: walk(template), isWhole }
}

function valueAt(expression: string, execution: Pick<Execution, 'steps' | 'variables'>): Json | undefined {
  const found = PATH.exec(expression.trim())
  if (!found) return undefined
  const names = [...(found[2] ?? '').matchAll(/[^.[\]]+/g)].map((name) => name[0])
  let value: unknown = execution.variables
  if (found[1] === 'steps') {
    const [step = '', part] = names.splice(0, 2)
    if (part !== 'output') return undefined
    value = execution.steps[step]?.output
  }
  for (const name of names) {
    if (value === null || typeof value !== 'object' || !Object.hasOwn(value, name)) return undefined
    value = (value as Record<string, unknown>)[name]
  }
  return value as Json | undefined
}
