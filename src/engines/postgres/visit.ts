// Calls inside a transaction of the caller on PostgreSQL, and the transactions that the engine begins for callers.
import type { Pool, PoolClient } from 'pg'
import type { Enqueued, NewTask, Verdict } from '../../engine/contract.js'
import type { Ask, Effect } from '../../engine/transactions.js'
import type { Random } from '../../ground/clock.js'
import { PieceworkError } from '../../ground/errors.js'
import type { Outcome } from '../../task/lifecycle.js'
import { effectEndsAt } from '../effects.js'
import { parseReceipt } from '../receipt.js'
import type { Catalog } from './catalog.js'
import { enqueue, nameAll, nameTypes, unprepared } from './enqueue.js'
import { isLost, translated } from './errors.js'
import { type Guest, guestOf, noneOpen } from './guest.js'
import { type ClientPool, driver, Link, type Links } from './link.js'
import { merge, type OpenOnes } from './open-ones.js'
import { format } from './schema.js'
import { enter, Session } from './session.js'
import { settle } from './settle.js'
import type { Statements } from './statements.js'

export interface VisitPorts {
  links: Links
  q: Statements
  catalog: Catalog
  random: Random
  /** The schema's name, quoted where it must be. */
  schema: string
  /** Which store and database this is. */
  identity: Identity
  /** Where the caller's pool is, if connections are borrowed from one. */
  pool: ClientPool | null
  open: OpenOnes
  woken: (types: ReadonlyMap<number, number>) => void
}

export interface Identity {
  storeId: string
  database: string
}

interface Visited extends Identity {
  format: number
  settings: number
  nowUs: number
  xid: string
  mark: string
}

/** Connections for transactions of our own at most; handlers that want more wait for one. */
const ownMax = 10
/** SQLSTATEs of a store that is not there: no such table, no such schema. */
const missing = new Set(['42P01', '3F000'])

export class Visits {
  /** What transactions of our own have made ready, by their connection. */
  readonly #own = new WeakMap<object, Map<number, number>>()
  #pool: Pool | null = null

  constructor(private readonly ports: VisitPorts) {}

  /** Adds tasks to the caller's transaction. */
  enqueue(tasks: readonly NewTask[], tx: unknown): Promise<Enqueued[]> {
    return this.run(tx, async (s) => {
      await this.#name(s, tasks)
      return enqueue(s, tasks)
    })
  }

  /** Settles in the caller's transaction; a receipt that no longer acts throws PW_LEASE_LOST. */
  settle(verdicts: readonly Verdict[], tx: unknown): Promise<Outcome[]> {
    return this.run(tx, async (s) => {
      const outcomes = await settle(s, verdicts)
      const at = outcomes.indexOf('stale')
      if (at >= 0) throw leaseLost((verdicts[at] as Verdict).receipt)
      return outcomes
    })
  }

  async ackWithin(receipt: string, tx: unknown): Promise<Ask> {
    let number = ''
    await this.run(tx, async (s, xid) => {
      number = xid
      const [outcome] = await settle(s, [{ receipt, do: 'ack' }])
      if (outcome !== 'done') throw leaseLost(receipt)
    })
    return () => this.#standing(receipt, number)
  }

  /** True the first time only. */
  once({ queue, effectKey, task }: Effect, tx: unknown): Promise<boolean> {
    const { q, catalog } = this.ports
    return this.run(tx, async (s) => {
      if (!catalog.queue(queue)) await this.#aside((link) => nameTypes(link, q, catalog, [{ queue }]))
      const id = catalog.queue(queue)?.id ?? 0
      const values = [effectKey, id, task === null ? null : Number(task), effectEndsAt(catalog, id, s.now)]
      return (await s.run(q.addEffect, values)).length > 0
    })
  }

  /** Runs `work` in the transaction that the caller began; what it throws leaves only a rollback. */
  async run<T>(tx: unknown, work: (s: Session, xid: string) => Promise<T>): Promise<T> {
    const { q, links, catalog, random, schema, open } = this.ports
    const guest = guestOf(tx)
    const link = new Link(guest.executor, { pipelined: false, named: false })
    try {
      const { settings, nowUs, xid } = await this.#enter(link, guest)
      if (!catalog.knows(settings)) await this.#aside(async (own) => this.#learn(own))
      const s = new Session(link, q, catalog, random, schema, nowUs, true)
      const answer = await work(s, xid)
      // Nobody sees the keys before the caller commits: whoever finds these notes then promotes.
      for (const { queue, key } of s.lanes.values()) s.add(q.addLanes, queue, key)
      await s.flush()
      const own = this.#own.get(guest.identity)
      if (own) merge(own, s.woken)
      else open.add(xid, s.woken)
      return answer
    } catch (error) {
      // A failed statement has aborted it already.
      if (error instanceof PieceworkError) await link.say(q.refuse.text).catch(() => {})
      throw translated(error, links.name)
    }
  }

  /** Runs `work` in a transaction of its own. */
  async transact<T>(work: (tx: unknown) => Promise<T>): Promise<T> {
    const client = await this.#take()
    const woken = new Map<number, number>()
    this.#own.set(client, woken)
    const ignore = () => {}
    // A connection that breaks between two statements says so by an event, which nobody else hears.
    client.on('error', ignore)
    let broken = true
    try {
      await this.#say(client, 'begin')
      const answer = await work(client)
      if ((await this.#say(client, 'commit')) !== 'COMMIT') {
        throw new PieceworkError('PW_TX_ROLLED_BACK', 'A statement in it had failed, so the commit was a rollback.')
      }
      broken = false
      if (woken.size > 0) this.ports.woken(woken)
      return answer
    } catch (error) {
      if (!isLost(error)) {
        broken = await client.query('rollback').then(
          () => false,
          () => true,
        )
      }
      throw error
    } finally {
      this.#own.delete(client)
      client.off('error', ignore)
      client.release(broken)
    }
  }

  close(): void {
    this.ports.open.close()
    void this.#pool?.end()
    this.#pool = null
  }

  /** What became of the transaction with this number that acked under the receipt. */
  async #standing(receipt: string, xid: string): ReturnType<Ask> {
    const { links, q } = this.ports
    const parts = parseReceipt(receipt)
    return links.use(async (link) => {
      const [row] = await link.run<{ status: string | null }>(q.ended, [[xid]])
      if (row?.status === 'in progress') return 'open'
      if (row?.status === 'aborted') return 'held'
      // Committed, but perhaps without a savepoint that held the ack; a later look than the one that saw the commit.
      const held = await link.run(q.holds, [parts?.id, parts?.fence, parts?.nonce])
      return held.length > 0 ? 'held' : 'acked'
    })
  }

  /** The first statement on the caller's connection: refuses another store, and one without a transaction. */
  async #enter(link: Link, guest: Guest): Promise<Visited> {
    const { q, identity, random } = this.ports
    const mark = String(random())
    const [seen] = await link.run<Visited>(q.visit, [mark]).catch((error: unknown) => {
      throw missing.has(String((error as { code?: unknown }).code)) ? this.#elsewhere('has no store') : error
    })
    if (seen?.storeId !== identity.storeId) throw this.#elsewhere('holds another store')
    if (seen.database !== identity.database) throw this.#elsewhere(`is in the database ${seen.database}`)
    if (seen.format > format) {
      throw new PieceworkError('PW_SCHEMA_NEW', `The store has format ${seen.format}; this version knows ${format}.`)
    }
    if (!guest.open) {
      const [kept] = await link.run<{ mark: string | null }>(q.visited)
      if (kept?.mark !== mark) throw noneOpen('What was said on `tx` was forgotten with the next statement')
    }
    return seen
  }

  #elsewhere(what: string): PieceworkError {
    const text = `The store is in ${this.ports.identity.database} of ${this.ports.links.name}, but \`tx\` ${what}.`
    return new PieceworkError('PW_TX_OTHER_DATABASE', text)
  }

  /** Makes what these tasks name, in commits of their own, unless it is there. */
  async #name(s: Session, tasks: readonly NewTask[]): Promise<void> {
    const { q, catalog } = this.ports
    const batches = [...new Set(tasks.flatMap((task) => task.batch ?? []))]
    const known = batches.length === 0 ? [] : await s.run(q.batchesByName, [batches])
    if (unprepared(catalog, tasks).length === 0 && known.length === batches.length) return
    await this.#aside((link) => nameAll(link, q, catalog, tasks))
    if (batches.length === 0 || (await s.run(q.batchesByName, [batches])).length === batches.length) return
    const text = `The transaction looks at an instant before the batches ${batches.join(', ')} were made: run it again.`
    throw new PieceworkError('PW_BUSY', text, { batches })
  }

  async #learn(link: Link): Promise<void> {
    const { settings } = await enter(link, this.ports.q)
    await this.ports.catalog.validFor(settings, link)
  }

  /**
   * On a connection that nobody's transaction holds: a program whose pool is all in transactions would wait for itself.
   */
  async #aside<T>(work: (link: Link) => Promise<T>): Promise<T> {
    const { links, pool } = this.ports
    if (pool === null) return links.use(work)
    const held = await links.keep(() => {})
    try {
      return await work(held.link)
    } finally {
      held.end()
    }
  }

  async #take(): Promise<PoolClient> {
    const { links, pool } = this.ports
    try {
      if (pool !== null) return (await pool.connect()) as unknown as PoolClient
      const { Pool } = await driver()
      if (this.#pool === null) {
        this.#pool = new Pool({ ...links.config(), max: ownMax, allowExitOnIdle: true })
        this.#pool.on('error', () => {})
      }
      return await this.#pool.connect()
    } catch (error) {
      // Another server of the URL may be the one that writes now.
      void this.#pool?.end()
      this.#pool = null
      throw translated(error, links.name)
    }
  }

  async #say(client: PoolClient, text: string): Promise<string> {
    try {
      return (await client.query(text)).command
    } catch (error) {
      throw translated(error, this.ports.links.name)
    }
  }
}

const leaseLost = (receipt: string): PieceworkError =>
  new PieceworkError('PW_LEASE_LOST', `The receipt ${receipt} no longer holds its task.`, { receipt })
