// The figures of all queues once a second for everybody who listens, read once for all of them.
import type { Engine } from '../engine/contract.js'
import type { Clock, Timer } from '../ground/clock.js'
import { type Counted, type Status, statusOf } from '../insight/status.js'

export const feedEveryMs = 1000

export type Listener = (status: Status) => void

export class Feed {
  readonly #engine: Engine
  readonly #clock: Clock
  readonly #listeners = new Set<Listener>()
  #timer: Timer | null = null
  #before: Counted | null = null

  constructor(engine: Engine, clock: Clock) {
    this.#engine = engine
    this.#clock = clock
  }

  /** Tells what is known now, then every second; the answer ends it. */
  listen(listener: Listener): () => void {
    this.#listeners.add(listener)
    if (this.#listeners.size === 1) this.#before = null
    void this.#tell()
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size === 0) this.#timer?.cancel()
    }
  }

  async #tell(): Promise<void> {
    this.#timer?.cancel()
    try {
      const { status, counted } = await statusOf({ engine: this.#engine, clock: this.#clock }, null, this.#before)
      this.#before = counted
      for (const listener of this.#listeners) listener(status)
    } catch {
      // A store that cannot be read has no figures; /readyz says so, and the next second may be better.
    }
    this.#timer?.cancel()
    if (this.#listeners.size > 0) this.#timer = this.#clock.after(feedEveryMs, () => void this.#tell())
  }
}
