// What an engine does inside a transaction that its caller began: a second interface for each kind of store.
import type { Engine, Enqueued, NewTask } from './contract.js'

/** Work that is to be done once: the mark is made in the transaction that does it. */
export interface Effect {
  queue: string
  effectKey: string
  /** Whose work it is; the mark outlives it. Null: nobody's that the store knows. */
  task: string | null
}

/** How a delivery stands that was acked in a transaction: that is `open`, has `acked` it, or left it `held`. */
export type Standing = 'open' | 'acked' | 'held'
export type Ask = () => Promise<Standing>

/**
 * traits.transactions 'async'. Every call takes the caller's `tx` and throws PW_TX_NONE where none is open,
 * PW_TX_OTHER_DATABASE for one of another store; whatever else it throws, only a rollback is left for the transaction.
 */
export interface AsyncEngine extends Engine {
  /** Acks in the transaction; throws PW_LEASE_LOST. What it answers tells later what became of that. */
  ackWithin(receipt: string, tx: unknown): Promise<Ask>
  /** True the first time only. */
  once(effect: Effect, tx: unknown): Promise<boolean>
  /** Runs `work` in a transaction of its own, which commits when that resolves; throws what it throws. */
  transact<T>(work: (tx: unknown) => Promise<T>): Promise<T>
}

/** traits.transactions 'sync': the same without waiting. What throws has changed nothing. */
export interface SyncEngine extends Engine {
  enqueueSync(tasks: readonly NewTask[], tx: unknown): Enqueued[]
  ackSync(receipt: string, tx: unknown): Ask
  onceSync(effect: Effect, tx: unknown): boolean
  /** `work` must not wait; resolves when its transaction is on the disk. */
  transactSync<T>(work: (tx: unknown) => T): Promise<T>
}
