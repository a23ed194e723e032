// Effect keys are kept for effectKeepMs and as long as their task, wherever that goes; then the sweep removes them.
import Database from 'better-sqlite3'
import { expect, it, onTestFinished } from 'vitest'
import type { Engine } from '../../dist/engine/contract.js'
import type { AsyncEngine, SyncEngine } from '../../dist/engine/transactions.js'
import { engineFor } from '../../dist/engines/open.js'
import { type AheadClock, newUrl, openStore } from '../client/store.js'
import { serverOfFile } from '../postgres/server.js'

const starting = serverOfFile()

interface Subject {
  engine: Engine
  once(queue: string, effectKey: string, task: string | null): Promise<boolean>
  marks(): Promise<number>
  advance(ms: number): Promise<void>
}

async function sqlite(): Promise<Subject> {
  const url = newUrl()
  const { connection, clock } = await openStore({ url })
  const engine = connection.engine() as SyncEngine
  const db = new Database(url.slice('sqlite:'.length), { readonly: true })
  onTestFinished(() => void db.close())
  return {
    engine,
    once: (queue, effectKey, task) => engine.transactSync((tx) => engine.onceSync({ queue, effectKey, task }, tx)),
    marks: async () => db.prepare('select count(*) from piecework_effect').pluck().get() as number,
    advance: async (ms) => (clock as AheadClock).advance(ms),
  }
}

async function postgres(): Promise<Subject> {
  const server = await starting()
  const url = await server.database()
  const engine = engineFor(url) as AsyncEngine
  await engine.open()
  onTestFinished(() => engine.close())
  let aheadMs = 0
  return {
    engine,
    once: (queue, effectKey, task) => engine.transact((tx) => engine.once({ queue, effectKey, task }, tx)),
    marks: async () =>
      Number((await server.sql<{ n: string }>(url, 'select count(*) as n from piecework.effect'))[0]?.n),
    async advance(ms) {
      aheadMs += ms
      await server.sql(
        url,
        `create or replace function piecework.now_us() returns bigint language sql volatile parallel safe as
          'select (extract(epoch from clock_timestamp()) * 1000000)::bigint + ${aheadMs}000'`,
      )
    },
  }
}

it.each([
  ['SQLite', sqlite],
  ['PostgreSQL', postgres],
])('on %s', async (_, open) => {
  const { engine, once, marks, advance } = await open()
  await engine.configure('queue', 'q', { operator: { effectKeepMs: 60_000 } }, 'test')
  const [gone, stays] = await engine.enqueue(null, [
    { queue: 'q', payload: '1' },
    { queue: 'q', payload: '2', delayMs: 86_400_000 },
  ])
  const [first, second] = [gone?.id as string, stays?.id as string]
  expect([await once('q', 'a', first), await once('q', 'b', second), await once('q', 'c', null)]).toEqual([
    true,
    true,
    true,
  ])
  expect([await once('q', 'a', second), await once('other', 'a', second)]).toEqual([false, true])
  // A task takes its marks along.
  await engine.amend({ ids: [second] }, { do: 'move', to: 'r' }, 'test', { max: 1, dryRun: false })
  expect(await once('r', 'b', second)).toBe(false)
  await engine.amend({ ids: [first] }, { do: 'cancel' }, 'test', { max: 1, dryRun: false })
  await advance(59_000)
  await engine.sweep(100)
  expect(await marks()).toBe(4)
  await advance(1000)
  await engine.sweep(100)
  // Left: that of the task that is still there, and that of the other queue, whose time is the default.
  expect(await marks()).toBe(2)
  expect([await once('q', 'a', null), await once('r', 'b', second)]).toEqual([true, false])
  // Not looked at by every sweep: the mark of a task that lives on is put off.
  const { nextMs } = await engine.sweep(100)
  expect(nextMs).toBeGreaterThan(0)
  await engine.amend({ ids: [second] }, { do: 'cancel' }, 'test', { max: 1, dryRun: false })
  await advance(3_600_000)
  await engine.sweep(100)
  expect(await marks()).toBe(1)
})
