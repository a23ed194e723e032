// Remembers calls by their names for a minute, so that one that is sent again gets the first answer.
import type { Clock } from '../ground/clock.js'
import { PieceworkError } from '../ground/errors.js'

/** Longer than our client goes on sending one call again. */
const keepMs = 60_000
/** Beyond it the oldest are forgotten early: 800 named calls a second. */
const keptMax = 50_000

interface Kept {
  endsAtMs: number
  answer: Promise<unknown> | null
  /** How often this name was asked. */
  asked: number
  /** What was said to the first. */
  said: unknown
}

interface Asked {
  again: boolean
  last: () => boolean
  say: (answer: unknown) => void
  said: () => unknown
}

export class Names {
  readonly #clock: Clock
  readonly #kept = new Map<string, Kept>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The answer of the first call of this name, also while it is at work; a failure that may pass is forgotten. */
  once<T>(name: string | null, run: () => Promise<T>): Promise<T> {
    if (name === null) return run()
    const kept = this.#note(name)
    if (kept.answer === null) {
      const answer = run()
      kept.answer = answer
      answer.catch((error: unknown) => {
        if (!(error instanceof PieceworkError) || error.retryable) this.#kept.delete(name)
      })
    }
    return kept.answer as Promise<T>
  }

  /**
   * Notes that a name was asked. `again`: it was before; `last()`: nobody asked it after this; `say` and `said` keep
   * what the first was answered, for those after it.
   */
  asked(name: string): Asked {
    const kept = this.#note(name)
    const mine = ++kept.asked
    const say = (answer: unknown) => {
      kept.said = answer
    }
    return { again: mine > 1, last: () => kept.asked === mine, say, said: () => kept.said }
  }

  #note(name: string): Kept {
    const nowMs = this.#clock.monotonicMs()
    for (const [old, { endsAtMs }] of this.#kept) {
      if (endsAtMs > nowMs && this.#kept.size < keptMax) break
      this.#kept.delete(old)
    }
    let kept = this.#kept.get(name)
    if (!kept) {
      kept = { endsAtMs: nowMs + keepMs, answer: null, asked: 0, said: undefined }
      this.#kept.set(name, kept)
    }
    return kept
  }
}
