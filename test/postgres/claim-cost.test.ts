// What a claim costs on PostgreSQL grows neither with the backlog nor with an old snapshot; waiting costs little.
import { connect } from 'piecework'
import { beforeAll, expect, it, onTestFinished } from 'vitest'
import { monotonicMs, until } from '../laws/processes.js'
import { client, opened } from './client.js'
import { costly, explained, fill } from './plan.js'
import { type Server, serverOfFile } from './server.js'

const starting = serverOfFile()
let server: Server

beforeAll(async () => {
  server = await starting()
}, 60_000)

it('reads the heads alone: no sort, no scan of a table, as few pages of 120 000 tasks as of 1000', async () => {
  const [small, large] = [await server.database(), await server.database()]
  for (const url of [small, large]) await opened(url)
  await server.sql(small, fill(1000, 10, 10))
  await server.sql(large, fill(100_000, 10_000, 10_000))
  const [few, many] = [await explained(small), await explained(large)]
  console.log(`buffers: ${few.buffers} of 1000 tasks, ${many.buffers} of 120 000`)
  for (const { nodes } of [few, many]) expect(costly(nodes)).toEqual([])
  expect(many.buffers).toBeLessThanOrEqual(few.buffers * 2)
}, 60_000)

it('starts past what an old snapshot keeps in the index', async () => {
  const url = await server.database()
  const engine = await opened(url)
  await server.sql(url, fill(20_000, 0, 0))
  const fresh = await explained(url)
  const old = await client(url)
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

const listening = `select from pg_stat_activity where datname = current_database() and query like 'listen%'`

it('wakes a waiting process for what another one commits', async () => {
  const url = await server.database()
  const [waiting, other] = [await opened(url), await opened(url)]
  await other.enqueue(null, [{ queue: 'q', payload: '1' }])
  const woken: number[] = []
  for (let n = 0; n < 5; n++) {
    const wait = waiting.wait(['quiet'], 20_000, new AbortController().signal)
    await until('it to listen', async () => (await server.sql(url, listening)).length > 0)
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
  // From another database, so that nobody counts the counting.
  const counter = await client(url.replace(/[^/]+$/, 'postgres'))
  const asked = async () => {
    const text = 'select xact_commit::int as n from pg_stat_database where datname = $1'
    return (await counter.query<{ n: number }>(text, [new URL(url).pathname.slice(1)])).rows[0]?.n ?? 0
  }
  // They start together and find their pace: the first 60 questions may come faster.
  let from = { n: await asked(), at: monotonicMs() }
  const perSecond = await until('60 questions at an idle pace', async () => {
    const n = await asked()
    if (n - from.n < 60) return false
    const now = { n, at: monotonicMs() }
    const pace = (now.n - from.n) / ((now.at - from.at) / 1000)
    from = now
    return pace < 12.5 && pace
  })
  console.log(`${perSecond.toFixed(1)} transactions a second`)
}, 60_000)
