// Which words of a passage were asked for.

export interface Piece {
  text: string
  isHit: boolean
}

/** Words that are in every text say nothing. */
const EMPTY = new Set('a an and are as at be by do does for from how i in is it of on or our that the their they this to was we what when where which who why with you'.split(' '))

export function highlight(text: string, query: string): Piece[] {
  const words = [...query.toLowerCase().matchAll(/[\p{L}\p{N}]+/gu)].map((found) => found[0]).filter((word) => word.length > 1 && !EMPTY.has(word))
  if (words.length === 0) return [{ text, isHit: false }]
  // The beginning of a word counts: who asks for refunds also means a refund.
  const stems = words.map((word) => (word.length > 5 ? word.slice(0, -2) : word).replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}])(?:${stems.join('|')})[\\p{L}\\p{N}]*`, 'giu')
  const pieces: Piece[] = []
  let last = 0
  for (const found of text.matchAll(pattern)) {
    if (found.index > last) pieces.push({ text: text.slice(last, found.index), isHit: false })
    pieces.push({ text: found[0], isHit: true })
    last = found.index + found[0].length
  }
  if (last < text.length) pieces.push({ text: text.slice(last), isHit: false })
  return pieces
}
