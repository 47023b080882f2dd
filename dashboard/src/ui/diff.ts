// What changed between two texts, line by line: the longest common lines stay, the rest came or went.

export interface Line {
  kind: 'same' | 'added' | 'removed'
  text: string
}

/** Beyond this many pairs of lines the middle is shown as replaced, which is true and quick. */
const PAIRS_LIMIT = 4_000_000

export function diff(before: string, after: string): Line[] {
  const old = before.split('\n')
  const fresh = after.split('\n')
  let top = 0
  while (top < old.length && top < fresh.length && old[top] === fresh[top]) top += 1
  let end = 0
  while (end < old.length - top && end < fresh.length - top && old[old.length - 1 - end] === fresh[fresh.length - 1 - end]) end += 1
  const same = (text: string): Line => ({ kind: 'same', text })
  return [
    ...old.slice(0, top).map(same),
    ...middle(old.slice(top, old.length - end), fresh.slice(top, fresh.length - end)),
    ...old.slice(old.length - end).map(same),
  ]
}

function middle(old: string[], fresh: string[]): Line[] {
  if (old.length * fresh.length > PAIRS_LIMIT) {
    return [...old.map((text): Line => ({ kind: 'removed', text })), ...fresh.map((text): Line => ({ kind: 'added', text }))]
  }
  const width = fresh.length + 1
  const longest = new Uint32Array((old.length + 1) * width)
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = fresh.length - 1; j >= 0; j -= 1) {
      const below = longest[(i + 1) * width + j] ?? 0
      const beside = longest[i * width + j + 1] ?? 0
      longest[i * width + j] = old[i] === fresh[j] ? (longest[(i + 1) * width + j + 1] ?? 0) + 1 : Math.max(below, beside)
    }
  }
  const lines: Line[] = []
  let [i, j] = [0, 0]
  while (i < old.length || j < fresh.length) {
    if (i < old.length && j < fresh.length && old[i] === fresh[j]) {
      lines.push({ kind: 'same', text: old[i] ?? '' })
      i += 1
      j += 1
    } else if (j >= fresh.length || (i < old.length && (longest[(i + 1) * width + j] ?? 0) >= (longest[i * width + j + 1] ?? 0))) {
      lines.push({ kind: 'removed', text: old[i] ?? '' })
      i += 1
    } else {
      lines.push({ kind: 'added', text: fresh[j] ?? '' })
      j += 1
    }
  }
  return lines
}
