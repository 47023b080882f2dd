// What was skipped because it came faster than a page can be drawn, and the one look at the server that replaces it.

/** The longest that skipped events leave a page behind, and the shortest between two looks while a burst lasts. */
const RELOAD_MS = 1_000
/** After so long without another one a burst is over, and the next is counted from nothing. */
const OVER_MS = 8_000

export class Burst {
  private fresh = 0
  private total = 0
  private lastMs = Number.NEGATIVE_INFINITY
  private timer: ReturnType<typeof setTimeout> | undefined

  /** Told how many were skipped since the last look, and in the whole burst. */
  constructor(
    private readonly reload: (fresh: number, total: number) => void,
    private readonly now: () => number = () => performance.now(),
  ) {}

  skip(count: number): void {
    if (this.now() - this.lastMs > OVER_MS) this.total = 0
    this.lastMs = this.now()
    this.fresh += count
    this.timer ??= setTimeout(() => this.look(), RELOAD_MS)
  }

  private look(): void {
    const fresh = this.fresh
    this.timer = undefined
    this.fresh = 0
    this.total += fresh
    this.reload(fresh, this.total)
  }
}
