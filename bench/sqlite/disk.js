// When commits reach the disk: ways to sync the log, and ways to move it into the database without blocking the loop.
import { closeSync, fdatasync, openSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import Database from 'better-sqlite3'
import { headsSql, sql } from '../../dist/engines/sqlite/statements.js'
import { median, quantile } from '../limits/figures.js'
import { tables } from './store.js'

const now = 1_796_000_000_000
const fence = now * 1000
const text = JSON.stringify('x'.repeat(100))

/** One store that lives through whole turns: enqueue, claim and ack of the same number of tasks in one commit. */
class Turns {
  #db
  #q
  #id = fence
  #log

  constructor(/** @type {string} */ file, /** @type {string[]} */ pragmas) {
    this.#db = new Database(file)
    for (const pragma of ['journal_mode = wal', 'synchronous = normal', ...pragmas]) this.#db.pragma(pragma)
    this.#db.exec(tables)
    const prepare = (/** @type {string} */ text) => this.#db.prepare(text)
    this.#q = {
      begin: prepare(sql.begin),
      commit: prepare(sql.commit),
      insert: prepare(sql.insert),
      heads: prepare(headsSql(1)).raw(true),
      lease: prepare(sql.lease),
      ack: prepare(sql.ackPlain),
    }
    this.file = file
    this.#log = openSync(`${file}-wal`, 'r')
  }

  get logBytes() {
    return statSync(`${this.file}-wal`).size
  }

  /** Answers how long the commit took, in ms. */
  turn(/** @type {number} */ tasks) {
    const { begin, commit, insert, heads, lease, ack } = this.#q
    begin.run()
    for (let i = 0; i < tasks; i++) {
      insert.run(this.#id++, 1, 1, 3, now, now, null, null, null, null, 1, 0, null, null, 0, now, null, text)
    }
    const rows = /** @type {any[][]} */ (heads.all(1, tasks))
    lease.run(now, fence, 7, 1, now, JSON.stringify(rows.map((row) => row[0])))
    for (const row of rows) ack.run(row[0], Math.max(row[4] + 1, fence), 7, 1)
    const start = performance.now()
    commit.run()
    return performance.now() - start
  }

  /** @returns {Promise<void>} */
  sync() {
    return new Promise((resolve, reject) => fdatasync(this.#log, (error) => (error ? reject(error) : resolve())))
  }

  close() {
    closeSync(this.#log)
    this.#db.close()
  }
}

/** At most `overlap` syncs at once; a caller is served by one that starts after it came. */
function sharedSync(/** @type {Turns} */ store, /** @type {number} */ overlap) {
  let running = 0
  /** @type {(() => void)[]} */
  let waiting = []
  const start = async () => {
    running++
    const served = waiting
    waiting = []
    await store.sync()
    running--
    for (const done of served) done()
    if (waiting.length > 0) void start()
  }
  return () =>
    new Promise((resolve) => {
      waiting.push(() => resolve(undefined))
      if (running < overlap) void start()
    })
}

/** @typedef {{ name: string, store: Turns, durable: () => Promise<unknown> }} Syncing */

/** Callers that each wait for their own commit to be durable, all of one turn in one commit. */
async function callers({ store, durable }, /** @type {number} */ inFlight, /** @type {number} */ each) {
  let pending = 0
  /** @type {(() => void)[]} */
  let waiters = []
  let planned = false
  const turn = () => {
    planned = false
    const [served, tasks] = [waiters, pending]
    waiters = []
    pending = 0
    store.turn(tasks)
    void durable().then(() => {
      for (const done of served) done()
    })
  }
  /** @type {number[]} */
  const tookMs = []
  const start = performance.now()
  await Promise.all(
    Array.from({ length: inFlight }, async () => {
      for (let i = 0; i < each; i++) {
        const called = performance.now()
        await new Promise((resolve) => {
          pending++
          waiters.push(() => resolve(undefined))
          if (!planned) setImmediate(turn)
          planned = true
        })
        tookMs.push(performance.now() - called)
      }
    }),
  )
  return { seconds: (performance.now() - start) / 1000, p50Ms: quantile(tookMs, 0.5), p99Ms: quantile(tookMs, 0.99) }
}

export async function sync(/** @type {string} */ folder) {
  const open = (/** @type {string} */ name, /** @type {string[]} */ pragmas) =>
    new Turns(join(folder, `sync-${name.replace(/\W/g, '')}.db`), pragmas)
  const shared = (/** @type {string} */ name, /** @type {number} */ overlap) => {
    const store = open(name, [])
    return { name, store, durable: sharedSync(store, overlap) }
  }
  const full = 'synchronous = full, on the loop'
  const none = 'no sync (relaxed)'
  /** @type {Syncing[]} */
  const variants = [
    shared('one shared sync in flight (engine)', 1),
    shared('two overlapping', 2),
    shared('four overlapping', 4),
    { name: full, store: open(full, ['synchronous = full']), durable: () => Promise.resolve() },
    { name: none, store: open(none, []), durable: () => Promise.resolve() },
  ]
  for (const [inFlight, each] of /** @type {const} */ ([
    [100, 20],
    [1, 60],
  ])) {
    console.log(`\nSyncs with ${inFlight} in flight: tasks/s, ratio of time to the first, wait of a caller`)
    const rounds = await inTurns(variants, 9, (variant) => callers(variant, inFlight, each))
    for (let i = 0; i < variants.length; i++) {
      const own = rounds.map((round) => /** @type {Awaited<ReturnType<typeof callers>>} */ (round[i]))
      const ratio = median(own.map(({ seconds }, k) => seconds / (rounds[k]?.[0]?.seconds ?? Number.NaN)))
      const perSecond = (inFlight * each) / median(own.map(({ seconds }) => seconds))
      const p50 = median(own.map(({ p50Ms }) => p50Ms)).toFixed(2)
      const p99 = median(own.map(({ p99Ms }) => p99Ms)).toFixed(2)
      const speed = `${perSecond.toFixed(0).padStart(7)}/s x${ratio.toFixed(2)}`
      console.log(`  ${variants[i]?.name.padEnd(36)} ${speed}   p50 ${p50} ms   p99 ${p99} ms`)
    }
  }
  for (const { store } of variants) store.close()
}

/**
 * Every variant once in each round, in changing order; the first round is not kept.
 * @template V, R
 * @param {V[]} variants
 * @param {number} rounds
 * @param {(variant: V) => Promise<R>} work
 */
async function inTurns(variants, rounds, work) {
  /** @type {R[][]} */
  const found = []
  for (let round = -1; round < rounds; round++) {
    /** @type {R[]} */
    const row = []
    for (let turn = 0; turn < variants.length; turn++) {
      const at = (turn + round + 1) % variants.length
      row[at] = await work(/** @type {V} */ (variants[at]))
    }
    if (round >= 0) found.push(row)
  }
  return found
}

/** A thread that checkpoints whenever it is told to. */
const thread = `
const { parentPort, workerData } = require('node:worker_threads')
const Database = require(workerData.driver)
const db = new Database(workerData.file)
db.pragma('synchronous = normal')
parentPort.on('message', () => {
  db.pragma('wal_checkpoint(passive)')
  parentPort.postMessage(0)
})`

/** @typedef {{ name: string, store: Turns, after: () => void, end: () => unknown }} Checkpointing */

/**
 * A store whose log a thread moves, every 20 commits at most; the loop steps in at `pages`.
 * @returns {Checkpointing}
 */
function threaded(/** @type {string} */ file, /** @type {string} */ name, /** @type {number} */ pages) {
  const store = new Turns(file, [`wal_autocheckpoint = ${pages}`])
  const driver = new URL(import.meta.resolve('better-sqlite3')).pathname
  const worker = new Worker(thread, { eval: true, workerData: { file, driver } })
  let commits = 0
  let busy = false
  worker.on('message', () => {
    busy = false
  })
  const after = () => {
    if (++commits % 20 > 0 || busy) return
    busy = true
    worker.postMessage(0)
  }
  return { name, store, after, end: () => worker.terminate() }
}

const turnTasks = 100
const turns = 150

export async function checkpoint(/** @type {string} */ folder) {
  const on = (/** @type {number} */ pages, suffix = '') => {
    const store = new Turns(join(folder, `pages-${pages}.db`), [`wal_autocheckpoint = ${pages}`])
    return { name: `on the loop every ${pages} pages${suffix}`, store, after() {}, end() {} }
  }
  /** @type {Checkpointing[]} */
  const variants = [
    on(1000, ' (engine)'),
    on(250),
    on(4000),
    on(16_000),
    threaded(join(folder, 'thread-16000.db'), 'in a thread, on the loop at 16000', 16_000),
    threaded(join(folder, 'thread.db'), 'in a thread only', 0),
  ]
  const rounds = await inTurns(variants, 40, async ({ store, after }) => {
    const durable = sharedSync(store, 1)
    /** @type {number[]} */
    const commitMs = []
    const cpu = process.cpuUsage()
    const start = performance.now()
    for (let i = 0; i < turns; i++) {
      commitMs.push(store.turn(turnTasks))
      after()
      void durable()
      await nextTurn()
    }
    await durable()
    const ms = performance.now() - start
    const { user, system } = process.cpuUsage(cpu)
    return { commitMs, ms, cpuUs: user + system }
  })
  console.log(`\nCheckpoints, turns of ${turnTasks} enqueues, claims and acks: ms of the commit on the loop`)
  for (let i = 0; i < variants.length; i++) {
    const own = rounds.map((round) => /** @type {{ commitMs: number[], ms: number, cpuUs: number }} */ (round[i]))
    const commitMs = own.flatMap((row) => row.commitMs)
    const ratio = (/** @type {'ms' | 'cpuUs'} */ field) =>
      median(own.map((row, k) => row[field] / (rounds[k]?.[0]?.[field] ?? Number.NaN))).toFixed(2)
    const cells = [0.5, 0.99, 0.999, 1].map((q) => quantile(commitMs, q).toFixed(2).padStart(7))
    const long = commitMs.filter((took) => took > 5)
    const stalled = `over 5 ms: ${long.length} of ${commitMs.length}, ${sum(long).toFixed(0)} ms`
    const log = (variants[i]?.store.logBytes ?? 0) >> 20
    console.log(`  ${variants[i]?.name.padEnd(34)} p50, p99, p99.9, max ${cells.join(' ')}   ${stalled}`)
    console.log(`${' '.repeat(37)}time x${ratio('ms')}   CPU x${ratio('cpuUs')}   log ${log} MiB`)
    await variants[i]?.end()
    variants[i]?.store.close()
  }
}

const sum = (/** @type {readonly number[]} */ figures) => figures.reduce((total, figure) => total + figure, 0)
