// Decides when a run stops by itself: by a rule of --halt, or because everything so far failed with one error.
import { fingerprint } from '../engines/fingerprint.js'
import { PieceworkError } from '../ground/errors.js'
import { shown } from '../task/limits.js'
import { counted, oneLine } from './print.js'

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

export interface Failure {
  error: string
  /** The error as it would read for any other item. */
  alike: string
}

/** Counts the deliveries of one run that ended by ack, retry or death. */
export class Halting {
  readonly #halt: Halt
  readonly #rule: string
  #finished = 0
  #failed = 0
  #first: string | null = null
  #same = true
  #last = ''

  /** `rule` is what --halt was given; undefined for its default. */
  constructor(halt: Halt, rule?: string) {
    this.#halt = halt
    this.#rule = `--halt ${rule ?? '(its default)'}`
  }

  /**
   * One more ended; `failure` is null for an ack, otherwise the error, and the same without the item, by which errors
   * are compared. Answers how to stop and why, or null to go on.
   */
  ended(failure: Failure | null): { when: 'soon' | 'now'; why: string } | null {
    this.#finished++
    if (failure === null) this.#same = false
    else this.#failure(failure)
    const last = this.#last
    const halt = this.#halt
    if (halt.when === 'never') return null
    if (halt.when === 'same') {
      if (!this.#same || this.#finished < sameMax) return null
      return { when: 'soon', why: `${this.#rule}: the first ${sameMax} deliveries all failed with one error: ${last}` }
    }
    const counts = `${this.#rule}: ${this.#failed} of ${counted(this.#finished, 'delivery', 'deliveries')} failed`
    const why = last === '' ? counts : `${counts}, the last one with: ${last}`
    if ('failures' in halt) return this.#failed >= halt.failures ? { when: halt.when, why } : null
    // A share of next to nothing says nothing.
    if (this.#finished < 3 || this.#failed * 100 < halt.percent * this.#finished) return null
    return { when: halt.when, why }
  }

  #failure({ error, alike }: Failure): void {
    this.#failed++
    this.#last = oneLine(error.split('\n', 1)[0] ?? '').slice(0, 200)
    const shape = fingerprint('', { code: null, text: alike })
    this.#first ??= shape
    if (shape !== this.#first) this.#same = false
  }
}
