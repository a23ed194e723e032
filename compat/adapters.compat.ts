// The adapters of piecework/postgres over the libraries themselves: a task comes and goes with their transaction.
import 'reflect-metadata'
import { sql } from 'drizzle-orm'
import { drizzle as overPg } from 'drizzle-orm/node-postgres'
import { drizzle as overPostgresJs } from 'drizzle-orm/postgres-js'
import knex from 'knex'
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import postgres from 'postgres'
import { DataSource } from 'typeorm'
import { beforeAll, expect, it, onTestFinished } from 'vitest'
import { fromDrizzle, fromKnex, fromKysely, fromPostgresJs, fromTypeorm } from '../dist/engines/postgres/adapters.js'
import { connect, type Delivery } from '../dist/index.js'
import { serverOfFile } from '../test/postgres/server.js'

const starting = serverOfFile()
let url: string
beforeAll(async () => {
  const server = await starting()
  url = await server.database()
  await server.sql(url, 'create table effect (id text)')
}, 60_000)

type Tx = ReturnType<typeof fromKnex>
/** One transaction of a library: `work` has effects and calls of ours in it; what it throws rolls back. */
type Begin = (work: (tx: Tx, effect: (id: string) => Promise<unknown>) => Promise<void>) => Promise<unknown>

const insert = 'insert into effect values'

async function kysely(): Promise<Begin> {
  const db = new Kysely<{ effect: { id: string } }>({
    dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: url, max: 1 }) }),
  })
  onTestFinished(() => db.destroy())
  return (work) =>
    db.transaction().execute((trx) => work(fromKysely(trx), (id) => trx.insertInto('effect').values({ id }).execute()))
}

async function knexed(): Promise<Begin> {
  const db = knex({ client: 'pg', connection: url, pool: { min: 0, max: 1 } })
  onTestFinished(() => db.destroy())
  return (work) => db.transaction((trx) => work(fromKnex(trx), async (id) => trx('effect').insert({ id })))
}

async function postgresJs(): Promise<Begin> {
  const db = postgres(url, { max: 1, onnotice() {} })
  onTestFinished(() => db.end())
  return (work) => db.begin((tx) => work(fromPostgresJs(tx), async (id) => tx`insert into effect values (${id})`))
}

async function drizzlePg(): Promise<Begin> {
  const pool = new pg.Pool({ connectionString: url, max: 1 })
  onTestFinished(() => pool.end())
  const db = overPg(pool)
  return (work) =>
    db.transaction((tx) => work(fromDrizzle(tx, sql), (id) => tx.execute(sql`${sql.raw(insert)} (${id})`)))
}

async function drizzlePostgresJs(): Promise<Begin> {
  const client = postgres(url, { max: 1, onnotice() {} })
  onTestFinished(() => client.end())
  const db = overPostgresJs(client)
  return (work) =>
    db.transaction((tx) => work(fromDrizzle(tx, sql), (id) => tx.execute(sql`${sql.raw(insert)} (${id})`)))
}

async function typeorm(): Promise<Begin> {
  const source = await new DataSource({ type: 'postgres', url, entities: [] }).initialize()
  onTestFinished(() => source.destroy())
  return (work) =>
    source.transaction((manager) => work(fromTypeorm(manager), (id) => manager.query(`${insert} ($1)`, [id])))
}

const libraries: Record<string, () => Promise<Begin>> = {
  Kysely: kysely,
  Knex: knexed,
  'postgres.js': postgresJs,
  'Drizzle over pg': drizzlePg,
  'Drizzle over postgres.js': drizzlePostgresJs,
  TypeORM: typeorm,
}

it.each(Object.entries(libraries))(
  '%s',
  async (name, open) => {
    const begin = await open()
    const pw = await connect<'postgres'>(url)
    onTestFinished(() => pw.close())
    const queue = pw.queue<string>(name, { backoff: { baseMs: 1 } })
    await pw.ready
    const undone = new Error('undone')
    const rolledBack = async (work: Parameters<Begin>[0]) => {
      const end = begin(async (tx, effect) => {
        await work(tx, effect)
        throw undone
      })
      await expect(end).rejects.toBe(undone)
    }
    const options = { key: 'k "1"', dedupKey: 'd,1', batch: name, headers: { a: 'b' } }
    await rolledBack(async (tx) => void (await queue.enqueue('never', { ...options, tx })))
    let id = ''
    await begin(async (tx) => {
      id = (await queue.enqueue('hello ?', { ...options, tx })).id
    })
    const handler = async (payload: string, delivery: Delivery<'postgres'>) => {
      expect(payload).toBe('hello ?')
      const act: Parameters<Begin>[0] = async (tx, effect) => {
        expect(await delivery.once('k', { tx })).toBe(true)
        await effect(`${name} ${delivery.number}`)
        await delivery.ack({ tx })
      }
      await (delivery.number === 1 ? rolledBack(act) : begin(act))
    }
    const worker = queue.work(handler)
    const retried = new Promise((resolve) => void worker.on('retry', resolve))
    const done = new Promise((resolve) => void worker.on('done', resolve))
    expect(await retried).toMatchObject({ id, error: { code: 'PW_TX_ROLLED_BACK' } })
    expect(await done).toMatchObject({ id, number: 2 })
    await worker.stop()
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    onTestFinished(() => client.end())
    const { rows } = await client.query('select id from effect where id like $1', [`${name} %`])
    expect(rows).toEqual([{ id: `${name} 2` }])
    // A transaction that we refused keeps nothing, whatever the library makes of the error.
    await pw.batch(`sealed ${name}`).seal()
    const swallowed = begin(async (tx, effect) => {
      await effect(`${name} refused`)
      await queue.enqueue('no', { tx, batch: `sealed ${name}` }).catch(() => {})
    })
    await swallowed.catch(() => {})
    expect((await client.query('select id from effect where id = $1', [`${name} refused`])).rows).toEqual([])
  },
  60_000,
)
