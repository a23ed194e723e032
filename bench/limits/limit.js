// The limit: the SQLite engine's tables, indexes and durability in a hand-written minimum with no product around.
import { closeSync, fdatasync, fsyncSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'

/** Statement shapes are the fastest that bench/sqlite found; what they do to the tables is what the engine's do. */
const walk = `from piecework_task indexed by piecework_task_ready
  where type = 1 and state = 3 order by place, id limit ?`
const sql = {
  begin: 'begin immediate',
  commit: 'commit',
  store: 'select lastId from piecework_store',
  setStore: 'update piecework_store set lastId = ?',
  insert: `insert into piecework_task (id, queue, type, state, place, dueAt, enqueuedAt, payload)
    values (?, 1, 1, 3, ?, ?, ?, ?)`,
  heads: `select id, number, spent, fence, payload ${walk}`,
  lease: `update piecework_task set state = 4, wakeAt = ?, number = number + 1, spent = spent + 1,
    fence = max(fence + 1, ?), nonce = ?, worker = 1, claimedAt = ?
    where id in (select value from json_each(?))`,
  ack: 'delete from piecework_task where id = ? and fence = ? and nonce = ?',
  count: `update piecework_type set ready = ready + ?, leased = leased + ?, enqueued = enqueued + ?,
    deliveries = deliveries + ?, done = done + ? where id = 1`,
}

const leaseMs = 30_000
const nonceMax = 2 ** 48

/**
 * @typedef {{ id: number, fence: number, nonce: number, payload: string }} Delivery
 * @typedef {{ resolve: (answer: any) => void, reject: (error: Error) => void }} Caller
 */

/** One queue in one file; every answer but a claim's comes after a sync that started after its commit. */
export class Limit {
  #db
  #q
  #log
  /** @type {{ caller: Caller, payloads: string[] }[]} */
  #enqueues = []
  /** @type {{ caller: Caller, deliveries: readonly Delivery[] }[]} */
  #acks = []
  /** @type {{ caller: Caller, max: number }[]} */
  #claims = []
  #planned = false
  /** @type {(() => void)[]} */
  #idle = []

  /** @param {string} file an empty store as the engine makes it */
  constructor(file) {
    this.#db = new Database(file, { timeout: 0 })
    this.#db.pragma('journal_mode = wal')
    this.#db.pragma('synchronous = normal')
    this.#db.exec(`insert into piecework_queue (id, name, createdAt) values (1, 'q', 0);
      insert into piecework_type (id, queue, name) values (1, 1, 'q')`)
    this.#q = /** @type {{ [Name in keyof typeof sql]: Database.Statement }} */ (
      Object.fromEntries(Object.entries(sql).map(([name, text]) => [name, this.#db.prepare(text)]))
    )
    this.#log = new LogSync(file)
  }

  /**
   * Resolves with the ids once they are durable.
   * @param {string[]} payloads
   * @returns {Promise<number[]>}
   */
  enqueue(payloads) {
    return new Promise((resolve, reject) => {
      this.#enqueues.push({ caller: { resolve, reject }, payloads })
      this.#plan()
    })
  }

  /**
   * @param {number} max
   * @returns {Promise<Delivery[]>}
   */
  claim(max) {
    return new Promise((resolve, reject) => {
      this.#claims.push({ caller: { resolve, reject }, max })
      this.#plan()
    })
  }

  /**
   * Resolves once the acks are durable.
   * @param {readonly Delivery[]} deliveries
   * @returns {Promise<void>}
   */
  ack(deliveries) {
    return new Promise((resolve, reject) => {
      this.#acks.push({ caller: { resolve, reject }, deliveries })
      this.#plan()
    })
  }

  /** Resolves when something was enqueued, or somebody calls wake(). */
  wait() {
    return new Promise((resolve) => this.#idle.push(() => resolve(undefined)))
  }

  wake() {
    for (const resolve of this.#idle.splice(0)) resolve()
  }

  async close() {
    await this.#log.after()
    this.#log.close()
    this.#db.close()
  }

  #plan() {
    if (this.#planned) return
    this.#planned = true
    setImmediate(() => this.#turn())
  }

  /** One transaction for everything that was asked in this turn of the loop: acks, enqueues, claims. */
  #turn() {
    this.#planned = false
    const [acks, enqueues, claims] = [this.#acks, this.#enqueues, this.#claims]
    this.#acks = []
    this.#enqueues = []
    this.#claims = []
    const q = this.#q
    const nowUs = performance.timeOrigin * 1000 + performance.now() * 1000
    const now = Math.floor(nowUs / 1000)
    q.begin.run()
    let done = 0
    for (const { deliveries } of acks) {
      for (const { id, fence, nonce } of deliveries) done += q.ack.run(id, fence, nonce).changes
    }
    const { ids, added } = this.#insert(enqueues, Math.floor(nowUs), now)
    let claimed = 0
    const answers = claims.map(({ max }) => {
      const deliveries = this.#lease(max, Math.floor(nowUs), now)
      claimed += deliveries.length
      return deliveries
    })
    if (added + claimed + done > 0) q.count.run(added - claimed, claimed - done, added, claimed, done)
    q.commit.run()
    for (let i = 0; i < claims.length; i++) claims[i]?.caller.resolve(answers[i])
    if (added > 0) this.wake()
    if (acks.length + enqueues.length > 0) this.#answer(acks, enqueues, ids)
  }

  /** @param {{ payloads: string[] }[]} enqueues @param {number} nowUs @param {number} now */
  #insert(enqueues, nowUs, now) {
    if (enqueues.length === 0) return { ids: [], added: 0 }
    const { lastId } = /** @type {{ lastId: number }} */ (this.#q.store.get())
    let id = Math.max(lastId + 1, nowUs)
    const first = id
    const ids = enqueues.map(({ payloads }) =>
      payloads.map((payload) => {
        this.#q.insert.run(id, now, now, now, payload)
        return id++
      }),
    )
    this.#q.setStore.run(id - 1)
    return { ids, added: id - first }
  }

  /** @param {number} max @param {number} nowUs @param {number} now @returns {Delivery[]} */
  #lease(max, nowUs, now) {
    const rows = /** @type {Delivery[]} */ (this.#q.heads.all(max))
    if (rows.length === 0) return rows
    const nonce = Math.floor(Math.random() * nonceMax)
    this.#q.lease.run(now + leaseMs, nowUs, nonce, now, JSON.stringify(rows.map((row) => row.id)))
    for (const row of rows) {
      row.fence = Math.max(row.fence + 1, nowUs)
      row.nonce = nonce
    }
    return rows
  }

  /** @param {{ caller: Caller }[]} acks @param {{ caller: Caller }[]} enqueues @param {number[][]} ids */
  #answer(acks, enqueues, ids) {
    this.#log.after().then(
      () => {
        for (const { caller } of acks) caller.resolve(undefined)
        for (let i = 0; i < enqueues.length; i++) enqueues[i]?.caller.resolve(ids[i])
      },
      (error) => {
        for (const { caller } of [...acks, ...enqueues]) caller.reject(error)
      },
    )
  }
}

/** One fdatasync of the write-ahead log at a time, off the thread, shared by everything committed before it started. */
class LogSync {
  #fd
  #running = false
  /** @type {Caller[]} */
  #waiting = []

  /** @param {string} file */
  constructor(file) {
    this.#fd = openSync(`${file}-wal`, 'r')
    const folder = openSync(dirname(file), 'r')
    fsyncSync(folder)
    closeSync(folder)
  }

  /** Resolves after a sync that started after this call. */
  after() {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject })
      if (!this.#running) this.#start()
    })
  }

  close() {
    closeSync(this.#fd)
  }

  #start() {
    this.#running = true
    const served = this.#waiting
    this.#waiting = []
    fdatasync(this.#fd, (error) => {
      this.#running = false
      for (const { resolve, reject } of served) error ? reject(error) : resolve(undefined)
      if (this.#waiting.length > 0) this.#start()
    })
  }
}
