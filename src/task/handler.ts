// What a handler is given and how it decides: the delivery, and the four errors that are decisions.

import type { AsyncTx, EngineName, OwnTx, SyncTx } from './transaction.js'

/** Why a delivery's signal aborts: the code of the PieceworkError that is its reason. */
export type AbortCode = 'PW_LEASE_LOST' | 'PW_TIMEOUT' | 'PW_CANCELLED' | 'PW_STOPPING'

/** One handing over of a task to a handler. */
export interface Delivery<E extends EngineName = EngineName> {
  readonly id: string
  readonly queue: string
  readonly type: string
  readonly key: string | null
  /** Counts the deliveries of this task from 1, never backwards. */
  readonly number: number
  /** Rises with every delivery of this task; pass it downstream to refuse a stale writer. Below 2^53. */
  readonly fence: number
  /** Deliveries the task may spend before it is dead; null when there is no such ceiling. */
  readonly deliveriesMax: number | null
  readonly enqueuedAt: Date
  /** When the lease ends if it is not extended again; the runtime extends it as long as the handler runs. */
  readonly leaseEndsAt: Date
  readonly headers: Readonly<Record<string, string>>
  readonly batch: string | null
  /** Aborts with a PieceworkError: PW_LEASE_LOST, PW_TIMEOUT, PW_CANCELLED or PW_STOPPING. */
  readonly signal: AbortSignal
  /** Makes the lease end `ms` from now (100 … 43 200 000); throws PW_LEASE_LOST when it no longer holds. */
  extend(ms: number): Promise<void>
  /** Stores how far the work is, any JSON value, for readers of the task; throws PW_LEASE_LOST. */
  progress(value: unknown): Promise<void>
  /**
   * The effects that `fn` has in the database it is given, and the ack, in one commit; resolves when that is done.
   * PostgreSQL: a client of pg. SQLite: the store's database, and `fn` must not wait (PW_TX_ASYNC). Throws what `fn`
   * throws, and PW_LEASE_LOST when the delivery no longer holds its task; then nothing was kept.
   */
  transaction<T>(fn: (tx: OwnTx<E>) => T): Promise<Awaited<T>>
  /**
   * Acks inside of the caller's own transaction; PW_LEASE_LOST so that it rolls back, PW_TX_NONE, PW_TX_OTHER_DATABASE.
   * When the handler returns, what became of that transaction decides.
   */
  ack(options: { tx: AsyncTx<E> }): Promise<void>
  /** True the first time only, for all tasks of this queue: the mark is made in the transaction that does the work. */
  once(effectKey: string, options: { tx: AsyncTx<E> }): Promise<boolean>
  /** The same as `ack` on SQLite: inside of a transaction on the store's file. */
  ackSync(options: { tx: SyncTx<E> }): void
  /** The same as `once` on SQLite. */
  onceSync(effectKey: string, options: { tx: SyncTx<E> }): boolean
}

/** Return = ack (the value is the result). Throw = retry, or what the thrown decision says. */
export type Handler<T, E extends EngineName = EngineName> = (payload: T, delivery: Delivery<E>) => unknown

interface DecisionOptions {
  delayMs?: number | undefined
  cause?: unknown
}

const messageOf = (cause: unknown, otherwise: string) => (cause instanceof Error ? cause.message : otherwise)

/** Throw to have the task delivered again; counts. `delayMs` overrides the backoff. */
export class Retry extends Error {
  override readonly name = 'Retry'
  readonly delayMs: number | undefined
  constructor(options: DecisionOptions = {}) {
    super(messageOf(options.cause, 'The handler asked for a retry.'), options)
    this.delayMs = options.delayMs
  }
}

/** Throw to give the task back uncounted (up to releasesMax times), at its old place or after `delayMs`. */
export class Release extends Error {
  override readonly name: string = 'Release'
  readonly delayMs: number | undefined
  constructor(options: DecisionOptions = {}) {
    super(messageOf(options.cause, 'The handler gave the task back.'), options)
    this.delayMs = options.delayMs
  }
}

/** Throw when what the task draws on is overloaded: a release, and the limits of its queue shrink. */
export class Overloaded extends Release {
  override readonly name = 'Overloaded'
}

/** Throw to put the task into the dead letters at once, with a reason. */
export class Bury extends Error {
  override readonly name = 'Bury'
  constructor(reason: string, options: { cause?: unknown } = {}) {
    super(reason, options)
  }
}
