// The codes that speak of transactions of the caller: what `tx` may be, and what became of it.
import type { Entry } from './broker-codes.js'

export const transactionCodes = {
  PW_QUEUE_NOT_READY: {
    meaning: 'What was to be stored before the first task is not stored yet, and this call cannot wait for it.',
    why: 'A queue that was opened with a policy declares it first, a batch with `onDone` what follows it.',
    cure: 'Wait once at the start of the program: await pw.ready.',
  },
  PW_SCHEMA_ASYNC: {
    meaning: 'The schema answers later, and this call cannot wait.',
    why: 'A transaction on SQLite runs without a break; the promise of a schema would have to be awaited in it.',
    cure: 'Use a schema that answers at once, or enqueue() outside of the transaction.',
  },
  PW_TX_ASYNC: {
    meaning: 'The function given to transaction() returned a promise.',
    why: 'A transaction on SQLite runs without a break: it would have ended before that promise. It was rolled back.',
    cure: 'Pass a function that is not async and awaits nothing; do what must be awaited before or after it.',
  },
  PW_TX_NONE: {
    meaning: 'No transaction is open there.',
    why: '`tx` is missing, or what it is has no open transaction: each statement would be kept by itself.',
    cure: 'Begin one on it first, or pass what your library hands to the function that runs in its transaction.',
  },
  PW_TX_OTHER_DATABASE: {
    meaning: 'The transaction is not one of this store.',
    why: 'Two databases commit one after the other: a crash between them would keep one half.',
    cure: 'Pass a transaction on the very database that connect() was given, or keep your tables where the store is.',
  },
  PW_TX_ROLLED_BACK: {
    meaning: 'The transaction that acked the delivery was rolled back.',
    why: 'The handler returned although its effects and its ack were undone; the task is delivered again.',
    cure: 'Throw, or let the error through that ended the transaction, so that its cause is kept.',
  },
  PW_TX_UNSUPPORTED: {
    meaning: 'This call takes no transaction on this engine.',
    why: 'PostgreSQL answers later, SQLite at once, and a broker has no transactions of its callers at all.',
    cure: 'SQLite: enqueueSync, ackSync, onceSync. PostgreSQL: enqueue, ack, once with `tx`. A broker: leave `tx` out.',
  },
} as const satisfies Record<string, Entry>
