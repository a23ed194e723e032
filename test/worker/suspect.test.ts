// Suspects: a task whose workers died twice runs alone, and its neighbours wait for it.
import { describe, expect, it } from 'vitest'
import type { WorkerInfo } from '../../dist/engine/contract.js'
import type { Delivery } from '../../dist/task/handler.js'
import { type ManualClock, manualClock } from '../../dist/testing/manual-clock.js'
import { gate, next, openShop, queue, type Shop, several } from './shop.js'

const loop = { heartbeat: 'loop' } as const

/** A shop in which workers die when told to: their proof is their name. */
async function mortalShop(policy = {}) {
  const clock = manualClock()
  const dead = new Set<string>()
  let joining = ''
  const liveness = {
    hold: () => joining,
    isDead: (proof: string) => dead.has(proof),
    held: null,
    drop() {},
    clear() {},
  }
  const shop = await openShop({ where: 'memory', clock, liveness, policy })
  const { worker } = shop.engine
  shop.engine.worker = (event, info) => {
    joining = info.worker
    return worker.call(shop.engine, event, info)
  }
  return { shop, clock, die: (name: string) => dead.add(name) }
}

const hand = (worker: string): WorkerInfo => ({
  worker,
  host: 'here',
  pid: 1,
  bootId: 'boot-1',
  queues: [queue],
  concurrency: 1,
  busy: 0,
  prefetched: 0,
  proof: null,
})

/** Has the ready task claimed by workers that die over it, so many times. */
async function kill({ engine }: Shop, die: (name: string) => void, times: number, from = 0): Promise<void> {
  for (let n = from; n < from + times; n++) {
    const info = hand(`mortal ${n}`)
    await engine.worker('join', info)
    const wants = [{ queue, types: null, max: 1 }]
    expect((await engine.claim({ worker: info.worker, requestId: null, wants })).deliveries).toHaveLength(1)
    die(info.worker)
    expect(await engine.sweep(100)).toMatchObject({ died: 1 })
  }
}

/** A suspect behind `ahead` urgent tasks, which a worker takes first. */
async function withSuspect(ahead: readonly string[]) {
  const { shop, clock, die } = await mortalShop()
  const [id] = await shop.enqueue(['suspect'])
  await kill(shop, die, 2)
  await shop.enqueue(ahead, { priority: 100 })
  return { shop, clock, id: id! }
}

describe('two kills', () => {
  it('then success: done at delivery 3, with two lost workers in its history (case 3)', async () => {
    const { shop, id } = await withSuspect([])
    expect((await shop.history(id)).map(({ number, outcome }) => [number, outcome])).toEqual([
      [1, 'died'],
      [2, 'died'],
    ])
    expect(
      await next(
        shop.work(() => {}, loop),
        'done',
      ),
    ).toMatchObject({ id, number: 3 })
  })

  it('and no end of them: dead at delivery N with N rows that say so (case 3)', async () => {
    const { shop, die } = await mortalShop({ deliveriesMax: 4 })
    const [id] = await shop.enqueue(['x'])
    await kill(shop, die, 4)
    expect(await shop.task(id!)).toMatchObject({ state: 'dead' })
    expect((await shop.history(id!)).map(({ outcome }) => outcome)).toEqual(['died', 'died', 'died', 'died'])
  })
})

describe('a suspect', () => {
  it('waits for what runs, keeps everything else away while it runs, then work goes on', async () => {
    const { shop, clock, id } = await withSuspect(['a', 'b'])
    const gates = { a: gate(), b: gate(), suspect: gate() }
    const order: string[] = []
    let running = 0
    const beside: number[] = []
    const worker = shop.work(
      async (what: 'a' | 'b' | 'suspect' | 'more') => {
        order.push(what)
        running++
        if (what === 'suspect') beside.push(running)
        if (what !== 'more') await gates[what].passed
        if (what === 'suspect') beside.push(running)
        running--
      },
      { ...loop, concurrency: 5 },
    )
    const done = several(worker, 'done', 6)
    await worker.ready
    await clock.settle()
    await shop.enqueue(['more', 'more', 'more'], { priority: 100 })
    gates.a.open()
    await clock.advance(1000)
    expect(order.sort()).toEqual(['a', 'b'])
    expect(await shop.task(id)).toMatchObject({ state: 'leased', number: 3 })
    gates.b.open()
    await clock.advance(1000)
    expect(order).toContain('suspect')
    expect(order).not.toContain('more')
    gates.suspect.open()
    await clock.advance(1000)
    await done
    expect(beside).toEqual([1, 1])
  })

  it('starts when the grace time has passed, whatever still runs, and its lease is kept meanwhile', async () => {
    const { shop, clock, id } = await withSuspect(['hangs'])
    const seen: string[] = []
    const worker = shop.work(
      (what: string) => {
        seen.push(what)
        return what === 'hangs' ? new Promise(() => {}) : undefined
      },
      { ...loop, concurrency: 3, graceMs: 60_000 },
    )
    const done = next(worker, 'done')
    await worker.ready
    await clock.advance(59_000)
    expect(seen).toEqual(['hangs'])
    await clock.advance(2000)
    expect(seen).toEqual(['hangs', 'suspect'])
    expect(await done).toMatchObject({ id, number: 3 })
  })

  it('has the other workers of its process pause and give back what they had claimed ahead', async () => {
    const { shop, clock, id } = await withSuspect(['a', 'b', 'c'])
    const open = { a: gate(), suspect: gate() }
    const seen: string[] = []
    const handler = (what: string, delivery: Delivery) => {
      seen.push(what)
      if (delivery.id === id) return open.suspect.passed
      return what === 'a' ? open.a.passed : undefined
    }
    const first = shop.work(handler, { ...loop, concurrency: 1, prefetch: 2 })
    await first.ready
    await clock.settle()
    expect(await shop.count('leased')).toBe(3)
    const second = shop.work(handler, { ...loop, concurrency: 1 })
    await second.ready
    await clock.settle()
    // The second one has the suspect; b and c went back, and nobody takes them.
    expect(await shop.task(id)).toMatchObject({ state: 'leased', number: 3 })
    expect([await shop.count('leased'), await shop.count('ready')]).toEqual([2, 2])
    open.a.open()
    await clock.advance(100)
    expect(seen).toEqual(['a', 'suspect'])
    const rest = Promise.all([next(second, 'done'), several(first, 'done', 1)])
    open.suspect.open()
    await clock.advance(100)
    await rest
    expect(seen.sort()).toEqual(['a', 'b', 'c', 'suspect'])
    expect(await shop.count('done')).toBe(4)
  })

  it('that still waits when its worker stops goes back uncounted', async () => {
    const { shop, clock, id } = await withSuspect(['a'])
    const { passed, open } = gate()
    const worker = shop.work(() => passed, { ...loop, concurrency: 2 })
    await worker.ready
    await clock.settle()
    const stopping = worker.stop()
    await clock.settle()
    expect(await shop.task(id)).toMatchObject({ state: 'ready', spent: 2, number: 3 })
    open()
    await clock.advance(1)
    await stopping
    const other = shop.work(() => {}, loop)
    await advanceUntil(clock, next(other, 'done'))
  })

  it('that hangs past its timeout keeps nobody waiting any longer', async () => {
    const { shop, clock, die } = await mortalShop({ timeoutMs: 5000, backoff: { baseMs: 3_600_000, jitter: 'none' } })
    await shop.enqueue(['hangs'])
    await kill(shop, die, 2)
    await shop.enqueue(['quick'])
    const handler = (what: string) => (what === 'hangs' ? new Promise(() => {}) : undefined)
    const worker = shop.work(handler, { ...loop, concurrency: 2 })
    const retry = next(worker, 'retry')
    const done = next(worker, 'done')
    await worker.ready
    await clock.advance(4900)
    expect(await shop.count('ready')).toBe(1)
    await clock.advance(200)
    expect(await retry).toMatchObject({ number: 3, error: { code: 'PW_TIMEOUT' } })
    expect((await done).number).toBe(1)
  })

  it('two suspects take turns', async () => {
    const { shop, clock, die } = await mortalShop()
    await shop.enqueue(['first'])
    await kill(shop, die, 2)
    await shop.enqueue(['second'], { priority: 1 })
    await kill(shop, die, 2, 2)
    let running = 0
    let most = 0
    const handler = async () => {
      most = Math.max(most, ++running)
      await clock.settle()
      running--
    }
    const done = [shop.work(handler, loop), shop.work(handler, loop)].map((worker) => several(worker, 'done', 1))
    await advanceUntil(clock, Promise.race(done))
    await clock.advance(2000)
    expect(await shop.count('done')).toBe(2)
    expect(most).toBe(1)
  })
})

/** Lets time pass until the promise has settled. */
async function advanceUntil(clock: ManualClock, promise: Promise<unknown>): Promise<void> {
  let over = false
  void promise.then(() => {
    over = true
  })
  for (let steps = 0; !over; steps++) {
    expect(steps).toBeLessThan(1000)
    await clock.advance(10)
  }
}
