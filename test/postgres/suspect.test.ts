// A suspect goes out alone on PostgreSQL: also past the mark of a claim, and where others hold what is before it.
import { expect, it, onTestFinished } from 'vitest'
import type { Engine } from '../../dist/engine/contract.js'
import { engineFor } from '../../dist/engines/open.js'
import { client } from './client.js'
import { serverOfFile } from './server.js'

const server = serverOfFile()

/** A store with so many ready tasks, the ids of which are their places in line; those named have seen two deaths. */
async function withSuspects(tasks: number, suspects: readonly number[]): Promise<{ url: string; engine: Engine }> {
  const { database, sql } = await server()
  const url = await database()
  // Claims never look from the start on their own account: what they find there they must look for.
  const engine = engineFor(url, { rescanEveryMs: Number.POSITIVE_INFINITY })
  await engine.open()
  onTestFinished(() => engine.close())
  await engine.enqueue(
    null,
    Array.from({ length: tasks }, (_, n) => ({ queue: 'q', type: n % 2 ? 'odd' : 'even', payload: '1' })),
  )
  await sql(url, 'update piecework.task set deaths = 2 where id = any($1)', [suspects])
  return { url, engine }
}

const claimOf = async (engine: Engine, max: number, types: string[] | null = null): Promise<number[]> => {
  const { deliveries } = await engine.claim({ worker: 'w', requestId: null, wants: [{ queue: 'q', types, max }] })
  return deliveries.map(({ id }) => Number(id))
}

it.each([
  ['one type', ['even', 'odd']],
  ['several types', null],
])('alone in its claim, and with it in none: %s', async (_, types) => {
  const { engine } = await withSuspects(12, [5, 6, 9, 10])
  const claims: number[][] = []
  for (const type of types?.map((name) => [name]) ?? [null]) {
    for (let ids = [0]; ids.length > 0; claims.push(ids)) ids = await claimOf(engine, 3, type)
  }
  const given = claims.filter((ids) => ids.length > 0)
  expect(given.flat().sort((a, b) => a - b)).toEqual(Array.from({ length: 12 }, (_, n) => n + 1))
  for (const suspect of [5, 6, 9, 10]) expect(given).toContainEqual([suspect])
})

it.each([
  ['one type', ['even']],
  ['several types', null],
])('alone when another one has locked what is before it: %s', async (_, types) => {
  const { url, engine } = await withSuspects(20, [7])
  const other = await client(url)
  await other.query('begin; select from piecework.task where id < 7 for update')
  expect(await claimOf(engine, 10, types)).toEqual([7])
  await other.query('rollback')
})
