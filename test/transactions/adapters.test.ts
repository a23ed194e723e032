// The adapters of piecework/postgres, each over a stand-in that answers as its library does; for the real: test:compat.
import pg from 'pg'
import { connect, type Piecework } from 'piecework'
import { fromDrizzle, fromKnex, fromKysely, fromPostgresJs, fromPrisma, fromTypeorm } from 'piecework/postgres'
import { beforeAll, expect, it, onTestFinished } from 'vitest'
import { connectionOf } from '../../dist/queue/client.js'
import { serverOfFile } from '../postgres/server.js'

const starting = serverOfFile()
let url: string
beforeAll(async () => {
  url = await (await starting()).database()
}, 60_000)

type Adapted = ReturnType<typeof fromKnex>
type Client = Pick<pg.Client, 'query'>
const bigints = (rows: Record<string, unknown>[]) =>
  rows.map((row) => Object.fromEntries(Object.entries(row).map(([k, v]) => [k, /id|fence/.test(k) ? big(v) : v])))
const big = (value: unknown) => (typeof value === 'string' && /^\d+$/.test(value) ? BigInt(value) : value)

/** Drizzle's `sql` as a tagged text that keeps its parts. */
const sql = Object.assign((strings: TemplateStringsArray, ...values: unknown[]) => ({ strings, values }), {
  raw: (text: string) => text,
})
const numbered = (parts: readonly string[]) => parts.map((part, i) => (i === 0 ? part : `$${i}${part}`)).join('')

const libraries: Record<string, (client: Client) => Adapted> = {
  'postgres.js': (client) =>
    fromPostgresJs({ unsafe: async (text, values) => (await client.query(text, values)).rows }),
  Drizzle: (client) =>
    fromDrizzle(
      { execute: ({ strings, values }: ReturnType<typeof sql>) => client.query(numbered(strings), values) },
      sql,
    ),
  Kysely: (client) =>
    fromKysely({ executeQuery: async (query) => client.query(query.sql, [...query.parameters]) as never }),
  Knex: (client) => fromKnex({ raw: (text, values) => client.query(numbered(text.split('?')), values) }),
  TypeORM: (client) =>
    fromTypeorm({
      query: async (text, values) => {
        const { rows, command, rowCount } = await client.query(text, values)
        return command === 'DELETE' || command === 'UPDATE' ? [rows, rowCount] : rows
      },
    }),
  Prisma: (client) =>
    fromPrisma({
      $queryRawUnsafe: async <T>(text: string, ...values: unknown[]) =>
        bigints((await client.query(text, values)).rows) as T,
    }),
}

async function clientOf(): Promise<pg.Client> {
  const made = new pg.Client({ connectionString: url })
  await made.connect()
  onTestFinished(() => made.end())
  return made
}

it.each(Object.entries(libraries))('%s: enqueue, ack and once commit and roll back with it', async (name, adapt) => {
  const pw = await connect<'postgres'>(url)
  onTestFinished(() => pw.close())
  const client = await clientOf()
  const queue = pw.queue(`mail of ${name}`, { backoff: { baseMs: 1 }, resultKeepMs: 60_000 })
  await pw.ready
  const options = { key: '12', dedupKey: '7 "quoted\\', batch: `b ${name}`, headers: { 'a,b': '{}' }, priority: 1 }
  const text = 'null, "NULL" {brackets} back\\slash \uffff end'
  for (const end of ['rollback', 'commit']) {
    await client.query('begin')
    const tx = adapt(client)
    const first = await queue.enqueue({ text, end }, { ...options, tx })
    expect(await queue.enqueue({ text: 'again' }, { ...options, tx })).toEqual({ id: first.id, duplicate: true })
    await client.query(end)
  }
  const said: unknown[] = []
  const done = new Promise((resolve) => {
    const worker = queue.work(async (payload, delivery) => {
      const end = delivery.number === 1 ? 'rollback' : 'commit'
      await client.query('begin')
      said.push(payload, await delivery.once('k', { tx: adapt(client) }))
      await delivery.ack({ tx: adapt(client) })
      await client.query(end)
    })
    worker.on('done', resolve)
  })
  await done
  expect(said).toEqual([{ text, end: 'commit' }, true, { text, end: 'commit' }, true])
  expect(await pw.batch(`b ${name}`).stats()).toMatchObject({ total: 1, done: 1 })
  const { engine } = connectionOf(pw as Piecework).ports
  for (const { shown, counted } of (await engine.select('proof', {}, null)).items) expect(shown).toEqual(counted)
  // Without a transaction every statement would stand alone.
  await expect(queue.enqueue(1, { tx: adapt(client) })).rejects.toMatchObject({ code: 'PW_TX_NONE' })
})
