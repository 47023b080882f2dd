// Where in a JSON text the value of a path stands, so that a complaint about `/steps/0/id` can be shown at its line.

/** The position of the value at a JSON pointer, or of the nearest thing above it that exists. */
export function positionOf(text: string, pointer: string): number {
  const wanted = pointer.split('/').slice(1).map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
  const reader = new Reader(text)
  let best = 0
  try {
    best = reader.find(wanted, (position) => {
      best = position
    })
  } catch {
    // The text is not whole JSON: the nearest place that was seen is good enough.
  }
  return best
}

export function lineOf(text: string, position: number): number {
  return text.slice(0, position).split('\n').length
}

class Reader {
  private at = 0

  constructor(private readonly text: string) {}

  /** Goes down the path and tells of every step on it. */
  find(path: string[], seen: (position: number) => void): number {
    this.space()
    const start = this.at
    seen(start)
    const [first, ...rest] = path
    if (first === undefined) return start
    const opens = this.text[this.at]
    if (opens !== '{' && opens !== '[') return start
    this.at += 1
    for (let index = 0; ; index += 1) {
      this.space()
      const found = this.text[this.at]
      if (found === undefined || found === '}' || found === ']') return start
      let name = String(index)
      if (opens === '{') {
        name = this.string()
        this.space()
        this.expect(':')
      }
      this.space()
      if (name === first) return this.find(rest, seen)
      this.skip()
      this.space()
      if (this.text[this.at] === ',') this.at += 1
    }
  }

  private skip(): void {
    const found = this.text[this.at]
    if (found === '"') {
      this.string()
      return
    }
    if (found === '{' || found === '[') {
      this.inside()
      return
    }
    const rest = /^[^,\]}\s]+/.exec(this.text.slice(this.at))
    if (!rest) throw new Error('not JSON')
    this.at += rest[0].length
  }

  private inside(): void {
    let depth = 0
    do {
      const found = this.text[this.at]
      if (found === undefined) throw new Error('not JSON')
      if (found === '"') {
        this.string()
        continue
      }
      if (found === '{' || found === '[') depth += 1
      if (found === '}' || found === ']') depth -= 1
      this.at += 1
    } while (depth > 0)
  }

  private string(): string {
    const found = /^"(?:[^"\\]|\\.)*"/.exec(this.text.slice(this.at))
    if (!found) throw new Error('not JSON')
    this.at += found[0].length
    return JSON.parse(found[0]) as string
  }

  private expect(what: string): void {
    if (this.text[this.at] !== what) throw new Error('not JSON')
    this.at += 1
  }

  private space(): void {
    while (/\s/.test(this.text[this.at] ?? '')) this.at += 1
  }
}
