// Another program on the same database: takes the write lock, keeps it for a while, then commits or rolls back.
import Database from 'better-sqlite3'
import { notes, orders, wordFrom } from './notes.js'

const { file, rollback } = orders
const note = notes()
const db = new Database(file, { timeout: 10_000 })
db.exec('create table if not exists neighbours (n integer)')
note('ready')
await wordFrom('hold')
db.exec('begin immediate; insert into neighbours values (1)')
note('held')
await wordFrom('let go')
db.exec(rollback ? 'rollback' : 'commit')
note('released')
db.close()
process.exit(0)
