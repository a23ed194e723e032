// Decides when a run stops by itself: by a rule of --halt, or because everything so far failed with one error.
import { fingerprint } from '../engines/fingerprint.js'
import { PieceworkError } from '../ground/errors.js'
import { shown } from '../task/limits.js'

/** `soon` lets running COMMANDs end, `now` ends them. */
export type Halt =
  | { when: 'never' }
  | { when: 'same' }
  | { when: 'soon' | 'now'; failures: number }
  | { when: 'soon' | 'now'; percent: number }

/** Deliveries that have to fail alike, from the first on, before a run on defaults stops. */
const sameMax = 20

/** Reads `never`, `soon,fail=N`, `now,fail=N`, `soon,fail=P%`; throws PW_OPTION_INVALID. */
export function haltOf(text: string | undefined): Halt {
  if (text === undefined) return { when: 'same' }
  if (text === 'never') return { when: 'never' }
  const match = /^(soon|now),fail=(\d+)(%?)$/.exec(text)
  const amount = Number(match?.[2])
  const percent = match?.[3] === '%'
  if (match && amount >= 1 && (!percent || amount <= 100)) {
    const when = match[1] as 'soon' | 'now'
    return percent ? { when, percent: amount } : { when, failures: amount }
  }
  throw new PieceworkError(
    'PW_OPTION_INVALID',
    `--halt is ${shown(text)}; it must be never, soon,fail=N, now,fail=N or soon,fail=P%.`,
    { option: '--halt' },
  )
}

/** Counts the deliveries of one run that ended by ack, retry or death. */
export class Halting {
  readonly #halt: Halt
  #finished = 0
  #failed = 0
  #first: string | null = null
  #same = true

  constructor(halt: Halt) {
    this.#halt = halt
  }

  /** One more ended; `error` is null for an ack. Answers how to stop and why, or null to go on. */
  ended(error: string | null): { when: 'soon' | 'now'; why: string } | null {
    this.#finished++
    if (error === null) this.#same = false
    else this.#failure(error)
    const halt = this.#halt
    if (halt.when === 'never') return null
    if (halt.when === 'same') {
      if (!this.#same || this.#finished < sameMax) return null
      return { when: 'soon', why: `The first ${sameMax} deliveries all failed with one error.` }
    }
    const counts = `${this.#failed} of ${this.#finished} deliveries failed`
    if ('failures' in halt) return this.#failed >= halt.failures ? { when: halt.when, why: `${counts}.` } : null
    // A share of next to nothing says nothing.
    if (this.#finished < 3 || this.#failed * 100 < halt.percent * this.#finished) return null
    return { when: halt.when, why: `${counts}: ${halt.percent}% or more.` }
  }

  #failure(error: string): void {
    this.#failed++
    const shape = fingerprint('', { code: null, text: error })
    this.#first ??= shape
    if (shape !== this.#first) this.#same = false
  }
}
