// Transactions in which handlers ack: begins them, marks effects in them, and asks what became of those that acked.
import type { Standing } from '../engine/transactions.js'
import { pause } from '../ground/clock.js'
import { PieceworkError } from '../ground/errors.js'
import { asyncOf, effectOf, syncOf, transact } from '../queue/transactions.js'
import type { Run } from './delivery.js'
import { isFatal, type Shift } from './shift.js'

/** How long after a question about an open transaction the next one comes: doubling from the first to the last. */
const askMsMin = 2
const askMsMax = 250

export class Transactions {
  readonly #shift: Shift

  constructor(shift: Shift) {
    this.#shift = shift
  }

  async transact<T>(run: Run, fn: (tx: never) => T): Promise<Awaited<T>> {
    this.#begin(run)
    const value = await transact(this.#shift.engine, fn, run.receipt, (ask) => {
      run.ask = ask
    })
    run.ask = committed
    return value
  }

  async ack(run: Run, tx: unknown): Promise<void> {
    const engine = asyncOf(this.#shift.engine, 'ack')
    this.#begin(run)
    run.ask = await engine.ackWithin(run.receipt, tx)
  }

  ackSync(run: Run, tx: unknown): void {
    const engine = syncOf(this.#shift.engine, 'ackSync')
    this.#begin(run)
    run.ask = engine.ackSync(run.receipt, tx)
  }

  async once({ task }: Run, effectKey: string, tx: unknown): Promise<boolean> {
    return asyncOf(this.#shift.engine, 'once').once(effectOf(task.queue, effectKey, task.id), tx)
  }

  onceSync({ task }: Run, effectKey: string, tx: unknown): boolean {
    return syncOf(this.#shift.engine, 'onceSync').onceSync(effectOf(task.queue, effectKey, task.id), tx)
  }

  /** Whether the task was acked, once the transaction that should do so has ended; false when its time is over. */
  async acked(run: Run): Promise<boolean> {
    const { clock, events, fatal } = this.#shift
    let standing: Standing = 'open'
    let told = false
    for (let ms = askMsMin; standing === 'open' && run.stage === 'running'; ms = Math.min(ms * 2, askMsMax)) {
      try {
        standing = (await run.ask?.()) ?? 'held'
      } catch (error) {
        if (isFatal(error)) {
          fatal(error)
          return false
        }
        if (!told) events.trouble(error)
        told = true
      }
      if (standing === 'open') await pause(clock, ms)
    }
    return standing === 'acked'
  }

  /** What was settled without its handler is not acked by it any more; what it acks here is acked in no other way. */
  #begin(run: Run): void {
    if (run.stage === 'running') {
      run.ask ??= undone
      return
    }
    const { id, number } = run.task
    throw new PieceworkError('PW_LEASE_LOST', `Delivery ${number} no longer holds task ${id}.`, { id, number })
  }
}

const committed = async (): Promise<Standing> => 'acked'
const undone = async (): Promise<Standing> => 'held'
