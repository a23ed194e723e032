// Stopping: no new claims, unstarted tasks back at once, grace for running ones, and stop() means stopped.
import { describe, expect, it } from 'vitest'
import { pause, systemClock } from '../../dist/ground/clock.js'
import { PieceworkError } from '../../dist/ground/errors.js'
import type { Delivery } from '../../dist/task/handler.js'
import { type ManualClock, manualClock } from '../../dist/testing/manual-clock.js'
import { afterAbortMs } from '../../dist/worker/worker.js'
import { aborted, counter, gate, next, openShop, several } from './shop.js'

const loop = { heartbeat: 'loop' } as const

async function manualShop(policy = {}) {
  const clock = manualClock()
  return { clock, shop: await openShop({ where: 'memory', clock, policy }) }
}

/** Whether a promise has settled by now. */
async function isOver(clock: ManualClock, promise: Promise<unknown>): Promise<boolean> {
  let over = false
  void promise.finally(() => {
    over = true
  })
  await clock.settle()
  return over
}

describe('stop()', () => {
  it('resolves when nothing runs any more, and every verdict is in the store (case 1)', async () => {
    const { clock, shop } = await manualShop()
    await shop.enqueue(['a', 'b'])
    const { passed, open } = gate()
    const worker = shop.work(() => passed, loop)
    await worker.ready
    await clock.settle()
    const stopping = worker.stop()
    expect(worker.stop()).toBe(stopping)
    expect(await isOver(clock, stopping)).toBe(false)
    await clock.advance(20_000)
    expect(await isOver(clock, stopping)).toBe(false)
    expect(worker.health()).toMatchObject({ running: 2, ready: false, live: true })
    open()
    await clock.advance(1)
    await stopping
    expect(await shop.count('done')).toBe(2)
    expect(worker.health().running).toBe(0)
    expect((await shop.engine.measure(null, false)).workers).toEqual([])
  })

  it('claims no more, and gives back at once what it had claimed ahead, uncounted', async () => {
    const { clock, shop } = await manualShop()
    await shop.enqueue(Array.from({ length: 8 }, (_, n) => n))
    const { passed, open } = gate()
    const worker = shop.work(() => passed, { ...loop, concurrency: 2, prefetch: 3 })
    await worker.ready
    await clock.settle()
    expect([await shop.count('leased'), await shop.count('ready')]).toEqual([5, 3])
    const stopping = worker.stop()
    await clock.settle()
    expect([await shop.count('leased'), await shop.count('ready')]).toEqual([2, 6])
    const { deliveries } = await shop.engine.claim({
      worker: 'other',
      requestId: null,
      wants: [{ queue: 'mail', types: null, max: 10 }],
    })
    expect(deliveries.map(({ spent }) => spent)).toEqual([1, 1, 1, 1, 1, 1])
    open()
    await clock.advance(1)
    await stopping
    expect(await shop.count('done')).toBe(2)
  })

  it('awaits the claim in flight and gives its tasks back unstarted', async () => {
    const shop = await openShop({ where: 'memory' })
    const { engine } = shop
    const { claim } = engine
    const asked = gate()
    const answer = gate()
    engine.claim = async (ask) => {
      const claimed = await claim.call(engine, ask)
      asked.open()
      await answer.passed
      return claimed
    }
    const ids = await shop.enqueue(['a', 'b'])
    let runs = 0
    const worker = shop.work(() => void runs++)
    await asked.passed
    const stopping = worker.stop()
    expect(await shop.count('leased')).toBe(2)
    answer.open()
    await stopping
    expect(runs).toBe(0)
    for (const id of ids) expect(await shop.task(id)).toMatchObject({ state: 'ready', spent: 0, number: 1 })
  })

  it('past the grace time aborts with PW_STOPPING; what fails then is released, what returns is done', async () => {
    const { clock, shop } = await manualShop()
    const [obeys, finishes, buries] = await shop.enqueue(['obeys', 'finishes', 'buries'])
    const reasons: unknown[] = []
    const worker = shop.work(async (what: string, { signal }: Delivery) => {
      const reason = await aborted(signal).catch((error: unknown) => error)
      reasons.push(reason)
      if (what === 'obeys') throw new Error('cut off')
      if (what === 'buries') throw Object.assign(new Error('hopeless'), { name: 'Bury' })
    }, loop)
    const events = Promise.all([next(worker, 'released'), next(worker, 'done'), next(worker, 'dead')])
    await worker.ready
    await clock.settle()
    const stopping = worker.stop({ graceMs: 1000 })
    await clock.advance(999)
    expect(reasons).toEqual([])
    await clock.advance(2)
    await stopping
    expect(reasons).toMatchObject(Array.from({ length: 3 }, () => ({ code: 'PW_STOPPING' })))
    expect(await events).toMatchObject([{ id: obeys, by: 'stop' }, { id: finishes }, { id: buries }])
    expect(await shop.task(obeys!)).toMatchObject({ state: 'ready', spent: 0, number: 1 })
    expect(await shop.task(buries!)).toMatchObject({ state: 'dead' })
  })

  it('releases what ignores its signal after a moment, and resolves; what comes later is told as stale', async () => {
    const { clock, shop } = await manualShop()
    const [returns, fails] = await shop.enqueue(['returns', 'fails'])
    const late = gate()
    const worker = shop.work(async (what: string) => {
      await late.passed
      if (what === 'fails') throw new Error('too late')
    }, loop)
    await worker.ready
    await clock.settle()
    const stopping = worker.stop({ graceMs: 100 })
    await clock.advance(100 + afterAbortMs - 1)
    expect(await isOver(clock, stopping)).toBe(false)
    await clock.advance(2)
    expect(await isOver(clock, stopping)).toBe(true)
    expect(await shop.task(returns!)).toMatchObject({ state: 'ready', spent: 0 })
    const events = Promise.all([next(worker, 'stale'), next(worker, 'error')])
    late.open()
    expect(await events).toMatchObject([{ id: returns }, { code: 'PW_STRAY_ERROR', details: { id: fails } }])
    expect(await shop.count('stale')).toBe(0)
  })

  it('a second stop with less patience shortens the grace', async () => {
    const { clock, shop } = await manualShop()
    await shop.enqueue(['x'])
    const worker = shop.work((_: string, { signal }: Delivery) => aborted(signal), loop)
    await worker.ready
    await clock.settle()
    const stopping = worker.stop()
    await clock.advance(10)
    expect(worker.stop({ graceMs: 0 })).toBe(stopping)
    expect(await isOver(clock, stopping)).toBe(true)
  })

  it('of a worker whose handlers all hang', async () => {
    const { clock, shop } = await manualShop({ timeoutMs: 1000, backoff: { baseMs: 3_600_000 } })
    await shop.enqueue(['x'])
    const worker = shop.work(() => new Promise(() => {}), { ...loop, concurrency: 1 })
    worker.on('error', () => {})
    await worker.ready
    await clock.advance(1500)
    expect(worker.health().live).toBe(false)
    const stopping = worker.stop({ graceMs: 50 })
    await clock.advance(50 + afterAbortMs + 1)
    expect(await isOver(clock, stopping)).toBe(true)
  })

  it('of a worker whose store does not answer any more', async () => {
    const { clock, shop } = await manualShop()
    await shop.enqueue(['x'])
    const worker = shop.work(() => {}, loop)
    worker.on('error', () => {})
    shop.engine.settle = () => Promise.reject(new PieceworkError('PW_BUSY', 'locked'))
    await worker.ready
    await clock.advance(100)
    const stopping = worker.stop({ graceMs: 1000 })
    await clock.advance(3000)
    expect(await isOver(clock, stopping)).toBe(false)
    await clock.advance(5000)
    expect(await isOver(clock, stopping)).toBe(true)
  })

  it('leaves no timer behind, and asks nothing of the store afterwards', async () => {
    const { clock, shop } = await manualShop()
    await shop.enqueue(['x'])
    const worker = shop.work(() => {}, loop)
    await next(worker, 'done')
    const stopping = worker.stop()
    await clock.advance(1)
    await stopping
    expect(clock.pending).toBe(0)
    shop.engine.claim = () => Promise.reject(new Error('claimed after stop'))
    const errors: Error[] = []
    worker.on('error', (error) => errors.push(error))
    await clock.advance(5000)
    expect(errors).toEqual([])
  })

  it('is what `await using` calls', async () => {
    const shop = await openShop({ where: 'memory' })
    const worker = shop.work(() => {})
    await worker.ready
    await worker[Symbol.asyncDispose]()
    expect(worker.health()).toMatchObject({ ready: false })
    expect((await shop.engine.measure(null, false)).workers).toEqual([])
  })
})

describe('ready', () => {
  it('resolves once it has joined; the store knows who it is', async () => {
    const shop = await openShop({ where: 'file' })
    const worker = shop.work(() => {}, { concurrency: 3 })
    expect(worker.health()).toMatchObject({ live: true, ready: false, lastClaimAt: null })
    await worker.ready
    expect(worker.health().ready).toBe(true)
    const { workers } = await shop.engine.measure(null, false)
    expect(workers).toMatchObject([{ pid: process.pid, bootId: systemClock.bootId, queues: ['mail'], concurrency: 3 }])
    expect(workers[0]!.worker).toContain(`-${process.pid}-`)
  })

  it('rejects with the refusal of the queue, is told as an error, and stop() still resolves', async () => {
    const shop = await openShop({ where: 'memory' })
    const refusal = new PieceworkError('PW_POLICY_CHANGED', 'no')
    let stopped = 0
    const worker = shop.work(() => {}, { prepared: Promise.reject(refusal), stopped: () => stopped++ })
    const error = next(worker, 'error')
    await expect(worker.ready).rejects.toBe(refusal)
    expect(await error).toBe(refusal)
    expect(worker.health()).toMatchObject({ live: false, ready: false })
    await worker.stop()
    expect(stopped).toBe(1)
  })

  it('a worker stopped before its queue was prepared never joins', async () => {
    const shop = await openShop({ where: 'memory' })
    const worker = shop.work(() => {}, { prepared: new Promise(() => {}) })
    const errors: Error[] = []
    worker.on('error', (error) => errors.push(error))
    await worker.stop()
    await expect(worker.ready).rejects.toMatchObject({ code: 'PW_STOPPING' })
    expect(errors).toEqual([])
  })

  it('joins as soon as a busy store lets it', async () => {
    const clock = manualClock()
    const shop = await openShop({ where: 'memory', clock })
    const { engine } = shop
    const call = engine.worker
    let tries = 0
    engine.worker = (event, info) =>
      ++tries <= 2 ? Promise.reject(new PieceworkError('PW_BUSY', 'locked')) : call.call(engine, event, info)
    const worker = shop.work(() => {}, loop)
    const errors = several(worker, 'error', 2)
    await clock.advance(200)
    await worker.ready
    expect(await errors).toMatchObject([{ code: 'PW_BUSY' }, { code: 'PW_BUSY' }])
  })
})

describe('signals', () => {
  const listeners = () => process.listenerCount('SIGTERM') + process.listenerCount('SIGINT')

  it('are listened to only when asked, and no longer than until it has stopped', async () => {
    const shop = await openShop({ where: 'memory' })
    const before = listeners()
    const silent = shop.work(() => {})
    expect(listeners()).toBe(before)
    const worker = shop.work(() => {}, { stopOn: ['SIGTERM', 'SIGINT'] })
    expect(listeners()).toBe(before + 2)
    const others = Array.from({ length: 12 }, () => shop.work(() => {}, { stopOn: ['SIGTERM'] }))
    expect(listeners()).toBe(before + 2)
    await worker.stop()
    expect(listeners()).toBe(before + 1)
    await Promise.all(others.map((other) => other.stop()))
    expect(listeners()).toBe(before)
    await silent.stop()
  })

  it('the first stops gracefully, the second ends the grace', async () => {
    const shop = await openShop({ where: 'memory' })
    const [a, b] = await shop.enqueue(['a', 'b'])
    const both = counter(2)
    const first = gate()
    const worker = shop.work(
      (what: string, { signal }: Delivery) => {
        both.pass()
        return what === 'a' ? first.passed : aborted(signal)
      },
      { stopOn: ['SIGUSR2'], graceMs: 3_600_000 },
    )
    await both.all
    const done = next(worker, 'done')
    const released = next(worker, 'released')
    process.kill(process.pid, 'SIGUSR2')
    while (worker.health().ready) await pause(systemClock, 1)
    first.open()
    expect((await done).id).toBe(a)
    process.kill(process.pid, 'SIGUSR2')
    expect(await released).toMatchObject({ id: b, by: 'stop' })
    await worker.stop()
  })
})
