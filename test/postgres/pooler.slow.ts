// Behind PgBouncer in transaction mode the engine passes its suite, says what it lacks, leaves nothing, loses nothing.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { connect } from 'piecework'
import { engineSuite } from 'piecework/testing'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { engineFor } from '../../dist/engines/open.js'
import { postgresEngine } from '../../dist/engines/postgres/engine.js'
import { start, until } from '../laws/processes.js'
import { type Pooler, poolerBefore } from './pooler.js'
import { type Server, serverOfFile } from './server.js'
import { type EngineOver, postgresStore } from './subject.js'

const starting = serverOfFile()
let server: Server
let pooler: Pooler

beforeAll(async () => {
  server = await starting()
  pooler = await poolerBefore(server, 3)
}, 60_000)

const engineOver: EngineOver = (source, ports, options) =>
  postgresEngine('url' in source ? { url: pooler.through(source.url) } : source, ports, options)
const store = () => postgresStore(server, { engineOver })
engineSuite({ persists: true, deaths: true, oneClock: true, store }, { describe, it })

it('says that deaths are known by leases alone and that it polls', async () => {
  const url = pooler.through(await server.database())
  const pw = await connect(url)
  onTestFinished(() => pw.close())
  const engine = engineFor(url)
  await engine.open()
  onTestFinished(() => engine.close())
  expect(engine.traits).toMatchObject({ liveness: 'lease', wake: 'poll' })
  await pw.queue('q').enqueue({})
  const cli = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, [cli, 'status', '--url', url])
  expect(stdout).toContain('by the end of its leases alone')
})

it("gives a killed worker's task back when its lease ends, and never before", async () => {
  const url = pooler.through(await server.database())
  const pw = await connect(url)
  onTestFinished(() => pw.close())
  const policy = { leaseMs: 3000 }
  const tasks = pw.queue<{ do: string; times?: number }>('held', policy)
  const { id } = await tasks.enqueue({ do: 'die', times: 1 })
  const first = start('worker', { url, queue: 'held', policy })
  await first.exit
  const second = start('worker', { url, queue: 'held', policy })
  await second.heard('done')
  expect(await tasks.drained({ waitMs: 20_000 })).toEqual({ dead: 0 })
  expect((await tasks.stats()).expiries).toBe(1)
  expect(second.lines.find(({ what }) => what === 'done')).toMatchObject({ id, number: 2 })
})

it('leaves no setting, lock or statement on the sessions it shares', async () => {
  const url = await server.database()
  const pw = await connect(pooler.through(url))
  const tasks = pw.queue<number>('q')
  const worker = tasks.work(() => {})
  await Promise.all(Array.from({ length: 200 }, (_, n) => tasks.enqueue(n, { key: `k${n % 3}` })))
  expect(await tasks.drained({ waitMs: 20_000 })).toEqual({ dead: 0 })
  await worker.stop()
  await pw.close()
  const text = `select current_setting('enable_seqscan') as scans, current_setting('statement_timeout') as ends,
    (select count(*)::int from pg_prepared_statements) as named,
    (select count(*)::int from pg_locks where locktype = 'advisory') as locks,
    (select count(*)::int from pg_listening_channels()) as ears`
  const rows = await Promise.all(Array.from({ length: 6 }, () => server.sql(pooler.through(url), text)))
  for (const [row] of rows) expect(row).toEqual({ scans: 'on', ends: '0', named: 0, locks: 0, ears: 0 })
})

it('loses nothing that was accepted when the pooler is killed under load three times, and goes on', async () => {
  const url = pooler.through(await server.database())
  const policy = { leaseMs: 3000 }
  const workers = [1, 2].map(() => start('worker', { url, queue: 'load', policy, options: { concurrency: 20 } }))
  const producer = engineFor(url)
  await producer.open()
  onTestFinished(() => producer.close())
  for (const worker of workers) await worker.heard('ready')
  const accepted: string[] = []
  const refused = new Set<string>()
  let going = true
  const produce = async (lane: number) => {
    for (let n = 0; going; n++) {
      const task = { queue: 'load', payload: JSON.stringify({ do: 'slow', ms: 20 }) }
      await producer.enqueue(`${lane} ${n}`, [task]).then(
        ([one]) => void accepted.push(one?.id ?? ''),
        (error) => void refused.add(error.code),
      )
    }
  }
  const lanes = [0, 1, 2, 3].map(produce)
  for (let round = 1; round <= 3; round++) {
    await until('work to be accepted', () => accepted.length > round * 100)
    await pooler.kill()
    await pooler.start()
  }
  const before = accepted.length
  await until('work to go on', () => accepted.length > before + 100)
  going = false
  await Promise.all(lanes)
  const figures = async () => (await producer.measure(['load'], true)).types[0]
  await until('the queue to drain', async () => {
    const now = await figures()
    return now !== undefined && now.ready + now.leased + now.scheduled === 0
  })
  const done = new Set(
    workers.flatMap(({ lines }) => lines.filter(({ what }) => what === 'effect').map(({ id }) => id)),
  )
  expect(accepted.filter((id) => !done.has(id))).toEqual([])
  expect([...refused].filter((code) => code !== 'PW_STORE_UNREACHABLE')).toEqual([])
  expect(await figures()).toMatchObject({ dead: 0, deaths: 0 })
}, 90_000)
