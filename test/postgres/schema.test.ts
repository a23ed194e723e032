// The tables of a fresh PostgreSQL store are those of the committed snapshot; versions, names and rights are looked at.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { beforeAll, expect, it, onTestFinished } from 'vitest'
import { engineFor } from '../../dist/engines/open.js'
import { type Server, serverOfFile } from './server.js'

const starting = serverOfFile()
let server: Server

beforeAll(async () => {
  server = await starting()
}, 60_000)

const root = fileURLToPath(new URL('../..', import.meta.url))
const snapshot = join(root, 'src', 'engines', 'postgres', 'schema.sql')
const head = `-- What the catalog says of a fresh PostgreSQL store, as every other program sees it.
-- Made by PW_RENEW_SCHEMA=1 npx vitest run test/postgres/schema.test.ts.
`

const described = `
select relname as name, 'table ' || relname || E' (\\n  ' || (select string_agg(attname || ' ' ||
    format_type(atttypid, atttypmod) || case when attnotnull then ' not null' else '' end ||
    coalesce(' default ' || pg_get_expr(adbin, adrelid), '') ||
    case when attidentity <> '' then ' identity' else '' end, E',\\n  ' order by attnum)
  from pg_attribute left join pg_attrdef on adrelid = attrelid and adnum = attnum
  where attrelid = pg_class.oid and attnum > 0 and not attisdropped) || E'\\n)' ||
  coalesce(' with (' || array_to_string(reloptions, ', ') || ')', '') as text
from pg_class where relnamespace = 'piecework'::regnamespace and relkind = 'r'
union all select indexname, indexdef from pg_indexes where schemaname = 'piecework'
union all select viewname, 'view ' || viewname || E' as\\n' || definition from pg_views where schemaname = 'piecework'
union all select proname, pg_get_functiondef(oid) from pg_proc where pronamespace = 'piecework'::regnamespace
order by 1`

it('is what the snapshot says', async () => {
  const url = await server.database()
  const engine = engineFor(url)
  await engine.open()
  await engine.close()
  const rows = await server.sql<{ text: string }>(url, described)
  const schema = `${head}\n${rows.map(({ text }) => `${text.replace(/\s*;?\s*$/, '')};\n`).join('\n')}`
  if (process.env.PW_RENEW_SCHEMA === '1') writeFileSync(snapshot, schema)
  expect(readFileSync(snapshot, 'utf8')).toBe(schema)
})

it('is listed before it is made, and made once by many that start together', async () => {
  const url = await server.database()
  const [statements] = await Promise.all([engineFor(url).migrate(true)])
  expect(statements[0]).toBe('create schema if not exists "piecework"')
  await expect(engineFor(url, { create: false }).open()).rejects.toMatchObject({ code: 'PW_STORE_MISSING' })
  const engines = Array.from({ length: 6 }, () => engineFor(url))
  onTestFinished(async () => {
    for (const engine of engines) await engine.close()
  })
  await Promise.all(engines.map((engine) => engine.open()))
  expect(await engineFor(url).migrate(true)).toEqual([])
})

it('of a newer version is refused, at the start and by whoever is at work', async () => {
  const url = await server.database()
  const engine = engineFor(url)
  await engine.open()
  onTestFinished(() => engine.close())
  await server.sql(url, 'update piecework.store set format = 99')
  const late = engineFor(url).open()
  await expect(late).rejects.toMatchObject({ code: 'PW_SCHEMA_NEW' })
  await expect(engine.enqueue(null, [{ queue: 'q', payload: '1' }])).rejects.toMatchObject({ code: 'PW_SCHEMA_NEW' })
})

it('can have another name, and two stores in one database are two', async () => {
  const url = await server.database()
  const [one, two] = [engineFor(url, { schema: 'One "1"' }), engineFor(url, { schema: 'two' })]
  for (const engine of [one, two]) {
    await engine.open()
    onTestFinished(() => engine.close())
  }
  await one.enqueue(null, [{ queue: 'q', payload: '1', key: 'k' }])
  const ask = { worker: 'w', requestId: null, wants: [{ queue: 'q', types: null, max: 1 }] }
  expect((await two.claim(ask)).deliveries).toEqual([])
  expect((await one.claim(ask)).deliveries).toHaveLength(1)
})

it('needs no right to make anything once it is there', async () => {
  const url = await server.database()
  const maker = engineFor(url)
  await maker.open()
  onTestFinished(() => maker.close())
  await server.sql(
    url,
    `create role app login password 'secret'; revoke all on schema public from public;
     grant usage on schema piecework to app;
     grant select, insert, update, delete on all tables in schema piecework to app;
     grant usage on all sequences in schema piecework to app`,
  )
  const engine = engineFor(url.replace('postgres:password', 'app:secret'))
  await engine.open()
  onTestFinished(() => engine.close())
  await engine.enqueue(null, [{ queue: 'q', payload: '1', key: 'k', batch: 'b', dedupKey: 'd', identity: 'i' }])
  const ask = { worker: 'w', requestId: null, wants: [{ queue: 'q', types: null, max: 1 }] }
  const { deliveries } = await engine.claim(ask)
  const verdict = { receipt: deliveries[0]?.receipt ?? '', do: 'ack' as const }
  expect(await engine.settle({ worker: 'w', flush: 'f' }, [verdict])).toEqual(['done'])
  await engine.sweep(100)
  const client = new pg.Client({ connectionString: url.replace('postgres:password', 'app:secret') })
  await client.connect()
  onTestFinished(() => client.end())
  await expect(client.query('drop table piecework.task')).rejects.toMatchObject({ code: '42501' })
})
