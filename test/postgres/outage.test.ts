// PostgreSQL goes away: refused, restarted, its sessions killed; nothing accepted is lost and no delivery is charged.
import { connect } from 'piecework'
import { beforeAll, expect, it, onTestFinished } from 'vitest'
import type { WorkerInfo } from '../../dist/engine/contract.js'
import { systemClock } from '../../dist/ground/clock.js'
import { monotonicMs, start, until } from '../laws/processes.js'
import { opened } from './client.js'
import { type Server, serverOfFile } from './server.js'
import { wayTo } from './way.js'

const starting = serverOfFile(['fsync=on'])
let server: Server

beforeAll(async () => {
  server = await starting()
}, 60_000)

const payload = JSON.stringify({ do: 'quick' })

it('refuses quickly and clearly where no server is', async () => {
  const at = monotonicMs()
  await expect(connect('postgres://nobody@127.0.0.1:1/none')).rejects.toMatchObject({
    code: 'PW_STORE_UNREACHABLE',
    retryable: true,
  })
  expect(monotonicMs() - at).toBeLessThan(3500)
})

it('takes the first of several hosts that can be written', async () => {
  const url = (await server.database()).replace(/@[^/]+/, `@127.0.0.1:1,127.0.0.1:${server.port}`)
  const engine = await opened(`${url}?target_session_attrs=read-write`)
  expect(await engine.enqueue(null, [{ queue: 'q', payload }])).toMatchObject([{ state: 'ready' }])
})

it.each(['fast', 'immediate'] as const)(
  'loses nothing accepted and charges no delivery in a restart (%s) under load',
  async (how) => {
    const url = await server.database()
    const engine = await opened(url)
    await engine.configure('queue', 'load', { code: { leaseMs: 30_000 } }, 'test')
    const worker = start('worker', { url, queue: 'load', policy: { leaseMs: 30_000 }, options: { concurrency: 4 } })
    await worker.heard('ready')
    const accepted: string[] = []
    const refused = new Set<string>()
    let going = true
    const produce = async () => {
      while (going) {
        const at = monotonicMs()
        try {
          accepted.push((await engine.enqueue(null, [{ queue: 'load', payload }]))[0]?.id ?? '')
        } catch (error) {
          refused.add((error as { code: string }).code)
          expect(monotonicMs() - at).toBeLessThan(3500)
        }
      }
    }
    const producers = [produce(), produce(), produce()]
    await until('tasks to be done', () => worker.lines.filter(({ what }) => what === 'done').length >= 50)
    await server.stop(how)
    await until('producers to hear of it', () => refused.size > 0)
    await server.start()
    const backAt = monotonicMs()
    const before = worker.lines.filter(({ what }) => what === 'started').length
    await until('claims after the return', () => worker.lines.filter(({ what }) => what === 'started').length > before)
    expect(monotonicMs() - backAt).toBeLessThan(3000)
    going = false
    await Promise.all(producers)
    const open = async () => (await engine.measure(['load'], true)).types[0]
    await until('the queue to drain', async () => {
      const figures = await open()
      return figures !== undefined && figures.ready + figures.leased + figures.scheduled === 0
    })
    const done = new Set(worker.lines.filter(({ what }) => what === 'effect').map(({ id }) => id))
    expect([...refused]).toEqual(['PW_STORE_UNREACHABLE'])
    expect(accepted.filter((id) => !done.has(id))).toEqual([])
    expect(await open()).toMatchObject({ dead: 0, deaths: 0, expiries: 0, failures: 0 })
  },
  60_000,
)

it('keeps leases and life of a worker whose sessions are killed, and sees the death of one killed itself', async () => {
  const url = await server.database()
  const engine = await opened(url)
  const client = await connect(url)
  onTestFinished(() => client.close())
  const policy = { leaseMs: 30_000 }
  const worker = start('worker', { url, queue: 'held', policy, options: { concurrency: 1, prefetch: 0 } })
  await worker.heard('ready')
  await client.queue('held').enqueue({ do: 'wait' })
  await worker.heard('started')
  const own = () => engine.select('worker', {}, null)
  expect((await own()).items).toHaveLength(1)
  for (let round = 0; round < 5; round++) {
    // All but those of this process: its own may look on.
    await server.sql(
      url,
      `select pg_terminate_backend(pid) from pg_stat_activity, (select array_agg(pid) as ours from pg_locks
         where locktype = 'advisory') locks where pid = any(ours)`,
    )
    await until('the lock to be back', async () => {
      const [row] = await server.sql<{ n: number }>(
        url,
        `select count(*)::int as n from pg_locks where locktype = 'advisory' and objsubid = 1`,
      )
      return (row?.n ?? 0) > 1
    })
  }
  expect((await engine.measure(['held'], true)).types).toMatchObject([{ leased: 1, deaths: 0, expiries: 0 }])
  const at = monotonicMs()
  worker.kill('SIGKILL')
  await until('the death to be known', async () => (await engine.measure(['held'], true)).types[0]?.ready === 1)
  console.log(`known after ${Math.round(monotonicMs() - at)} ms`)
  expect((await engine.measure(['held'], true)).types).toMatchObject([{ leased: 0, deaths: 1 }])
}, 60_000)

it('gives a connection up that fell silent, says so in time, and goes on when the way is open again', async () => {
  const url = await server.database()
  const way = await wayTo(server.port)
  const options = { silentMs: 700, connectMs: 700 }
  const engine = await opened(way.through(url), options)
  const task = { queue: 'q', payload }
  // Several connections at rest, each as silent as the next one.
  await Promise.all([engine.enqueue('first', [task]), engine.measure(null, false), engine.sweep(10)])
  for (let round = 0; round < 2; round++) {
    way.fallSilent()
    const at = monotonicMs()
    const refused = await Promise.allSettled([engine.enqueue(`lost ${round}`, [task]), engine.sweep(10)])
    expect(refused).toMatchObject([
      { status: 'rejected', reason: { code: 'PW_STORE_UNREACHABLE', retryable: true } },
      { status: 'rejected', reason: { code: 'PW_STORE_UNREACHABLE' } },
    ])
    expect(monotonicMs() - at).toBeLessThan(4 * 700 + 1000)
    way.open()
    const backAt = monotonicMs()
    // Whether the first one was kept is not known: its name says that it is the same one.
    expect(await engine.enqueue(`lost ${round}`, [task])).toMatchObject([{ state: 'ready' }])
    expect(monotonicMs() - backAt).toBeLessThan(3000)
  }
  const wants = [{ queue: 'q', types: null, max: 10 }]
  expect((await engine.claim({ worker: 'w', requestId: null, wants })).deliveries).toHaveLength(3)
})

it('locks again when the session that proves its life was ended behind its back', async () => {
  const url = await server.database()
  const way = await wayTo(server.port)
  const engine = await opened(way.through(url))
  const info: WorkerInfo = {
    ...{ worker: 'w', host: 'h', pid: 1, bootId: systemClock.bootId, queues: ['q'] },
    ...{ concurrency: 1, busy: 0, prefetched: 0, proof: null },
  }
  await engine.worker('join', info)
  const holder = async () => {
    const text = `select client_port as port from pg_stat_activity join pg_locks using (pid)
      where locktype = 'advisory' and objsubid = 1 and datname = current_database()`
    return (await server.sql<{ port: number }>(url, text))[0]?.port
  }
  const before = await until('the lock', holder)
  way.cut(before)
  await until('the lock to be gone', async () => (await holder()) !== before)
  const after = await until('the lock to be back', async () => {
    await engine.sweep(10)
    return holder()
  })
  expect(after).not.toBe(before)
  expect(await engine.worker('beat', info)).toMatchObject({ alive: true })
})
