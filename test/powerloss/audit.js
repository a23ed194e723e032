// Compares what a store holds after a power cut with what it owes, row by row, and its figures with a full count.
import { payloadOf } from './marks.js'

/**
 * @typedef {import('better-sqlite3').Database} Database
 * @typedef {import('./reboot.js').Report} Report
 * @typedef {import('./ledger.js').Owed} Owed
 *
 * @typedef {object} Row
 * @property {number} id
 * @property {string} queue
 * @property {'scheduled' | 'waiting' | 'ready' | 'leased' | 'dead'} state
 * @property {number} number
 * @property {number} spent
 * @property {number} fence
 * @property {number} dueAt
 * @property {number} enqueuedAt
 * @property {string | null} dedupKey
 * @property {string} payload
 */

const states = /** @type {const} */ (['scheduled', 'waiting', 'ready', 'leased', 'dead'])

/** @returns {Row[]} */
export const rowsOf = (/** @type {Database} */ db) =>
  /** @type {any} */ (
    db
      .prepare(
        `select task.id, queue.name as queue, task.state, number, spent, fence, dueAt, enqueuedAt, dedupKey, payload
         from piecework_task task join piecework_queue queue on queue.id = task.queue`,
      )
      .all()
      .map((/** @type {any} */ row) => ({ ...row, state: states[row.state - 1] }))
  )

/**
 * Checks every row, and that none is missing.
 * @param {Database} db
 * @param {import('./ledger.js').Ledger} ledger
 * @param {Report} report
 */
export function audit(db, ledger, report) {
  /** @type {Map<number, Row>} */
  const byN = new Map()
  for (const row of rowsOf(db)) {
    const n = JSON.parse(row.payload).n
    const task = ledger.tasks.get(n)
    if (!task) report('broken', `task ${row.id} holds n ${n}, which nobody asked for`)
    else if (row.payload !== JSON.stringify(payloadOf(n))) report('broken', `the payload of n ${n} is not the same`)
    if (byN.has(n)) report('broken', `n ${n} is there twice: ${byN.get(n)?.id} and ${row.id}`)
    byN.set(n, row)
  }
  for (const [n, task] of ledger.tasks) {
    const wrong = disagreement(task, byN.get(n))
    if (wrong !== null) report('lost', `n ${n}, task ${task.id}: ${wrong}`)
  }
  auditSettings(db, ledger, report)
}

/**
 * What of one task is not as it was accepted; null when all is.
 * @param {Owed} task
 * @param {Row | undefined} row
 */
function disagreement(task, row) {
  const { accepted, duplicate, mayBeGone, gone, asked } = task
  if (duplicate) return row ? 'it is there, but was answered as a duplicate of another' : null
  if (gone) return row ? `it is ${row.state}, but its end was accepted` : null
  if (!row) return accepted && !mayBeGone ? 'its enqueue was accepted, and it is not there' : null
  if (task.id !== null && Number(task.id) !== row.id) return `it has the id ${row.id}`
  if (row.queue !== asked.queue) return `it is in the queue ${row.queue}`
  if (row.number < task.number) return `it knows ${row.number} deliveries; number ${task.number} was given out`
  if (row.number === task.settled && row.state === 'leased') return `delivery ${row.number} was settled, and holds it`
  if (task.dead && row.state !== 'dead') return `it is ${row.state}, but its burial was accepted`
  if (task.revived && row.state === 'dead') return 'it is dead, but its redrive was accepted'
  const delay = row.number === 0 ? asked.delayMs : undefined
  if (delay !== undefined && row.dueAt !== row.enqueuedAt + delay) return 'it is due at another instant'
  return null
}

/**
 * What operators set.
 * @param {Database} db
 * @param {import('./ledger.js').Ledger} ledger
 * @param {Report} report
 */
function auditSettings(db, ledger, report) {
  const operator = db.prepare('select operator from piecework_queue where name = ?').pluck()
  for (const [queue, allowed] of ledger.settings) {
    const found = JSON.parse(String(operator.get(queue) ?? 'null'))?.headStartMs
    if (!allowed.includes(found)) report('lost', `headStartMs of ${queue} is ${found}; set was ${allowed.join(' or ')}`)
  }
  const sealed = db.prepare('select sealedAt from piecework_batch where name = ?').pluck()
  for (const batch of ledger.sealed) {
    if (typeof sealed.get(batch) !== 'number') report('lost', `the seal of ${batch} was accepted, and is not there`)
  }
}

/**
 * P12: what is shown equals a full count.
 * @param {Database} db
 * @param {Report} report
 */
export function auditFigures(db, report) {
  const counted = new Map(
    db
      .prepare('select type, state, count(*) as n from piecework_task group by type, state')
      .all()
      .map((/** @type {any} */ row) => [`${row.type} ${states[row.state - 1]}`, row.n]),
  )
  for (const shown of /** @type {Record<string, any>[]} */ (db.prepare('select * from piecework_type').all())) {
    for (const state of states) {
      const n = counted.get(`${shown.id} ${state}`) ?? 0
      if (shown[state] !== n) report('broken', `${shown.name} shows ${shown[state]} ${state}, counted are ${n}`)
    }
  }
  const batches = db.prepare(
    `select name, total - done - dead - cancelled as open, dead,
       (select count(*) from piecework_task where batch = one.id and state < 5) as openCounted,
       (select count(*) from piecework_task where batch = one.id and state = 5) as deadCounted
     from piecework_batch one`,
  )
  for (const batch of /** @type {Record<string, any>[]} */ (batches.all())) {
    if (batch.open === batch.openCounted && batch.dead === batch.deadCounted) continue
    report('broken', `batch ${batch.name} shows ${JSON.stringify(batch)}`)
  }
  const strays = db.prepare(
    `select (select count(*) from piecework_dead where task not in (select id from piecework_task where state = 5))
       + (select count(*) from piecework_task where state = 5 and id not in (select task from piecework_dead))
       + (select count(*) from piecework_history where task not in (select id from piecework_task))
       + (select count(*) from piecework_dedup where endsAt is null and task not in (select id from piecework_task))`,
  )
  const stray = strays.pluck().get()
  if (stray !== 0) report('broken', `${stray} rows of dead letters, history or dedup keys without their task`)
}
