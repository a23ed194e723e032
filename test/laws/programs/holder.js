// Another program on the same database: keeps everybody from writing tasks for a while, then commits or rolls back.
import Database from 'better-sqlite3'
import pg from 'pg'
import { notes, orders, wordFrom } from './notes.js'

const { file, url = '', rollback } = orders
const note = notes()

function onSqlite() {
  const db = new Database(file, { timeout: 10_000 })
  db.exec('create table if not exists neighbours (n integer)')
  return { say: async (text) => db.exec(text), begin: 'begin immediate', end: async () => db.close() }
}

async function onPostgres() {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('create table if not exists neighbours (n integer)')
  const begin = 'begin; lock table piecework.task in share row exclusive mode'
  return { say: (text) => client.query(text), begin, end: () => client.end() }
}

const db = url.startsWith('postgres') ? await onPostgres() : onSqlite()
note('ready')
await wordFrom('hold')
await db.say(`${db.begin}; insert into neighbours values (1)`)
note('held')
await wordFrom('let go')
await db.say(rollback ? 'rollback' : 'commit')
note('released')
await db.end()
process.exit(0)
