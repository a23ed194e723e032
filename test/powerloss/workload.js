// The recorded process: real callers on the real library for some rounds of opening and closing, then it kills itself.
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { engineFor } from '../../dist/engines/open.js'
import { systemClock } from '../../dist/ground/clock.js'
import { Client } from '../../dist/queue/client.js'
import { Connection } from '../../dist/queue/connection.js'
import { seededRandom } from '../../dist/testing/seeded-random.js'
import { startWorker } from '../../dist/worker/worker.js'
import { adder, bulkAdder, burster, jumper, operator, repeater } from './callers.js'
import { handWorker, startHandlers } from './hands.js'
import { marker } from './marks.js'
import { planted } from './planted.js'

/**
 * @typedef {object} Plan what one recording does
 * @property {string} name
 * @property {number} pages the log is written back into the database after so many pages
 * @property {number} processes
 * @property {'group' | 'full' | 'relaxed'} durability
 * @property {boolean} jumps the clock runs ahead in leaps of minutes, so that numbers are reserved often
 * @property {'joining' | 'unreserved'} [plant] a planted fault
 *
 * @typedef {object} Shop everything the callers of one round share
 * @property {import('../../dist/index.js').Piecework} pw
 * @property {import('../../dist/engine/contract.js').Engine} engine
 * @property {() => number} random
 * @property {(said: import('./marks.js').Said) => void} mark
 * @property {() => number | null} next the next task's number; null when the round has its tasks
 * @property {(ms: number) => Promise<void>} pause
 * @property {number} part the number of this process, from 0
 * @property {number[]} ids of tasks that were accepted, for the operator
 */

/** @type {{ folder: string, plan: Plan, part: number, seed: number, rounds: number, tasks: number }} */
const order = JSON.parse(process.argv[2] ?? '')
const { folder, plan, part } = order
const file = join(folder, 'work.db')

let aheadMs = 0
/** @type {import('../../dist/ground/clock.js').Clock} */
const clock = plan.jumps
  ? {
      ...systemClock,
      monotonicMs: () => systemClock.monotonicMs() + aheadMs,
      wallMs: () => systemClock.wallMs() + aheadMs,
      uptimeMs: () => systemClock.uptimeMs() + aheadMs,
    }
  : systemClock
const random = seededRandom(order.seed + part)
const mark = marker(folder, clock.wallMs)
/** @type {(ms: number) => Promise<void>} */
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
let made = 0

// The engine leaves SQLite's 1000 pages as they are; fewer make checkpoints come while everything else goes on.
const { pragma } = Database.prototype
Database.prototype.pragma = function (source, options) {
  const answer = pragma.call(this, source, options)
  if (/^journal_mode = wal$/.test(source)) pragma.call(this, `wal_autocheckpoint = ${plan.pages}`)
  return answer
}

for (let round = 1; round <= order.rounds; round++) await work(round * order.tasks, round === order.rounds)

/** Opens the store, works until `made` tasks were asked for, and closes it, or dies. */
async function work(/** @type {number} */ until, /** @type {boolean} */ last) {
  const syncer = plan.plant && planted[plan.plant](file, clock)
  const options = { clock, random, durability: plan.durability, ...(syncer && { syncer }) }
  const [engine, other] = [engineFor(`sqlite:${file}`, options), engineFor(`sqlite:${file}`, options)]
  await engine.open()
  // A second connection of this process, as two parts of one program have; with a planted fault all share one syncer.
  if (!plan.plant) await other.open()
  const heartbeat = plan.jumps || plan.plant ? 'loop' : 'auto'
  const pw = new Client(new Connection({ engine, clock, random, startWorker, heartbeat }))
  const next = () => (made < until ? part * 1_000_000 + ++made : null)
  const direct = plan.plant ? engine : other
  /** @type {Shop} */
  const shop = { pw, engine: direct, random, mark, next, pause, part, ids: [] }
  // A drain gives up when nothing moves for 30 s of the clock: leaps of minutes would end it.
  const kinds = [adder, adder, adder, bulkAdder, repeater, operator, ...(plan.jumps ? [] : [burster])]
  const callers = kinds.map((call) => call(shop))
  const over = new AbortController()
  const background = [handWorker(shop, over.signal, true), handWorker(shop, over.signal, false)]
  if (plan.jumps) background.push(jumper(shop, over.signal, (ms) => (aheadMs += ms)))
  startHandlers(shop)
  await Promise.all(callers)
  if (last) process.kill(process.pid, 'SIGKILL')
  over.abort()
  await Promise.all(background)
  await pw.close()
  await other.close()
}
