// Measures how fast a worker gets through each type of work, and says how many tasks to claim ahead of need.

/** Weight of the newest figure in a moving average. */
const newest = 0.1
/** Tasks claimed ahead at most: more did not drain faster, and all of them go back when the worker stops. */
export const aheadMax = 1000
/** Payload claimed ahead at most, in characters. */
const aheadCharactersMax = 8 * 1024 * 1024
/** A run shorter than the clock can tell. */
const runMsMin = 0.0005

/** A moving average; NaN until it has been fed. */
const fed = (average: number, figure: number) =>
  Number.isNaN(average) ? figure : average + (figure - average) * newest

/** What was measured of one type. */
export interface Measured {
  /** From its handler's start to its end; NaN until one has ended. */
  runMs: number
}

/** A task that runs now. */
export interface InWork {
  readonly kind: Measured
  readonly startedAt: number
}

export class Pace {
  #claimMs = Number.NaN
  #runMs = Number.NaN
  #blockMs = Number.NaN
  #characters = Number.NaN

  /** `claimMs` from sending a claim to its answer. */
  claimed(claimMs: number): void {
    this.#claimMs = fed(this.#claimMs, claimMs)
  }

  /** A task of `kind` ran `runMs`; for `blockMs` of it its handler kept the event loop to itself. */
  ran(kind: Measured, runMs: number, blockMs: number, characters: number): void {
    kind.runMs = fed(kind.runMs, runMs)
    this.#runMs = fed(this.#runMs, runMs)
    this.#blockMs = fed(this.#blockMs, blockMs)
    this.#characters = fed(this.#characters, characters)
  }

  /** Milliseconds that a claim takes from asking to answer; 0 while none has been measured. */
  get claimMs(): number {
    return Number.isNaN(this.#claimMs) ? 0 : this.#claimMs
  }

  /**
   * How many tasks are likely to be started while one claim is on its way. A free slot counts as recent work of any
   * type, a busy one as its own type, and as no faster than it has already run. Slow and unmeasured work gives 0.
   */
  ahead(running: readonly InWork[], free: number, now: number): number {
    if (Number.isNaN(this.#claimMs) || Number.isNaN(this.#runMs)) return 0
    let starts = free * (this.#claimMs / Math.max(this.#runMs, runMsMin))
    for (const { kind, startedAt } of running) {
      if (!Number.isNaN(kind.runMs)) starts += this.#claimMs / Math.max(kind.runMs, now - startedAt, runMsMin)
    }
    // Handlers that block the loop run one after the other, however many slots there are.
    const oneByOne = this.#claimMs / Math.max(this.#blockMs, runMsMin)
    const fitting = aheadCharactersMax / Math.max(this.#characters, 1)
    return Math.floor(Math.min(starts, oneByOne, fitting, aheadMax))
  }
}
