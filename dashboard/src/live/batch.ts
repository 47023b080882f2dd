// Gathers what comes one by one and gives it on together: a page that is redrawn for each of thousands of events a second stalls.

export interface Bounds<T> {
  everyMs: number
  /** What is given on at once, at most. More of it in so short a time is a burst. */
  limit: number
  /** How much of the limit one takes, for those that differ; each is one if it is not said. */
  weigh?: (item: T) => number
}

export class Batch<T> {
  private held: T[] = []
  private weight = 0
  private skipped = 0
  private timer: ReturnType<typeof setTimeout> | undefined

  /** Gives the newest that were gathered, and how many before them were skipped. Whoever missed some asks the server anew. */
  constructor(
    private readonly bounds: Bounds<T>,
    private readonly give: (items: T[], skipped: number) => void,
  ) {}

  add(item: T): void {
    const weight = this.bounds.weigh?.(item) ?? 1
    if (this.held.length > 0 && this.weight + weight > this.bounds.limit) {
      this.skipped += this.held.length
      this.held = []
      this.weight = 0
    }
    this.held.push(item)
    this.weight += weight
    this.timer ??= setTimeout(() => this.flush(), this.bounds.everyMs)
  }

  /** Gives what there is now, without waiting for its time. */
  flush(): void {
    clearTimeout(this.timer)
    this.timer = undefined
    if (this.held.length === 0) return
    const [items, skipped] = [this.held, this.skipped]
    this.held = []
    this.weight = 0
    this.skipped = 0
    this.give(items, skipped)
  }
}
