// Transactions of the caller as queues and deliveries use them: which engine takes which, and one that also acks.
import type { Engine } from '../engine/contract.js'
import type { Ask, AsyncEngine, Effect, SyncEngine } from '../engine/transactions.js'
import { PieceworkError } from '../ground/errors.js'
import { checkName } from '../task/limits.js'

/** The engine, for calls that answer at once; throws PW_TX_UNSUPPORTED. */
export function syncOf(engine: Engine, call: string): SyncEngine {
  if (engine.traits.transactions === 'sync') return engine as SyncEngine
  throw new PieceworkError('PW_TX_UNSUPPORTED', `${call} is for SQLite; this store answers later.`, { call })
}

/** The engine, for calls that answer later; throws PW_TX_UNSUPPORTED. */
export function asyncOf(engine: Engine, call: string): AsyncEngine {
  if (engine.traits.transactions === 'async') return engine as AsyncEngine
  const { transactions } = engine.traits
  const why = transactions === 'sync' ? 'SQLite has it without waiting' : 'a broker has no transactions'
  throw new PieceworkError('PW_TX_UNSUPPORTED', `${call} is for PostgreSQL; ${why}.`, { call })
}

/**
 * Runs `fn` in a transaction of the engine's own; `receipt`, if there is one, is acked in it. Hears how to ask what
 * became of the ack before the commit, whose answer may be lost.
 */
export async function transact<T>(
  engine: Engine,
  fn: (tx: never) => T,
  receipt: string | null,
  acked: (ask: Ask) => void,
): Promise<Awaited<T>> {
  if (engine.traits.transactions === 'sync') {
    const sync = engine as SyncEngine
    return sync.transactSync((tx) => {
      const value = fn(tx as never)
      if (isThenable(value))
        throw new PieceworkError('PW_TX_ASYNC', 'The function of transaction() returned a promise.')
      if (receipt !== null) acked(sync.ackSync(receipt, tx))
      return value as Awaited<T>
    })
  }
  const later = asyncOf(engine, 'transaction')
  return later.transact(async (tx): Promise<Awaited<T>> => {
    const value: Awaited<T> = await fn(tx as never)
    if (receipt !== null) acked(await later.ackWithin(receipt, tx))
    return value
  })
}

export const effectOf = (queue: string, effectKey: string, task: string | null): Effect => ({
  queue,
  effectKey: checkName('effect key', effectKey),
  task,
})

const isThenable = (value: unknown): boolean => typeof (value as { then?: unknown } | null)?.then === 'function'
