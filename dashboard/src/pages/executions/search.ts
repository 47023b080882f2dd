// What the search field of the list means.
import type { Filter } from '../../api/workflows'

/** The shortest beginning of an id that the server looks up, and the length of a whole one, both without `exec-`. */
const SHORTEST = 8
const WHOLE = 36

/** Words such as `customer=42` are tags, `last` is the newest execution, and what may begin an id does; anything else is a correlation id. */
export function searchOf(text: string): Pick<Filter, 'id' | 'where' | 'correlationId'> {
  if (text === '') return {}
  const words = text.split(/\s+/)
  if (words.every((word) => /^[A-Za-z0-9_.-]{1,64}=./.test(word))) return { where: words }
  if (text === 'last') return { id: text }
  const rest = text.replace(/^exec-/, '')
  const isHex = /^[0-9a-f-]+$/i.test(rest) && rest.length >= SHORTEST
  // Correlation ids look the same, and are always given in full.
  return isHex && (rest !== text || rest.length < WHOLE) ? { id: text } : { correlationId: text }
}
