// The roles of docs/postgres-roles.sql: each does its commands, is refused those of the others, and needs no more.
import { readFileSync } from 'node:fs'
import { connect } from 'piecework'
import { beforeAll, expect, it, onTestFinished } from 'vitest'
import type { ClaimedTask, Engine, WorkerInfo } from '../../dist/engine/contract.js'
import type { AsyncEngine } from '../../dist/engine/transactions.js'
import { engineFor } from '../../dist/engines/open.js'
import { systemClock } from '../../dist/ground/clock.js'
import { type Server, serverOfFile } from './server.js'

const starting = serverOfFile()
let server: Server
let url: string
const roles = ['producer', 'worker', 'operator'] as const
type Role = (typeof roles)[number]

beforeAll(async () => {
  server = await starting()
  url = await server.database()
  const owner = engineFor(url)
  await owner.open()
  await owner.close()
  const script = readFileSync(new URL('../../docs/postgres-roles.sql', import.meta.url), 'utf8')
  await server.sql(url, `revoke all on schema public from public; ${script}`)
  // As after a migration.
  await server.sql(url, script)
  for (const role of roles) await server.sql(url, `create role ${role} login password 'p' in role piecework_${role}`)
}, 60_000)

const urlOf = (role: Role) => url.replace('postgres:password', `${role}:p`)

async function as(role: Role): Promise<Engine> {
  const engine = engineFor(urlOf(role))
  await engine.open()
  onTestFinished(() => engine.close())
  return engine
}

const info: WorkerInfo = {
  ...{ worker: 'w', host: 'h', pid: 1, bootId: systemClock.bootId, queues: ['q'] },
  ...{ concurrency: 1, busy: 0, prefetched: 0, proof: null },
}
const full = { queue: 'q', payload: '1', key: 'k', batch: 'b', priority: 1, headers: '{}' }
const no = { code: null, text: 'no' }
let given = 0
/** A number that none of these tests has had. */
const another = (): number => ++given

const add = (engine: Engine, name: string) =>
  engine.enqueue(name, [
    { ...full, dedupKey: `d ${name}`, identity: `i ${name}` },
    { ...full, delayMs: 1 },
    { queue: 'q', payload: '2', deadlineMs: 60_000 },
  ])
const claim = async (engine: Engine): Promise<ClaimedTask[]> =>
  (await engine.claim({ worker: 'w', requestId: null, wants: [{ queue: 'q', types: null, max: 1 }] })).deliveries
const ids = async (engine: Engine, state: 'dead' | 'ready') =>
  (await engine.select('task', { states: [state] }, null)).items.map(({ id }) => String(id))

async function somethingOfEveryKind(): Promise<void> {
  const owner = engineFor(url)
  await owner.open()
  onTestFinished(() => owner.close())
  for (let n = 0; n < 5; n++) await owner.enqueue(null, [{ queue: 'q', payload: '1' }])
  const [held] = await claim(owner)
  await owner.settle({ worker: 'w', flush: null }, [{ receipt: held?.receipt ?? '', do: 'bury', error: no }])
  await owner.enqueue(null, [{ queue: 'q', payload: '1', dueAt: Date.now() + 1 }])
  await owner.configure('batch', 'sealed', {}, 'a')
}

const duties: Record<string, { of: Role[]; act: (engine: Engine) => Promise<unknown> }> = {
  'add tasks': { of: ['producer', 'worker'], act: (engine) => add(engine, `once ${another()}`) },
  'do something once, in a transaction': {
    of: ['worker'],
    act: (engine) => {
      const { transact, once } = engine as AsyncEngine
      const effect = { queue: 'q', effectKey: `e ${another()}`, task: null }
      return transact.call(engine, (tx) => once.call(engine, effect, tx))
    },
  },
  'bring a policy': {
    of: [...roles],
    act: (engine) =>
      engine.configure('queue', 'q', { code: { leaseMs: 10_000 + another(), concurrencyMax: 100 } }, 'a'),
  },
  'seal a batch': {
    of: [...roles],
    act: (engine) => engine.configure('batch', `sealed ${another()}`, { sealed: true }, 'a'),
  },
  'say what follows a batch': {
    of: [...roles],
    act: (engine) =>
      engine.configure('batch', `followed ${another()}`, { followUp: { queue: 'q', payload: '1' } }, 'a'),
  },
  'end a batch that something follows': {
    of: ['worker'],
    act: async (engine) => {
      const name = `ended ${another()}`
      await engine.configure('batch', name, { followUp: { queue: 'q', payload: '1' }, sealed: true }, 'a')
      await engine.sweep(100)
      const [batch] = (await engine.select('batch', { name }, null)).items
      expect(batch?.finishedAt).toBeTypeOf('number')
    },
  },
  'keep and read a result': {
    of: ['worker'],
    act: async (engine) => {
      const [made] = await engine.enqueue(null, [{ queue: 'kept', payload: '1', keepsResult: true }])
      const ask = { worker: 'w', requestId: null, wants: [{ queue: 'kept', types: null, max: 1 }] }
      const [held] = (await engine.claim(ask)).deliveries
      await engine.settle({ worker: 'w', flush: null }, [{ receipt: held?.receipt ?? '', do: 'ack', result: '2' }])
      const { items } = await engine.select('result', { ids: [made?.id ?? ''] }, null)
      expect(items).toMatchObject([{ outcome: 'done', result: '2' }])
    },
  },
  'delay a duplicate': {
    of: ['worker'],
    act: async (engine) => {
      const task = { queue: 'delayed', payload: '1', dedupKey: `again ${another()}`, delayMs: 1000 }
      await engine.enqueue(null, [task])
      await engine.enqueue(null, [{ ...task, onDuplicate: 'delay' }])
    },
  },
  'read figures': { of: [...roles], act: (engine) => engine.measure(null, false) },
  'read payloads': { of: ['worker', 'operator'], act: (engine) => engine.select('task', {}, null) },
  'join, claim and give back': {
    of: ['worker'],
    act: async (engine) => {
      await engine.worker('join', info)
      await engine.worker('beat', { ...info, busy: 1 })
      for (const how of ['ack', 'retry', 'bury'] as const) {
        const [held] = await claim(engine)
        const { receipt } = held as ClaimedTask
        await engine.extend('w', [{ receipt, leaseMs: 10_000, progress: '1' }])
        const verdict = how === 'ack' ? { receipt, do: how } : { receipt, do: how, error: no }
        await engine.settle({ worker: 'w', flush: how }, [verdict])
      }
      await engine.worker('leave', info)
    },
  },
  sweep: { of: ['worker', 'operator'], act: (engine) => engine.sweep(100) },
  pause: {
    of: ['operator'],
    act: async (engine) => {
      await engine.configure('queue', 'q', { paused: true }, 'a')
      await engine.configure('queue', 'q', { paused: false }, 'a')
    },
  },
  'overrule a policy': {
    of: ['operator'],
    act: (engine) => engine.configure('queue', 'q', { operator: { deliveriesMax: 9 + another() } }, 'a'),
  },
  'edit and redrive': {
    of: ['operator'],
    act: async (engine) => {
      const bounds = { max: 1, dryRun: false }
      const [dead = ''] = await ids(engine, 'dead')
      await engine.amend({ ids: [dead] }, { do: 'edit', payload: '3' }, 'a', bounds)
      await engine.amend({ ids: [dead] }, { do: 'redrive' }, 'a', bounds)
    },
  },
  // Rights on rows cannot tell it from what the end of a delivery does that was asked to be cancelled or moved.
  'move and cancel': {
    of: ['worker', 'operator'],
    act: async (engine) => {
      const bounds = { max: 1, dryRun: false }
      const [id = ''] = await ids(engine, 'ready')
      const moved = await engine.amend({ ids: [id] }, { do: 'move', to: 'elsewhere' }, 'a', bounds)
      expect(moved.changed).toBe(1)
      await engine.amend({ queue: 'elsewhere' }, { do: 'cancel' }, 'a', bounds)
    },
  },
  'forget a batch': { of: ['operator'], act: (engine) => engine.configure('batch', 'sealed', null, 'a') },
  'read the audit': { of: ['operator'], act: (engine) => engine.select('audit', {}, null) },
  'keep schedules': {
    of: [...roles],
    act: async (engine) => {
      const nightly = { task: { payload: '1' }, cron: '0 3 * * *', tz: 'UTC' }
      await engine.configure('schedule', 'q\0nightly', nightly, 'a')
      await engine.configure('schedule', 'q\0nightly', { ...nightly, cron: '0 4 * * *' }, 'a')
      await engine.configure('schedule', 'q\0nightly', null, 'a')
    },
  },
  'lead a type elsewhere': {
    of: ['operator'],
    act: async (engine) => {
      await engine.configure('route', 'q\0q', { to: 'elsewhere' }, 'a')
      await engine.configure('route', 'q\0q', null, 'a')
    },
  },
  'keep limits': {
    of: ['operator'],
    act: async (engine) => {
      await engine.configure('limit', 'spare', { concurrencyMax: 5 }, 'a')
      await engine.configure('limit', 'spare', { concurrencyMax: 6 }, 'a')
      await engine.configure('limit', 'spare', null, 'a')
    },
  },
  'keep tokens': {
    of: ['operator'],
    act: async (engine) => {
      const token = { name: 'ci', hash: 'h', scopes: [], queues: [], expiresAt: null }
      await engine.configure('token', 't', token, 'a')
      await engine.configure('token', 't', null, 'a')
    },
  },
}

/** Every duty with each role: whether it may. */
const cases = Object.entries(duties).flatMap(([duty, { of, act }]) =>
  roles.map((role) => ({ duty, role, may: of.includes(role), act })),
)

it.each(cases.filter(({ may }) => may))('$role may $duty', async ({ role, act }) => {
  await somethingOfEveryKind()
  await act(await as(role))
})

it.each(cases.filter(({ may }) => !may))('$role may not $duty', async ({ role, act }) => {
  await somethingOfEveryKind()
  await expect(act(await as(role))).rejects.toMatchObject({ code: 'PW_STORE_READONLY' })
})

it('lets only workers sweep on their own, who may enqueue what schedules say', async () => {
  const sweeps = []
  for (const role of roles) sweeps.push((await as(role)).traits.sweeps)
  expect(sweeps).toEqual(['store', 'clients', 'store'])
})

it('lets programs of each role run side by side: a producer that sweeps nothing, a worker that drains', async () => {
  const complaints: unknown[] = []
  const hear = (warning: Error) => void complaints.push(warning.message)
  process.on('warning', hear)
  onTestFinished(() => void process.off('warning', hear))
  const [producer, worker] = [await connect(urlOf('producer')), await connect(urlOf('worker'))]
  const tasks = producer.queue<number>('beside')
  await Promise.all(Array.from({ length: 20 }, (_, n) => tasks.enqueue(n, { key: `k${n % 2}`, delayMs: n % 3 })))
  const working = worker.queue<number>('beside').work(() => {})
  expect(await tasks.drained({ waitMs: 20_000 })).toEqual({ dead: 0 })
  await working.stop()
  await worker.close()
  await producer.close()
  expect(complaints).toEqual([])
})
