// A log that cannot start over is noticed, with the process that keeps it from doing so.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterEach, expect, it } from 'vitest'
import { growthWatch } from '../../dist/engines/sqlite/growth.js'
import { manualClock } from '../../dist/testing/manual-clock.js'

const folder = mkdtempSync(join(tmpdir(), 'piecework-growth-'))
const ends: (() => void)[] = []
afterEach(() => {
  for (const end of ends.splice(0)) end()
  rmSync(folder, { recursive: true, force: true })
})

it('names the process whose open read blocks the checkpoint, once, and stays silent without one', async () => {
  const file = join(folder, 'work.db')
  const db = new Database(file)
  ends.push(() => db.close())
  db.pragma('journal_mode = wal')
  db.exec('create table filler (bytes); insert into filler values (1)')
  const clock = manualClock()
  const watch = growthWatch(file, clock)
  const look = async () => {
    await clock.advance(5001)
    return watch()
  }
  expect(await look()).toBeNull()

  const driver = JSON.stringify(createRequire(import.meta.url).resolve('better-sqlite3'))
  const program = `const db = new (require(${driver}))(${JSON.stringify(file)})
    db.exec('begin'); db.prepare('select * from filler').get(); console.log('reading'); setInterval(() => {}, 1e6)`
  const reader = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] })
  ends.push(() => reader.kill('SIGKILL'))
  await once(reader.stdout, 'data')
  const insert = db.prepare('insert into filler values (randomblob(1000000))')
  db.transaction(() => {
    for (let i = 0; i < 70; i++) insert.run()
  })()

  expect(await look(), 'a reader seen once may be one of many').toBeNull()
  expect(await look()).toMatchObject({ code: 'PW_LOG_GROWTH', details: { pids: [reader.pid] } })
  expect(await look(), 'said once').toBeNull()
})
