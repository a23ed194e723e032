// What a claim costs on PostgreSQL grows neither with the backlog nor with an old snapshot; waiting costs little.

import pg from 'pg'
import { connect } from 'piecework'
import { beforeAll, expect, it, onTestFinished } from 'vitest'
import type { Engine } from '../../dist/engine/contract.js'
import { engineFor } from '../../dist/engines/open.js'
import { statementsIn } from '../../dist/engines/postgres/statements.js'
import { monotonicMs, passed, until } from '../laws/processes.js'
import { type Server, serverOfFile } from './server.js'

const starting = serverOfFile()
let server: Server

beforeAll(async () => {
  server = await starting()
}, 60_000)

async function opened(url: string): Promise<Engine> {
  const engine = engineFor(url)
  await engine.open()
  onTestFinished(() => engine.close())
  return engine
}

/** Ready, scheduled and dead tasks as a year leaves them, written past the engine. */
const fill = (ready: number, scheduled: number, dead: number) => `
insert into piecework.queue (id, name, createdAt) values (1001, 'q', 0);
insert into piecework.type (id, queue, name) values (1001, 1001, 'q');
insert into piecework.worker (name, host, pid, bootId, queues, concurrency, busy, prefetched, aliveAt)
  values ('w', '', 0, '', '[]', 0, 0, 0, 0);
insert into piecework.task (queue, type, state, place, dueAt, wakeAt, enqueuedAt, payload)
  select 1001, 1001, state, n, n, case when state = 1 then n + 4000000000000 end, 0, '"a payload of some length"'
  from (select 3 as state, generate_series(1, ${ready}) as n union all select 1, generate_series(1, ${scheduled})
    union all select 5, generate_series(1, ${dead})) rows;
update piecework.store set settings = settings + 1;`

const low = Number.MIN_SAFE_INTEGER

interface Plan {
  'Node Type': string
  'Shared Hit Blocks'?: number
  Plans?: Plan[]
}

/** The nodes of a claim's plan and the buffers it touched, on a session like the engine's own. */
async function explained(url: string, mark = low, max = 10): Promise<{ nodes: string[]; buffers: number }> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query('set enable_seqscan = off; set enable_bitmapscan = off; set jit = off')
    const { text } = statementsIn('piecework').claim
    const run = `execute claim (4e12, 1, 1, 'w', '{1001}', '{${mark}}', ${max})`
    await client.query(`prepare claim (bigint, bigint, bigint, text, int[], bigint[], bigint) as ${text}`)
    // A prepared statement has its general plan from the sixth time on: what the engine runs all day.
    await client.query("set plan_cache_mode = 'force_generic_plan'")
    await client.query('begin')
    const { rows } = await client.query(`explain (analyze, buffers, format json) ${run}`)
    await client.query('rollback')
    const nodes: string[] = []
    const walk = (plan: Plan) => {
      nodes.push(plan['Node Type'])
      plan.Plans?.forEach(walk)
    }
    const plan = (rows[0] as { 'QUERY PLAN': { Plan: Plan }[] })['QUERY PLAN'][0]?.Plan as Plan
    walk(plan)
    return { nodes, buffers: plan['Shared Hit Blocks'] ?? 0 }
  } finally {
    await client.end()
  }
}

it('reads the heads alone: no sort, no scan of a table, as few pages of 120 000 tasks as of 1000', async () => {
  const [small, large] = [await server.database(), await server.database()]
  for (const url of [small, large]) await opened(url)
  await server.sql(small, fill(1000, 10, 10))
  await server.sql(large, fill(100_000, 10_000, 10_000))
  const [few, many] = [await explained(small), await explained(large)]
  console.log(`buffers: ${few.buffers} of 1000 tasks, ${many.buffers} of 120 000`)
  for (const { nodes } of [few, many]) expect(nodes.filter((node) => /Sort|Seq Scan|Bitmap/.test(node))).toEqual([])
  expect(many.buffers).toBeLessThanOrEqual(few.buffers * 2)
}, 60_000)

it('starts past what an old snapshot keeps in the index', async () => {
  const url = await server.database()
  const engine = await opened(url)
  await server.sql(url, fill(20_000, 0, 0))
  const fresh = await explained(url)
  const old = new pg.Client({ connectionString: url })
  await old.connect()
  onTestFinished(() => old.end())
  await old.query('begin isolation level repeatable read; select from piecework.task limit 1')
  const wants = [{ queue: 'q', types: null, max: 1000 }]
  let mark = 0
  for (let n = 0; n < 15; n++) {
    const { deliveries } = await engine.claim({ worker: 'w', requestId: null, wants })
    const verdicts = deliveries.map(({ receipt }) => ({ receipt, do: 'ack' as const }))
    await engine.settle({ worker: 'w', flush: null }, verdicts)
    mark += deliveries.length
  }
  const [without, marked] = [await explained(url), await explained(url, mark)]
  console.log(`buffers: ${fresh.buffers} fresh, ${marked.buffers} from the mark, ${without.buffers} without one`)
  expect(marked.buffers).toBeLessThanOrEqual(fresh.buffers * 3)
  expect(without.buffers).toBeGreaterThan(marked.buffers * 3)
}, 60_000)

it('wakes a waiting process for what another one commits', async () => {
  const url = await server.database()
  const [waiting, other] = [await opened(url), await opened(url)]
  await other.enqueue(null, [{ queue: 'q', payload: '1' }])
  const woken: number[] = []
  for (let n = 0; n < 5; n++) {
    const wait = waiting.wait(['quiet'], 20_000, new AbortController().signal)
    await passed(300)
    const at = monotonicMs()
    await other.enqueue(null, [{ queue: 'quiet', payload: '1' }])
    expect(await wait).toBe(true)
    woken.push(Math.round(monotonicMs() - at))
    const wants = [{ queue: 'quiet', types: null, max: 1 }]
    const { deliveries } = await other.claim({ worker: 'w', requestId: null, wants })
    await other.settle({ worker: 'w', flush: null }, [{ receipt: deliveries[0]?.receipt ?? '', do: 'ack' }])
  }
  console.log(`woken after ${woken.join(', ')} ms`)
  expect(Math.min(...woken)).toBeLessThan(75)
}, 60_000)

it('lets 50 idle workers of one process ask less than 12 times a second', async () => {
  const url = await server.database()
  const pw = await connect(url)
  onTestFinished(() => pw.close())
  const workers = Array.from({ length: 50 }, (_, n) => pw.queue(`q${n}`).work(() => {}))
  await Promise.all(workers.map((worker) => worker.ready))
  const asked = async () => {
    const text = `select xact_commit::int as n from pg_stat_database where datname = current_database()`
    const [row] = await server.sql<{ n: number }>(url, text)
    return row?.n ?? 0
  }
  // They start together and find their pace.
  await passed(3000)
  await until('the figures to stand', async () => (await asked()) > 0)
  const [before, at] = [await asked(), monotonicMs()]
  await passed(5000)
  const perSecond = ((await asked()) - before) / ((monotonicMs() - at) / 1000)
  console.log(`${perSecond.toFixed(1)} transactions a second`)
  expect(perSecond).toBeLessThan(12.5)
}, 60_000)
