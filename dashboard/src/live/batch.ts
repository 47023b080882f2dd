// Gathers what comes one by one and gives it on together: a page that is redrawn for each of 500 events a second stalls.
const EVERY_MS = 120
/** Beyond this the oldest are dropped: whoever listens asks the server anew. */
const HELD_LIMIT = 5_000

export class Batch<T> {
  private held: T[] = []
  private dropped = 0
  private timer: ReturnType<typeof setTimeout> | undefined

  constructor(
    private readonly give: (items: T[], dropped: number) => void,
    private readonly everyMs: number = EVERY_MS,
  ) {}

  add(item: T): void {
    this.held.push(item)
    if (this.held.length > HELD_LIMIT) {
      this.held.shift()
      this.dropped += 1
    }
    this.timer ??= setTimeout(() => this.flush(), this.everyMs)
  }

  private flush(): void {
    const [items, dropped] = [this.held, this.dropped]
    this.held = []
    this.dropped = 0
    this.timer = undefined
    this.give(items, dropped)
  }
}
