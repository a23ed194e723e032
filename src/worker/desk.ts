// Moves the lease ends of running deliveries when their handlers ask, or when one is about to be lost.
import { PieceworkError } from '../ground/errors.js'
import { checkWhole } from '../task/limits.js'
import { encodePayload } from '../task/payload.js'
import type { Desk, Run } from './delivery.js'
import type { Heartbeat } from './heartbeat.js'
import { leaseEnd } from './pulse.js'
import type { Shift } from './shift.js'
import { Transactions } from './transactions.js'

export class LeaseDesk implements Desk {
  readonly transactions: Transactions
  readonly #shift: Shift
  readonly #heartbeat: Heartbeat
  /** Deliveries whose last call is under way. */
  readonly #calling = new Set<Run>()

  constructor(shift: Shift, heartbeat: Heartbeat) {
    this.#shift = shift
    this.transactions = new Transactions(shift)
    this.#heartbeat = heartbeat
  }

  wallAt(monotonicAt: number): number {
    const { clock } = this.#shift
    return clock.wallMs() + monotonicAt - clock.monotonicMs()
  }

  async extend(run: Run, ms: number): Promise<void> {
    await this.#extend(run, checkWhole('The new lease length in ms', ms, 100, 43_200_000))
  }

  async progress(run: Run, value: unknown): Promise<void> {
    const left = run.endsAt - this.#shift.clock.monotonicMs()
    await this.#extend(run, Math.round(Math.max(run.leaseMs, left)), encodePayload(value))
  }

  /** One more extension of a lease whose end has come; a delivery that is lost all the same is aborted. */
  lastCall(run: Run): void {
    // What the thread reached while the loop was blocked has not been told yet.
    this.#heartbeat.hear()
    if (this.#calling.has(run) || run.endsAt > this.#shift.clock.monotonicMs()) return
    this.#calling.add(run)
    this.#extend(run, run.leaseMs).then(
      () => this.#calling.delete(run),
      (error: unknown) => {
        this.#calling.delete(run)
        if (run.reason?.code !== 'PW_LEASE_LOST') this.#shift.events.trouble(error)
        this.lose(run)
      },
    )
  }

  /** The delivery no longer holds its task: its handler is told, and nobody extends it any more. */
  lose(run: Run): void {
    this.#heartbeat.drop(run)
    // It has acked: whether that was committed is asked when it has ended, and nobody else can hold the task before.
    if (run.ask !== null) run.endsAt = Number.POSITIVE_INFINITY
    else run.abort('PW_LEASE_LOST')
  }

  async #extend(run: Run, leaseMs: number, progress?: string): Promise<void> {
    const { engine, clock, worker } = this.#shift
    const sentAt = clock.monotonicMs()
    const over = run.stage !== 'running'
    const [held] = over ? ['stale'] : await engine.extend(worker, [{ receipt: run.receipt, leaseMs, progress }])
    if (held === 'stale') {
      this.lose(run)
      const { id, number } = run.task
      throw new PieceworkError('PW_LEASE_LOST', `Delivery ${number} no longer holds task ${id}.`, { id, number })
    }
    run.endsAt = leaseEnd(sentAt, leaseMs)
    if (run.stage === 'running') this.#heartbeat.changed(run)
    if (held === 'cancelled') run.abort('PW_CANCELLED')
  }
}
