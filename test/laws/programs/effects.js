// A process of the laws of transactions: adds tasks or works them off in transactions, and dies at a boundary of one.
import Database from 'better-sqlite3'
import pg from 'pg'
import { notes, orders } from './notes.js'

const { url, act, lib = 'piecework', fall = null, provider, queue = 'effects' } = orders
const { connect } = await import(lib)
const note = notes()
const sqlite = url.startsWith('sqlite:')
/** Statements of transactions so far; only what runs while one is under way is counted. */
let count = 0
let armed = false

const die = () => process.kill(process.pid, 'SIGKILL')
/** The boundary before a statement, or before what follows the last one. */
function boundary() {
  if (!armed) return
  count++
  if (fall?.how === 'before' && fall.at === count) die()
}

if (sqlite) {
  const probe = new Database(':memory:')
  const statement = Object.getPrototypeOf(probe.prepare('select 1'))
  const { run } = statement
  statement.run = function (...values) {
    boundary()
    return run.apply(this, values)
  }
} else {
  /** @type {any} */
  const prototype = pg.Client.prototype
  const { query } = prototype
  prototype.query = function (...given) {
    // The engine's own connections send one after the other without waiting.
    if (this.pipeline) return query.apply(this, given)
    boundary()
    const answer = query.apply(this, given)
    // On its way to the server, which will do it or not; its answer is lost.
    if (armed && fall?.how === 'sent' && fall.at === count) setImmediate(die)
    return answer
  }
}

async function watched(work) {
  armed = orders.only !== 'end'
  try {
    return await work()
  } finally {
    armed = true
    boundary()
    // Statements of the engine's own come between at times, and change the number of this boundary.
    if (fall?.how === 'end') die()
    armed = false
  }
}

const pw = await connect(url)
const tasks = pw.queue(queue, { deliveriesMax: null, backoff: { baseMs: 1 } })
await pw.ready
/** @type {any} Of one engine or the other, as `sqlite` says. */
const db = sqlite ? new Database(url.slice('sqlite:'.length)) : new pg.Client({ connectionString: url })
if (!sqlite) await db.connect()
/** Runs statements one by one in a transaction of this program's own. */
async function transaction(work) {
  if (sqlite) {
    // As prepared statements, so that each has its boundary.
    db.prepare('begin immediate').run()
    work()
    db.prepare('commit').run()
    return
  }
  await db.query('begin')
  await work()
  await db.query('commit')
}
const insert = (tx, table, id) =>
  sqlite ? tx.prepare(`insert into ${table} values (?)`).run(id) : tx.query(`insert into ${table} values ($1)`, [id])
const increment = (tx) => {
  const text = 'update counter set n = n + 1'
  return sqlite ? tx.prepare(text).run() : tx.query(text)
}

/** What a handler does with one delivery. */
const handlers = {
  transaction: (delivery) =>
    watched(() =>
      delivery.transaction((tx) => {
        const done = insert(tx, 'effect', delivery.id)
        return sqlite ? increment(tx) : done.then(() => increment(tx))
      }),
    ),
  ack: (delivery) =>
    watched(() =>
      transaction(() => {
        if (sqlite) {
          insert(db, 'effect', delivery.id)
          delivery.ackSync({ tx: db })
          return undefined
        }
        return insert(db, 'effect', delivery.id).then(() => delivery.ack({ tx: db }))
      }),
    ),
  once: (delivery) =>
    watched(() =>
      transaction(() => {
        if (sqlite) {
          if (delivery.onceSync(delivery.id, { tx: db })) insert(db, 'effect', delivery.id)
          return undefined
        }
        return delivery.once(delivery.id, { tx: db }).then((first) => first && insert(db, 'effect', delivery.id))
      }),
    ),
  // The effect is elsewhere: a provider that knows a key it has seen, or is not told of any.
  charge: ({ id }) => watched(() => charge({ 'idempotency-key': id }, id)),
  'charge blindly': ({ id }) => watched(() => charge({}, id)),
}
async function charge(headers, id) {
  const answer = await fetch(provider, { method: 'POST', headers, body: id })
  await answer.text()
}

if (act === 'produce') {
  for (let n = 0; n < orders.rounds; n++) {
    await watched(() =>
      transaction(() => {
        const id = `${process.pid} ${n}`
        if (sqlite) {
          insert(db, 'effect', id)
          tasks.enqueueSync(id, { tx: db })
          return undefined
        }
        return insert(db, 'effect', id).then(() => tasks.enqueue(id, { tx: db }))
      }),
    )
  }
} else {
  const worker = tasks.work((_, delivery) => handlers[act](delivery), { concurrency: 1 })
  worker.on('error', (error) => note('error', { code: error.code, text: error.message }))
  await tasks.drained()
}
await pw.close()
if (sqlite) db.close()
else await db.end()
note('over', { more: count })
process.exit(0)
