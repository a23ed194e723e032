// Keeps the store moving on defaults: every open connection sweeps, so that nobody has to run a sweeper.
import type { Engine } from '../engine/contract.js'
import type { Clock, Random, Timer } from '../ground/clock.js'
import { bulkTasksMax, sweepEveryMs } from '../task/limits.js'

/** A due instant that keeps coming back must not turn into a busy loop. */
const pauseMsMin = 2

/** Sweeps at most every sweepEveryMs, earlier when something is due, at once when a sweep did not get through. */
export class Maintenance {
  readonly #engine: Engine
  readonly #clock: Clock
  readonly #random: Random
  readonly #report: (error: unknown) => void
  #state: 'idle' | 'running' | 'stopped' = 'idle'
  #timer: Timer | null = null
  #nextAtMs = 0
  #sweeping: Promise<void> | null = null
  #failing = false

  /** `report` hears the first error of a row of failures; a sweep never throws. */
  constructor(engine: Engine, clock: Clock, random: Random, report: (error: unknown) => void) {
    this.#engine = engine
    this.#clock = clock
    this.#random = random
    this.#report = report
  }

  /** Starts with the connection; more calls do nothing. */
  start(): void {
    if (this.#state !== 'idle') return
    this.#state = 'running'
    // Programs that start together do not sweep together.
    this.#schedule((this.#random() * sweepEveryMs) / 4)
  }

  /** Something of this connection is due in `ms`: sweep then, when that is before the next sweep. */
  expect(ms: number): void {
    if (this.#state !== 'running' || this.#sweeping !== null) return
    if (this.#clock.monotonicMs() + ms < this.#nextAtMs) this.#schedule(ms)
  }

  /** Resolves when no sweep runs and none will. */
  async stop(): Promise<void> {
    this.#state = 'stopped'
    this.#timer?.cancel()
    await this.#sweeping
  }

  #schedule(ms: number): void {
    this.#timer?.cancel()
    const pause = Math.max(ms, pauseMsMin)
    this.#nextAtMs = this.#clock.monotonicMs() + pause
    this.#timer = this.#clock.after(pause, () => {
      this.#sweeping = this.#sweep().finally(() => {
        this.#sweeping = null
      })
    })
  }

  async #sweep(): Promise<void> {
    // Jitter only makes it earlier: P8 counts on sweepEveryMs.
    let nextMs = sweepEveryMs * (0.75 + this.#random() / 4)
    try {
      const swept = await this.#engine.sweep(bulkTasksMax)
      const full = swept.expired + swept.died + swept.matured + swept.promoted + swept.folded >= bulkTasksMax
      nextMs = full ? 0 : Math.min(nextMs, swept.nextMs ?? nextMs)
      this.#failing = false
    } catch (error) {
      if (!this.#failing && this.#state === 'running') this.#report(error)
      this.#failing = true
    }
    if (this.#state === 'running') this.#schedule(nextMs)
  }
}
