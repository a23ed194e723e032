// One delivery: what the runtime knows of it, and the face of it that a handler is given.
import type { ClaimedTask } from '../engine/contract.js'
import type { Ask } from '../engine/transactions.js'
import { PieceworkError } from '../ground/errors.js'
import type { AbortCode, Delivery, Handler } from '../task/handler.js'
import { shown } from '../task/limits.js'
import type { Held } from './heartbeat.js'
import type { InWork, Measured } from './pace.js'
import { phases } from './pulse.js'
import { contained } from './stray.js'
import type { Transactions } from './transactions.js'

/** A type as this worker knows it. */
export interface Kind extends Measured {
  readonly handler: Handler<unknown> | undefined
}

/** `held`: no handler has started. `running`. `settled`: a verdict went out, its handler still runs. `over`. */
type Stage = 'held' | 'running' | 'settled' | 'over'

const abortTexts: Record<AbortCode, string> = {
  PW_LEASE_LOST: 'The lease of this delivery ended and could not be extended.',
  PW_TIMEOUT: 'The handler ran longer than timeoutMs.',
  PW_CANCELLED: 'The task was cancelled while it ran.',
  PW_STOPPING: 'The worker is stopping and the grace time has passed.',
}

/** A claimed task on its way through this worker. Instants are of the monotonic clock. */
export class Run implements Held, InWork {
  readonly task: ClaimedTask
  readonly kind: Kind
  stage: Stage = 'held'
  slot = -1
  place = -1
  endsAt: number
  overdueAt: number
  heldAt = 0
  startedAt = 0
  /** How long its handler ran; 0 while it runs. */
  runMs = 0
  /** What its handler threw. */
  failure: unknown
  /** For how long its handler kept the loop to itself before it returned or promised. */
  blockMs = 0
  /** Asks what became of the transaction in which its handler acked; null when it did not. */
  ask: Ask | null = null
  /** Hears of errors that its handler leaves behind. */
  report: (error: unknown) => void = () => {}
  /** Its place in the list of running deliveries. */
  index = -1
  #reason: PieceworkError | null = null
  #controller: AbortController | null = null

  constructor(task: ClaimedTask, kind: Kind, endsAt: number, overdueAt: number) {
    this.task = task
    this.kind = kind
    this.endsAt = endsAt
    this.overdueAt = overdueAt
  }

  get receipt(): string {
    return this.task.receipt
  }

  get leaseMs(): number {
    return this.task.leaseMs
  }

  get phase(): number {
    if (this.stage === 'held') return phases.unstarted
    return this.stage === 'running' ? phases.running : phases.settling
  }

  /** Why the signal aborted, if it did. */
  get reason(): PieceworkError | null {
    return this.#reason
  }

  /** Made only when somebody looks: most handlers never do. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController()
      contained(this.#controller.signal, (error) => this.report(error))
      if (this.#reason) this.#controller.abort(this.#reason)
    }
    return this.#controller.signal
  }

  /** Its verdict was found: from now on its lease is only kept until the verdict was answered. */
  settle(stage: 'settled' | 'over'): void {
    this.stage = stage
    this.overdueAt = Number.POSITIVE_INFINITY
  }

  /** Aborts the signal; only the first reason counts. */
  abort(code: AbortCode): void {
    if (this.#reason) return
    const { id, number } = this.task
    this.#reason = new PieceworkError(code, abortTexts[code], { id, number })
    this.#controller?.abort(this.#reason)
  }
}

/** What a delivery asks of its worker. */
export interface Desk {
  wallAt(monotonicAt: number): number
  extend(run: Run, ms: number): Promise<void>
  progress(run: Run, value: unknown): Promise<void>
  readonly transactions: Transactions
}

/** The face of a Run for its handler. */
export class TaskDelivery implements Delivery {
  readonly #run: Run
  readonly #desk: Desk

  constructor(run: Run, desk: Desk) {
    this.#run = run
    this.#desk = desk
  }

  get id(): string {
    return this.#run.task.id
  }
  get queue(): string {
    return this.#run.task.queue
  }
  get type(): string {
    return this.#run.task.type
  }
  get key(): string | null {
    return this.#run.task.key
  }
  get number(): number {
    return this.#run.task.number
  }
  get fence(): number {
    return this.#run.task.fence
  }
  get deliveriesMax(): number | null {
    return this.#run.task.deliveriesMax
  }
  get batch(): string | null {
    return this.#run.task.batch
  }
  get enqueuedAt(): Date {
    return new Date(this.#run.task.enqueuedAt)
  }
  get leaseEndsAt(): Date {
    return new Date(this.#desk.wallAt(this.#run.endsAt))
  }
  get signal(): AbortSignal {
    return this.#run.signal
  }

  get headers(): Readonly<Record<string, string>> {
    const { headers, id } = this.#run.task
    if (headers === null) return {}
    try {
      return JSON.parse(headers) as Record<string, string>
    } catch (cause) {
      const text = `The stored headers of task ${id} are no JSON: ${shown(headers)}.`
      throw new PieceworkError('PW_PAYLOAD_CORRUPT', text, { id }, { cause })
    }
  }

  // Functions of their own: handlers take a delivery apart, as in `(payload, { extend })`.
  get extend() {
    return (ms: number): Promise<void> => this.#desk.extend(this.#run, ms)
  }

  get progress() {
    return (value: unknown): Promise<void> => this.#desk.progress(this.#run, value)
  }

  get transaction() {
    return <T>(fn: (tx: never) => T): Promise<Awaited<T>> => this.#desk.transactions.transact(this.#run, fn)
  }

  get ack() {
    return (options: { tx: unknown }): Promise<void> => this.#desk.transactions.ack(this.#run, options?.tx)
  }

  get once() {
    return (effectKey: string, options: { tx: unknown }): Promise<boolean> =>
      this.#desk.transactions.once(this.#run, effectKey, options?.tx)
  }

  get ackSync() {
    return (options: { tx: unknown }): void => this.#desk.transactions.ackSync(this.#run, options?.tx)
  }

  get onceSync() {
    return (effectKey: string, options: { tx: unknown }): boolean =>
      this.#desk.transactions.onceSync(this.#run, effectKey, options?.tx)
  }
}
