// One timer for all of a worker's instants: no task has a timer of its own.
import type { Clock, Timer } from '../ground/clock.js'

/** The longest time between two checks; also what keeps the process open while a worker runs. */
const checkEveryMs = 1000
const checkMsMin = 1

export class Vigil {
  readonly #clock: Clock
  readonly #check: () => number
  #timer: Timer | null = null
  #nextAt = Number.POSITIVE_INFINITY
  #stopped = false

  /** `check` answers the instant of the monotonic clock at which it wants to be called again. */
  constructor(clock: Clock, check: () => number) {
    this.#clock = clock
    this.#check = check
  }

  start(): void {
    this.#plan(this.#clock.monotonicMs() + checkEveryMs)
  }

  /** Makes sure that there is a check at this instant. */
  expect(at: number): void {
    if (at < this.#nextAt && !this.#stopped) this.#plan(at)
  }

  stop(): void {
    this.#stopped = true
    this.#timer?.cancel()
  }

  #plan(at: number): void {
    this.#timer?.cancel()
    const now = this.#clock.monotonicMs()
    this.#nextAt = Math.min(Math.max(at, now + checkMsMin), now + checkEveryMs)
    this.#timer = this.#clock.after(
      this.#nextAt - now,
      () => {
        const nextAt = this.#check()
        if (!this.#stopped) this.#plan(nextAt)
      },
      true,
    )
  }
}
