// Lets COMMANDs start: so many at once, so many a second.
import { type Clock, pause } from '../ground/clock.js'

export class Gate {
  readonly #clock: Clock
  readonly #width: number
  readonly #everyMs: number
  readonly #closing = new AbortController()
  #inside = 0
  #nextAt = 0
  readonly #queue: ((enter: boolean) => void)[] = []

  /** `perSecond` null: as fast as they come. */
  constructor(clock: Clock, width: number, perSecond: number | null) {
    this.#clock = clock
    this.#width = width
    this.#everyMs = perSecond === null ? 0 : 1000 / perSecond
  }

  /** Resolves when one more may start; true: leave() has to follow. False once the gate was closed. */
  async enter(): Promise<boolean> {
    const { signal } = this.#closing
    while (this.#inside >= this.#width && !signal.aborted) {
      if (!(await new Promise<boolean>((resolve) => this.#queue.push(resolve)))) return false
    }
    if (signal.aborted) return false
    this.#inside++
    if (this.#everyMs > 0) {
      const now = this.#clock.monotonicMs()
      const at = Math.max(now, this.#nextAt)
      this.#nextAt = at + this.#everyMs
      if (at > now) await pause(this.#clock, at - now, signal)
    }
    if (!signal.aborted) return true
    this.leave()
    return false
  }

  leave(): void {
    this.#inside--
    this.#queue.shift()?.(true)
  }

  /** Whoever waits now is turned away. */
  turnAway(): void {
    for (const wake of this.#queue.splice(0)) wake(false)
  }

  /** Whoever waits is turned away, and everybody after them. */
  close(): void {
    this.#closing.abort()
    this.turnAway()
  }
}
