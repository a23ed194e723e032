// One variant of the store: its tables, its statements, and the three phases insert, claim and ack over them.
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { migrations } from '../../dist/engines/sqlite/schema.js'
import { headsSql, sql } from '../../dist/engines/sqlite/statements.js'

export const tables = migrations.map((step) => step.sql).join('\n')
/** Tasks of one slice of insert, claim and ack. */
export const sliceTasks = 1000

/** About 100 bytes of JSON. */
const payload = (/** @type {number} */ id) => `{"n":${id},"pad":"${'x'.repeat(72)}"}`

/**
 * @typedef {{ id: number, fence: number, nonce: number }} Held
 * @typedef {Record<string, any>} Prepared statements by name
 * @typedef {object} Ports what a variant works with
 * @property {Database.Database} db
 * @property {Prepared} q the variant's own statements
 * @property {number} now
 * @typedef {object} Shape how a variant differs from the engine; every field has the engine's way as its default
 * @property {string} [tables]
 * @property {string} [after] run once when the tables are there
 * @property {string[]} [pragmas]
 * @property {number} [perCommit] tasks in one transaction, 500
 * @property {number} [backlog] ready tasks that lie there all the time, 20000
 * @property {(id: number) => string} [payload]
 * @property {Record<string, string>} [statements] prepared for `insert`, `claim` and `ack`; raw rows
 * @property {(ports: Ports, from: number, payloads: string[]) => void} [insert]
 * @property {(ports: Ports, max: number) => Held[]} [claim]
 * @property {(ports: Ports, held: Held[]) => void} [ack]
 */

const own = { insert: sql.insert, heads: headsSql(1), lease: sql.lease, ack: sql.ackPlain }
const ids = 1_796_000_000_000_000

/** @param {Ports} ports @param {number} from @param {string[]} payloads */
function insertRows({ q, now }, from, payloads) {
  for (let i = 0; i < payloads.length; i++) {
    const text = payloads[i]
    q.insert.run(from + i, 1, 1, 3, now, now, null, null, null, null, 1, 0, null, null, 0, now, null, text)
  }
}

/** The engine's claim. @param {Ports} ports @param {number} max @returns {Held[]} */
function claimHeads({ q, now }, max) {
  const rows = /** @type {any[][]} */ (q.heads.all(1, max))
  const nonce = Math.floor(Math.random() * 2 ** 48)
  q.lease.run(now + 30_000, ids, nonce, 1, now, JSON.stringify(rows.map((row) => row[0])))
  return rows.map((row) => ({ id: row[0], fence: Math.max(row[4] + 1, ids), nonce }))
}

/** @param {Ports} ports @param {Held[]} held */
function ackPlain({ q }, held) {
  for (const { id, fence, nonce } of held) {
    if (q.ack.run(id, fence, nonce, 1).changes !== 1) throw new Error('an ack found nothing')
  }
}

let files = 0

/**
 * A store of this shape as a variant for `compare`; the log is put back between slices, so that no slice pays for
 * another's checkpoint.
 * @param {string} folder
 * @param {string} name
 * @param {Shape} shape
 * @returns {import('./compare.js').Variant}
 */
export function variant(folder, name, shape = {}) {
  const { perCommit = 500, insert = insertRows, claim = claimHeads, ack = ackPlain } = shape
  const db = open(folder, shape)
  const texts = { ...own, ...shape.statements }
  const q = Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, prepared(db, text)]))
  const begin = db.prepare(sql.begin)
  const commit = db.prepare(sql.commit)
  const ports = { db, q, now: 1_796_000_000_000 }
  let next = ids
  /** @param {number} tasks @param {(part: number, from: number) => void} work */
  const commits = (tasks, work) => {
    for (let from = 0; from < tasks; from += perCommit) {
      ports.now++
      begin.run()
      work(Math.min(perCommit, tasks - from), from)
      commit.run()
    }
  }
  const fill = (/** @type {number} */ tasks) =>
    commits(tasks, (part) => {
      insert(
        ports,
        next,
        Array.from({ length: part }, (_, i) => (shape.payload ?? payload)(next + i)),
      )
      next += part
    })
  fill(shape.backlog ?? 20_000)
  const restart = () => void db.pragma('wal_checkpoint(truncate)')
  restart()
  /** @type {Held[]} */
  let held = []
  return {
    name,
    phases: {
      insert: () => fill(sliceTasks),
      claim() {
        held = []
        commits(sliceTasks, (part) => held.push(...claim(ports, part)))
        if (held.length !== sliceTasks) throw new Error(`${name} claimed ${held.length}`)
      },
      ack: () => commits(sliceTasks, (part, from) => ack(ports, held.slice(from, from + part))),
    },
    between: restart,
    close: () => db.close(),
  }
}

/** @param {string} folder @param {Shape} shape */
function open(folder, shape) {
  const db = new Database(join(folder, `${files++}.db`))
  const pragmas = shape.pragmas ?? []
  // The size of pages must be known before the file is made.
  for (const pragma of pragmas) db.pragma(pragma)
  for (const pragma of ['journal_mode = wal', 'synchronous = normal', 'wal_autocheckpoint = 0']) db.pragma(pragma)
  db.exec(shape.tables ?? tables)
  if (shape.after) db.exec(shape.after)
  return db
}

/** @param {Database.Database} db @param {string} text */
function prepared(db, text) {
  const statement = db.prepare(text)
  return statement.reader ? statement.raw(true) : statement
}
