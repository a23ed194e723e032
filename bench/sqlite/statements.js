// Other ways to write, claim and ack a task, each beside the engine's own.
import { compare } from './compare.js'
import { sliceTasks, variant } from './store.js'

const walk = `from piecework_task indexed by piecework_task_ready
  where type = 1 and state = 3 order by place, id limit ?`
const lease = `update piecework_task set state = 4, wakeAt = ?, number = number + 1, spent = spent + 1,
  fence = max(fence + 1, ?), nonce = random() & 281474976710655, worker = 1, claimedAt = ?`
const read = 'type, number, spent, key, batch, deaths, enqueuedAt, dueAt, headers, payload'
const fence = 1_796_000_000_000_000

/** @typedef {import('./store.js').Held} Held @typedef {import('./store.js').Shape} Shape */

/** A claim in one statement that answers what it changed. @returns {Shape} */
const returning = (/** @type {string} */ where, /** @type {string} */ columns = read) => ({
  statements: { one: `${lease} ${where} returning id, fence, nonce, ${columns}` },
  claim: ({ q, now }, max) => /** @type {number[][]} */ (q.one.all(now + 30_000, fence, now, max)).map(held),
})

const held = (/** @type {any[]} */ row) => ({ id: row[0], fence: row[1], nonce: row[2] })

/** @type {Record<string, Shape>} */
const claims = {
  'heads, then lease by json list (engine)': {},
  'update … where id in (heads) returning': returning(`where id in (select id ${walk})`),
  'update … from (heads) returning': returning(`from (select id as head ${walk}) where piecework_task.id = head`),
  'the same, returning three columns': returning(`where id in (select id ${walk})`, '1'),
  'heads, then lease by the same walk': {
    statements: {
      lease: `update piecework_task set state = 4, wakeAt = ?, number = number + 1, spent = spent + 1,
        fence = max(fence + 1, ?), nonce = ?, worker = ?, claimedAt = ? where id in (select id ${walk})`,
    },
    claim({ q, now }, max) {
      const rows = /** @type {any[][]} */ (q.heads.all(1, max))
      q.lease.run(now + 30_000, fence, 7, 1, now, max)
      return rows.map((row) => ({ id: row[0], fence: Math.max(row[4] + 1, fence), nonce: 7 }))
    },
  },
  'heads, then lease one by one': {
    statements: {
      lease: `update piecework_task set state = 4, wakeAt = ?, number = number + 1, spent = spent + 1,
        fence = max(fence + 1, ?), nonce = ?, worker = ?, claimedAt = ? where id = ?`,
    },
    claim({ q, now }, max) {
      const rows = /** @type {any[][]} */ (q.heads.all(1, max))
      for (const row of rows) q.lease.run(now + 30_000, fence, 7, 1, now, row[0])
      return rows.map((row) => ({ id: row[0], fence: Math.max(row[4] + 1, fence), nonce: 7 }))
    },
  },
}

/** Acks in one statement over a json list of receipts. @returns {Shape} */
const listed = (/** @type {string} */ text) => ({
  statements: { all: text },
  ack({ q }, held) {
    const receipts = JSON.stringify(held.map(({ id, fence, nonce }) => [id, fence, nonce]))
    if (q.all.all(receipts).length !== held.length) throw new Error('an ack found nothing')
  },
})

const acked = 'type, state, number, key, batch, dedupKey'

/** @type {Record<string, Shape>} */
const acks = {
  'plain delete, one by one (engine)': {},
  'delete … returning six columns': {
    statements: { ack: `delete from piecework_task where id = ? and fence = ? and nonce = ? returning ${acked}` },
    ack({ q }, held) {
      for (const { id, fence, nonce } of held) if (!q.ack.get(id, fence, nonce)) throw new Error('nothing')
    },
  },
  'select, then delete (engine, second way)': {
    statements: {
      read: `select ${acked} from piecework_task where id = ? and fence = ? and nonce = ?`,
      ack: 'delete from piecework_task where id = ?',
    },
    ack({ q }, held) {
      for (const { id, fence, nonce } of held) {
        if (!q.read.get(id, fence, nonce)) throw new Error('nothing')
        q.ack.run(id)
      }
    },
  },
  'delete by json list returning id': listed(
    'delete from piecework_task where id in (select value->>0 from json_each(?)) returning id',
  ),
  'delete by json list of whole receipts': listed(
    `delete from piecework_task where (id, fence, nonce) in
     (select value->>0, value->>1, value->>2 from json_each(?)) returning ${acked}`,
  ),
}

const columns = '(id, queue, type, state, place, dueAt, enqueuedAt, payload)'

/** Several rows in one statement. @returns {Shape} */
const rowsAtOnce = (/** @type {number} */ rows) => ({
  statements: {
    insert: `insert into piecework_task ${columns} values ${Array(rows).fill('(?,1,1,3,?,?,?,?)').join(',')}`,
  },
  insert({ q, now }, from, payloads) {
    for (let i = 0; i < payloads.length; i += rows) {
      q.insert.run(payloads.slice(i, i + rows).flatMap((text, j) => [from + i + j, now, now, now, text]))
    }
  },
})

/** @type {Record<string, Shape>} */
const inserts = {
  '18 columns, row by row (engine)': {},
  '8 columns, row by row': rowsAtOnce(1),
  '8 columns, 20 rows a statement': rowsAtOnce(20),
  'one statement over a json list': {
    statements: {
      insert: `insert into piecework_task ${columns}
        select ? + key, 1, 1, 3, ?, ?, ?, value from json_each(?)`,
    },
    insert: ({ q, now }, from, payloads) => void q.insert.run(from, now, now, now, JSON.stringify(payloads)),
  },
}

const all = (
  /** @type {string} */ folder,
  /** @type {Record<string, Shape>} */ shapes,
  /** @type {Shape} */ more = {},
) => Object.entries(shapes).map(([name, shape]) => variant(folder, name, { ...shape, ...more }))

export const insert = (/** @type {string} */ folder) =>
  compare('Insert, 500 a commit', all(folder, inserts), { items: sliceTasks })

export function claim(/** @type {string} */ folder) {
  compare('Claim of 500', all(folder, claims), { items: sliceTasks })
  compare('Claim of 10', all(folder, claims, { perCommit: 10 }), { items: sliceTasks, slices: 16 })
}

export const ack = (/** @type {string} */ folder) =>
  compare('Ack, 500 a commit', all(folder, acks), { items: sliceTasks })
