// One worker with six effects elsewhere: it dies by SIGKILL between the first of each and its ack; each stands once.
import { readdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { connect } from 'piecework'

const [url = '', folder = ''] = process.argv.slice(2)
// Another database than the store's: no transaction covers both.
const elsewhere = new Database(join(folder, 'elsewhere.db'))
const run = (sql, ...values) => elsewhere.prepare(sql).run(...values).changes

const recipes = {
  /** Deterministic path: a repeated delivery puts the same file into the same place, whole. */
  path: (_, { id, number }) => {
    writeFileSync(join(folder, `${id}.${number}.part`), 'a thumbnail')
    renameSync(join(folder, `${id}.${number}.part`), join(folder, `${id}.done`))
  },
  /** Conditional write: only from the state that the task was made for. */
  condition: ({ from }) => run('update account set version = version + 1 where version = ?', from),
  /** Upsert: the key is the thing, not the delivery. */
  upsert: ({ day, total }) =>
    run('insert into report values (?, ?) on conflict (day) do update set total = excluded.total', day, total),
  /** Commutative update: the greatest of all is the same in any order, and however often it is said. */
  greatest: ({ seen }) => run('update sensor set greatest = max(greatest, ?)', seen),
  /** Idempotency key: the provider knows the task by its id and charges once. */
  charge: ({ cents }, { id }) => run('insert or ignore into charge values (?, ?)', id, cents),
  /** Fence: the receiver refuses whoever is older than the newest it has heard of. */
  fence: ({ value }, { fence, number }) => {
    const write = (by, what) => run('update leader set value = ?, fence = ? where fence <= ?', what, by, by)
    write(fence, value)
    // What the delivery before it, slow but not dead, would write now.
    if (number > 1) write(fence - 1, 'late')
  },
}

const pw = await connect(url)
const effects = pw.queue('effects')
const handlers = Object.entries(recipes).map(([type, recipe]) => [
  type,
  (/** @type {never} */ payload, /** @type {any} */ delivery) => {
    recipe(payload, delivery)
    if (delivery.number === 1) process.kill(process.pid, 'SIGKILL')
  },
])
const worker = effects.work(Object.fromEntries(handlers), { concurrency: 1, prefetch: 0 })
await effects.drained()
await worker.stop()
const files = readdirSync(folder).filter((name) => name.endsWith('.done') || name.endsWith('.part'))
const one = (sql) => Object.values(/** @type {object} */ (elsewhere.prepare(sql).get())).join(' ')
console.log(`path: ${files.filter((name) => name.endsWith('.done')).length} file`)
console.log(`condition: version ${one('select version from account')}`)
console.log(`upsert: ${one('select count(*), sum(total) from report')}`)
console.log(`greatest: ${one('select greatest from sensor')}`)
console.log(`charge: ${one('select count(*), sum(cents) from charge')}`)
console.log(`fence: ${one('select value from leader')}`)
await pw.close()
