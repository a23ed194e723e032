// Effects elsewhere that stand once although their worker is killed between effect and ack; see worker.js for each.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'
import { connect } from 'piecework'

const folder = mkdtempSync(join(tmpdir(), 'piecework-effects-'))
const elsewhere = new Database(join(folder, 'elsewhere.db'))
elsewhere.exec(`create table account (version integer); insert into account values (1);
  create table report (day text primary key, total integer);
  create table sensor (greatest integer); insert into sensor values (0);
  create table charge (id text primary key, cents integer);
  create table leader (value text, fence integer); insert into leader values ('nobody', 0)`)
elsewhere.close()

const url = `sqlite:${join(folder, 'work.db')}`
const pw = await connect(url)
const effects = pw.queue('effects')
await effects.enqueue({}, { type: 'path' })
await effects.enqueue({ from: 1 }, { type: 'condition' })
await effects.enqueue({ day: 'monday', total: 7 }, { type: 'upsert' })
await effects.enqueue({ seen: 40 }, { type: 'greatest' })
await effects.enqueue({ cents: 100 }, { type: 'charge' })
await effects.enqueue({ value: 'ada' }, { type: 'fence' })

let killed = 0
for (;;) {
  const worker = fileURLToPath(new URL('./worker.js', import.meta.url))
  const child = spawn(process.execPath, [worker, url, folder], { stdio: ['ignore', 'inherit', 'inherit'] })
  const [, signal] = await once(child, 'exit')
  if (signal !== 'SIGKILL') break
  killed++
}
console.log(`killed ${killed} times between effect and ack`)
await pw.close()
rmSync(folder, { recursive: true })
