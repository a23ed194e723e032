// Sends verdicts to the engine, those of one turn in one array, and sends them again until they are answered.
import type { Verdict } from '../engine/contract.js'
import { pause } from '../ground/clock.js'
import { PieceworkError } from '../ground/errors.js'
import type { Outcome } from '../task/lifecycle.js'
import type { Run } from './delivery.js'
import type { Heartbeat } from './heartbeat.js'
import { againMs, isFatal, type Shift } from './shift.js'

/** Verdicts in one call: a few milliseconds of the store's write lock. */
const verdictsMax = 2000

/** Hears what became of a verdict. */
export type Answered = (run: Run, verdict: Verdict, outcome: Outcome) => void

export class Settler {
  readonly #shift: Shift
  readonly #heartbeat: Heartbeat
  readonly #answered: Answered
  readonly #relieved: () => void
  #verdicts: Verdict[] = []
  #runs: Run[] = []
  #flushes = 0
  #unanswered = 0
  #giveUp = false
  #idlers: (() => void)[] = []

  /** `relieved` is called when fewer verdicts wait than before. */
  constructor(shift: Shift, heartbeat: Heartbeat, answered: Answered, relieved: () => void) {
    this.#shift = shift
    this.#heartbeat = heartbeat
    this.#answered = answered
    this.#relieved = relieved
  }

  /** Verdicts that were decided and not yet answered by the engine. */
  get unanswered(): number {
    return this.#unanswered
  }

  /** Keeps the verdict for the next flush. */
  add(run: Run, verdict: Verdict): void {
    this.#verdicts.push(verdict)
    this.#runs.push(run)
    this.#unanswered++
    if (this.#verdicts.length >= verdictsMax) this.flush()
  }

  /** Sends what was added since the last flush; does not wait for earlier ones, which may still wait for a sync. */
  flush(): void {
    if (this.#verdicts.length === 0) return
    const verdicts = this.#verdicts
    const runs = this.#runs
    this.#verdicts = []
    this.#runs = []
    void this.#send(verdicts, runs)
  }

  /** Resolves when every verdict was answered or given up. */
  idle(): Promise<void> {
    this.flush()
    return this.#unanswered === 0 ? Promise.resolve() : new Promise((resolve) => this.#idlers.push(resolve))
  }

  /** From now on a verdict that the engine refuses is not sent again; the leases of such tasks end by themselves. */
  giveUp(): void {
    this.#giveUp = true
  }

  async #send(verdicts: Verdict[], runs: Run[]): Promise<void> {
    const { engine, worker, repeats, random, clock } = this.#shift
    // The same number for every try: an answer that was lost is answered as the first time.
    const by = { worker, flush: repeats ? String(++this.#flushes) : null }
    for (let failures = 0; ; failures++) {
      try {
        this.#settled(verdicts, runs, await engine.settle(by, verdicts))
        return
      } catch (error) {
        if (isFatal(error)) this.#shift.fatal(error)
        else if (failures === 0) this.#shift.events.trouble(error)
        if (this.#giveUp || isFatal(error)) return this.#forget(runs)
        if (error instanceof PieceworkError && error.retryable) await pause(clock, againMs(random, failures))
        else if (verdicts.length === 1) return this.#forget(runs)
        else return this.#halve(verdicts, runs)
      }
    }
  }

  /** One of these the engine cannot take; the others shall not suffer for it. */
  #halve(verdicts: Verdict[], runs: Run[]): void {
    const half = verdicts.length >> 1
    void this.#send(verdicts.slice(0, half), runs.slice(0, half))
    void this.#send(verdicts.slice(half), runs.slice(half))
  }

  #settled(verdicts: readonly Verdict[], runs: readonly Run[], outcomes: readonly Outcome[]): void {
    for (let i = 0; i < verdicts.length; i++) {
      this.#answered(runs[i] as Run, verdicts[i] as Verdict, outcomes[i] as Outcome)
    }
    this.#forget(runs)
  }

  #forget(runs: readonly Run[]): void {
    for (const run of runs) this.#heartbeat.drop(run)
    this.#unanswered -= runs.length
    if (this.#unanswered === 0) for (const done of this.#idlers.splice(0)) done()
    this.#relieved()
  }
}
