// What could stand beside the row of a task: its payload in another table, its counters as a log of deltas.
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { sql } from '../../dist/engines/sqlite/statements.js'
import { compare } from './compare.js'
import { sliceTasks, tables, variant } from './store.js'

/** @typedef {import('./store.js').Shape} Shape */

/** The row of a task keeps everything but the payload. @type {Shape} */
const apart = {
  after: 'create table payload (task integer primary key, text text not null) strict',
  statements: {
    addPayload: 'insert into payload (task, text) values (?, ?)',
    payloads: 'select task, text from payload where task in (select value from json_each(?))',
    dropPayload: 'delete from payload where task = ?',
  },
  insert({ q, now }, from, payloads) {
    for (let i = 0; i < payloads.length; i++) {
      q.insert.run(from + i, 1, 1, 3, now, now, null, null, null, null, 1, 0, null, null, 0, now, null, '')
      q.addPayload.run(from + i, payloads[i])
    }
  },
  claim({ q, now }, max) {
    const rows = /** @type {any[][]} */ (q.heads.all(1, max))
    const ids = JSON.stringify(rows.map((row) => row[0]))
    q.lease.run(now + 30_000, now * 1000, 7, 1, now, ids)
    if (q.payloads.all(ids).length !== rows.length) throw new Error('a payload is missing')
    return rows.map((row) => ({ id: row[0], fence: Math.max(row[4] + 1, now * 1000), nonce: 7 }))
  },
  ack({ q }, held) {
    for (const { id, fence, nonce } of held) {
      if (q.ack.run(id, fence, nonce, 1).changes !== 1) throw new Error('an ack found nothing')
      q.dropPayload.run(id)
    }
  },
}

export function payload(/** @type {string} */ folder) {
  for (const bytes of [100, 1000, 10_000]) {
    const text = JSON.stringify('x'.repeat(bytes))
    const size = { payload: () => text, backlog: 5000 }
    compare(
      `Payloads of ${bytes} bytes, 500 a commit`,
      [
        variant(folder, 'in the row of the task (engine)', size),
        variant(folder, 'in a table of its own', { ...apart, ...size }),
      ],
      { items: sliceTasks, slices: bytes > 5000 ? 10 : 30 },
    )
  }
}

const commits = 200
const deltas = 17

/** @param {string} folder @param {string} name @param {(db: Database.Database) => () => void} make */
function counting(folder, name, make) {
  const db = new Database(join(folder, `count-${name.replace(/\W/g, '')}.db`))
  for (const pragma of ['journal_mode = wal', 'synchronous = normal', 'wal_autocheckpoint = 0']) db.pragma(pragma)
  db.exec(tables)
  db.exec("insert into piecework_type (id, queue, name) values (1, 1, 'q')")
  const begin = db.prepare(sql.begin)
  const commit = db.prepare(sql.commit)
  const insert = db.prepare(sql.insert)
  const count = make(db)
  let id = 1_796_000_000_000_000
  const task = () => insert.run(id++, 1, 1, 3, 1, 1, null, null, null, null, 1, 0, null, null, 0, 1, null, '{}')
  return {
    name,
    phases: {
      commits() {
        for (let i = 0; i < commits; i++) {
          begin.run()
          task()
          count()
          commit.run()
        }
      },
    },
    between: () => void db.pragma('wal_checkpoint(truncate)'),
    close: () => db.close(),
  }
}

/** @param {Database.Database} db */
function inPlace(db) {
  const update = db.prepare(sql.count)
  const params = Array(deltas).fill(1)
  return () => void update.run(...params, 1)
}

/** One row a commit, folded by every hundredth. @param {Database.Database} db */
function appended(db) {
  const names = Array.from({ length: deltas }, (_, i) => `d${i}`)
  db.exec(`create table delta (id integer primary key, type integer not null, ${names.join(' integer, ')} integer)`)
  const add = db.prepare(`insert into delta (type, ${names.join(', ')}) values (1, ${names.map(() => '?').join(', ')})`)
  const sums = db
    .prepare(`select ${names.map((name) => `sum(${name})`).join(', ')} from delta where type = 1`)
    .raw(true)
  const drop = db.prepare('delete from delta')
  const update = db.prepare(sql.count)
  const params = Array(deltas).fill(1)
  let rows = 0
  return () => {
    add.run(...params)
    if (++rows % 100 > 0) return
    update.run(.../** @type {number[]} */ (sums.get()), 1)
    drop.run()
  }
}

export function counters(/** @type {string} */ folder) {
  const variants = [
    counting(folder, 'updated in place (engine)', inPlace),
    counting(folder, 'a delta each commit, folded by every 100th', appended),
    counting(folder, 'no counters', () => () => {}),
  ]
  compare('A commit of one insert with its counters', variants, { items: commits, slices: 30 })
}
