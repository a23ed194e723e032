// Calls inside a transaction of the caller: on a connection of theirs to the same file, or on ours in `transactSync`.

import { statSync } from 'node:fs'
import type { Database } from 'better-sqlite3'
import type { Effect } from '../../engine/transactions.js'
import type { Clock, Random } from '../../ground/clock.js'
import { PieceworkError } from '../../ground/errors.js'
import { shown } from '../../task/limits.js'
import { effectEndsAt } from '../effects.js'
import { parseReceipt } from '../receipt.js'
import { translated } from './errors.js'
import { Session } from './session.js'
import { settle } from './settle.js'

/** What a visit has to know of the engine's own connection. */
export interface Home {
  readonly db: Database
  readonly session: Session
  readonly file: string
  readonly clock: Clock
  readonly random: Random
}

export class Visits {
  readonly #sessions = new WeakMap<Database, Session>()
  /** The first refusal inside the function of `transact`: that transaction is not committed. */
  #refused: { error: unknown } | null = null

  constructor(private readonly home: Home) {}

  /** Runs `work` in the transaction that is open on `tx`; throws PW_TX_NONE, PW_TX_OTHER_DATABASE. */
  run<T>(tx: unknown, work: (session: Session) => T): T {
    const { db, session, file } = this.home
    if (tx === undefined) throw noneOpen('`tx` is missing')
    try {
      const guest = tx === db ? session : this.#sessionOf(tx)
      // Our own has one only while the function of `transact` runs.
      if (!guest.db.inTransaction) throw noneOpen(`The connection to ${file} has none`)
      return tx === db ? work(session) : guest.visit(work)
    } catch (error) {
      if (tx === db) this.#refused ??= { error }
      throw translated(error, file)
    }
  }

  /** Calls the caller's function with our connection, whose transaction is open; throws what it throws. */
  call<T>(work: (tx: unknown) => T): T {
    const { db, file } = this.home
    this.#refused = null
    const answer = work(db)
    if (this.#refused !== null) throw (this.#refused as { error: unknown }).error
    if (!db.inTransaction) throw noneOpen(`The function given to transaction() ended the one on ${file}`)
    return answer
  }

  #sessionOf(tx: unknown): Session {
    const { clock, random } = this.home
    const known = this.#sessions.get(tx as Database)
    if (known) return known
    if (!this.#isHere(tx)) throw this.#foreign(tx)
    // Other processes, and this one's own connection, see the commit by themselves.
    const made = new Session(tx, clock, random, () => {})
    this.#sessions.set(tx, made)
    return made
  }

  #isHere(tx: unknown): tx is Database {
    const { db, file } = this.home
    if (tx === db) return true
    const other = tx as Partial<Database> | null
    if (typeof other !== 'object' || typeof other?.pragma !== 'function' || other.open !== true) return false
    const [main] = other.pragma('database_list') as { name: string; file: string }[]
    return file !== ':memory:' && main !== undefined && main.file !== '' && sameFile(main.file, file)
  }

  #foreign(tx: unknown): PieceworkError {
    const { file } = this.home
    const { name } = (typeof tx === 'object' && tx !== null ? tx : {}) as { name?: unknown }
    const what = typeof name === 'string' ? shown(name) : 'no database of better-sqlite3'
    return new PieceworkError('PW_TX_OTHER_DATABASE', `The store is ${file}, but \`tx\` is ${what}.`, { file })
  }
}

const noneOpen = (what: string) => new PieceworkError('PW_TX_NONE', `${what}: no transaction is open.`)

function sameFile(one: string, other: string): boolean {
  const [a, b] = [one, other].map((file) => statSync(file, { bigint: true, throwIfNoEntry: false }))
  return a !== undefined && a.dev === b?.dev && a.ino === b.ino
}

/** Acks inside of a caller's transaction; throws PW_LEASE_LOST. */
export function ackWithin(s: Session, receipt: string): void {
  const [outcome] = settle(s, [{ receipt, do: 'ack' }])
  if (outcome === 'done') return
  throw new PieceworkError('PW_LEASE_LOST', `The receipt ${receipt} no longer holds its task.`, { receipt })
}

/** True the first time only. */
export function once(s: Session, { queue: name, effectKey, task }: Effect): boolean {
  const { id: queue } = s.catalog.ensureQueue(name, s.now)
  const id = task === null ? null : Number(task)
  const endsAt = effectEndsAt(s.catalog, queue, s.now)
  return s.q.addEffect.run(effectKey, queue, id, endsAt, effectKey, id).changes > 0
}

/** True while the receipt's delivery is under lease. */
export function isHeld(s: Session, receipt: string): boolean {
  const parts = parseReceipt(receipt)
  return parts !== null && s.q.holding.get(parts.id, parts.fence, parts.nonce) !== undefined
}
