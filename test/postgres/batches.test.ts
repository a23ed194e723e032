// The end of batches on PostgreSQL where several processes meet: no enqueue slips past a seal, nothing follows twice.

import pg from 'pg'
import { beforeAll, expect, it, onTestFinished } from 'vitest'
import type { Engine } from '../../dist/engine/contract.js'
import { engineFor } from '../../dist/engines/open.js'
import type { BatchRecord } from '../../dist/task/records.js'
import { type Server, serverOfFile } from './server.js'

const starting = serverOfFile()
let server: Server
let url: string

beforeAll(async () => {
  server = await starting()
  url = await server.database()
}, 60_000)

async function opened(): Promise<Engine> {
  const engine = engineFor(url)
  await engine.open()
  onTestFinished(() => engine.close())
  return engine
}

const batchOf = async (engine: Engine, name: string) =>
  (await engine.select('batch', { name }, null)).items[0] as unknown as BatchRecord
const followUp = { queue: 'after', payload: '"end"' }
const seal = (engine: Engine, name: string) => engine.configure('batch', name, { sealed: true }, 'test')

it('a seal waits for the transaction that is enqueueing, and counts what that commits', async () => {
  const engine = await opened()
  await engine.configure('batch', 'open', { followUp }, 'test')
  const tx = new pg.Client({ connectionString: url })
  await tx.connect()
  onTestFinished(() => tx.end())
  await tx.query('begin')
  await engine.enqueue(null, [{ queue: 'q', payload: '1', batch: 'open' }], tx)
  let sealed = false
  const sealing = seal(engine, 'open').then((answer) => {
    sealed = true
    return answer as unknown as BatchRecord
  })
  const other = await opened()
  await other.sweep(1000)
  expect(sealed).toBe(false)
  expect((await other.select('task', { queue: 'after' }, null)).items).toEqual([])
  await tx.query('commit')
  expect(await sealing).toMatchObject({ total: 1, sealed: true, finishedAt: null })
  await expect(engine.enqueue(null, [{ queue: 'q', payload: '1', batch: 'open' }])).rejects.toThrow(/sealed/)
}, 60_000)

it('many batches that end in several processes at once are each followed once', async () => {
  const engines = await Promise.all(Array.from({ length: 3 }, opened))
  const [first] = engines as [Engine]
  const names = Array.from({ length: 20 }, (_, n) => `b${n}`)
  for (const name of names) {
    await first.configure('batch', name, { followUp: { ...followUp, queue: 'follows', payload: `"${name}"` } }, 'test')
    await first.enqueue(
      null,
      engines.map(() => ({ queue: 'many', payload: '1', batch: name })),
    )
    await seal(first, name)
  }
  await Promise.all(
    engines.map(async (engine, n) => {
      for (let taken = 1; taken > 0; ) {
        const ask = { worker: `w${n}`, requestId: null, wants: [{ queue: 'many', types: null, max: 2 }] }
        const { deliveries } = await engine.claim(ask)
        taken = deliveries.length
        const acks = deliveries.map(({ receipt }) => ({ receipt, do: 'ack' as const }))
        await engine.settle({ worker: `w${n}`, flush: null }, acks)
        await engine.sweep(1000)
      }
    }),
  )
  await Promise.all(engines.map((engine) => engine.sweep(1000)))
  const { items } = await first.select('task', { queue: 'follows', limit: 1000 }, null)
  expect(items.map(({ payload }) => payload).sort()).toEqual(names.map((name) => `"${name}"`).sort())
  for (const name of names) expect(await batchOf(first, name)).toMatchObject({ total: 3, done: 3 })
}, 120_000)
