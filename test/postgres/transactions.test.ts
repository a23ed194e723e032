// Callers' transactions, locked rows and calls that meet on PostgreSQL: what commits is there, no two wait in a ring.

import pg from 'pg'
import { connect } from 'piecework'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { ClaimedTask, Engine, NewTask } from '../../dist/engine/contract.js'
import { engineFor } from '../../dist/engines/open.js'
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

async function client(): Promise<pg.Client> {
  const made = new pg.Client({ connectionString: url })
  await made.connect()
  onTestFinished(() => made.end())
  return made
}

const task = (queue: string, more: Partial<NewTask> = {}): NewTask => ({ queue, payload: '1', ...more })
const claim = async (engine: Engine, queue: string, max = 10): Promise<ClaimedTask[]> =>
  (await engine.claim({ worker: 'w', requestId: null, wants: [{ queue, types: null, max }] })).deliveries
const by = { worker: 'w', flush: null }
const ack = ({ receipt }: { receipt: string }) => ({ receipt, do: 'ack' as const })

describe('enqueue in a transaction of the caller', () => {
  it('is seen if and only if the transaction commits (P2)', async () => {
    const engine = await opened()
    const tx = await client()
    for (const [end, seen] of [
      ['rollback', 0],
      ['commit', 2],
    ] as const) {
      await tx.query('begin')
      const answers = await engine.enqueue(null, [task('tx', { dedupKey: end }), task('tx', { batch: 'b' })], tx)
      expect(answers.map(({ state, duplicate }) => [state, duplicate])).toEqual([
        ['ready', false],
        ['ready', false],
      ])
      expect(await claim(engine, 'tx')).toEqual([])
      await tx.query(end)
      expect(await claim(engine, 'tx')).toHaveLength(seen)
    }
    const { items } = await engine.select('batch', { name: 'b' }, null)
    expect(items).toMatchObject([{ total: 1 }])
  })

  it('holds no key of others, and is promoted once it has committed', async () => {
    const engine = await opened()
    const tx = await client()
    await tx.query('begin')
    const [first] = await engine.enqueue(null, [task('keyed', { key: 'k' })], tx)
    expect(first?.state).toBe('waiting')
    const [second] = await engine.enqueue(null, [task('keyed', { key: 'k' })])
    expect(second?.state).toBe('ready')
    await tx.query('commit')
    const [held] = await claim(engine, 'keyed')
    expect(held?.id).toBe(second?.id)
    await engine.settle(by, [ack(held as ClaimedTask)])
    await engine.sweep(100)
    expect((await claim(engine, 'keyed')).map(({ id }) => id)).toEqual([first?.id])
  })
})

describe('settle in a transaction of the caller', () => {
  it('acks with the effects or not at all (P11)', async () => {
    const engine = await opened()
    const tx = await client()
    await tx.query('create table effect (id text)')
    await engine.enqueue(null, [task('effects')])
    const [held] = (await claim(engine, 'effects')) as [ClaimedTask]
    await tx.query('begin')
    await tx.query('insert into effect values ($1)', [held.id])
    expect(await engine.settle(by, [ack(held)], tx)).toEqual(['done'])
    await tx.query('rollback')
    expect((await engine.select('task', { ids: [held.id] }, null)).items).toMatchObject([{ state: 'leased' }])
    await tx.query('begin')
    await tx.query('insert into effect values ($1)', [held.id])
    await engine.settle(by, [ack(held)], tx)
    await tx.query('commit')
    expect((await tx.query('select id from effect')).rows).toEqual([{ id: held.id }])
    await tx.query('begin')
    await expect(engine.settle(by, [ack(held)], tx)).rejects.toMatchObject({ code: 'PW_LEASE_LOST' })
    await tx.query('rollback')
  })

  it('neither loses its lease nor holds up the leases of others while it is open', async () => {
    const engine = await opened()
    const tx = await client()
    await engine.enqueue(null, [task('open'), task('open')])
    const [mine, other] = (await claim(engine, 'open')) as [ClaimedTask, ClaimedTask]
    await tx.query('begin')
    await engine.settle(by, [ack(mine)], tx)
    const asks = [mine, other].map(({ receipt }) => ({ receipt, leaseMs: 60_000 }))
    expect(await engine.extend('w', asks)).toEqual(['held', 'held'])
    expect(await engine.settle(by, [ack(other)])).toEqual(['done'])
    await tx.query('commit')
    expect(await engine.extend('w', asks)).toEqual(['stale', 'stale'])
  })
})

it('works through a pool of the caller, which keeps its clients', async () => {
  const pool = new pg.Pool({ connectionString: url, max: 2 })
  const pw = await connect({ pool })
  const worked = new Promise((resolve) => {
    pw.queue('pooled').work((payload) => resolve(payload))
  })
  await pw.queue('pooled').enqueue({ n: 1 })
  expect(await worked).toEqual({ n: 1 })
  await pw.close()
  expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }])
  expect(pool.idleCount).toBe(pool.totalCount)
  await pool.end()
  await expect(connect({ pool, url })).rejects.toMatchObject({ code: 'PW_OPTION_INVALID' })
})

it('runs calls of several processes that want the same rows and keys in other orders, without a deadlock', async () => {
  const engines = [await opened(), await opened(), await opened()]
  const many = Array.from({ length: 40 }, (_, n) =>
    task('ring', { dedupKey: `d${n}`, key: `k${n % 5}`, batch: 'ring' }),
  )
  const rounds = engines.flatMap((engine, n) =>
    Array.from({ length: 12 }, async (_, round) => {
      const mine = n % 2 ? many : [...many].reverse()
      await engine.enqueue(null, mine)
      const held = await claim(engine, 'ring', 7)
      const bury = held.map(({ receipt }) => ({ receipt, do: 'bury' as const, error: { code: null, text: 'no' } }))
      await engine.settle(by, round % 2 ? held.map(ack).reverse() : bury)
      await engine.amend({ queue: 'ring' }, { do: n ? 'redrive' : 'cancel' }, 'test', { max: 5, dryRun: false })
      await engine.sweep(100)
    }),
  )
  await Promise.all(rounds)
  const [row] = await server.sql<{ deadlocks: string }>(
    url,
    'select deadlocks from pg_stat_database where datname = current_database()',
  )
  expect(Number(row?.deadlocks)).toBe(0)
  for (const { shown, counted } of (await (engines[0] as Engine).select('proof', {}, null)).items) {
    expect(shown).toEqual(counted)
  }
}, 120_000)
