// Leases on the loop, on a clock moved by hand: extended, lost, cancelled, and what a handler may do to them.
import { describe, expect, it } from 'vitest'
import { PieceworkError } from '../../dist/ground/errors.js'
import type { Delivery } from '../../dist/task/handler.js'
import { type ManualClock, manualClock } from '../../dist/testing/manual-clock.js'
import { aborted, gate, next, openShop, type Shop, several } from './shop.js'

const loop = { heartbeat: 'loop' } as const

/** Lets time pass in small steps, as it does; answers the distinct lease ends that a reader of the task saw. */
async function leaseEnds(shop: Shop, clock: ManualClock, id: string, ms: number): Promise<number[]> {
  const seen = new Set<number>()
  for (let passed = 0; passed < ms; passed += 50) {
    await clock.advance(50)
    const end = (await shop.task(id))?.leaseEndsAt
    if (typeof end === 'number') seen.add(Math.round(end))
  }
  return [...seen]
}

async function manualShop(policy = {}) {
  const clock = manualClock()
  const shop = await openShop({ where: 'memory', clock, policy })
  return { clock, shop }
}

describe('extension', () => {
  it('lease 1 s, handler 4 s: one run, at least three extensions on the record (case 10)', async () => {
    const { clock, shop } = await manualShop({ leaseMs: 1000 })
    const [id] = await shop.enqueue(['long'])
    const { passed, open } = gate()
    let runs = 0
    const worker = shop.work(() => {
      runs++
      return passed
    }, loop)
    const done = next(worker, 'done')
    const ends = await leaseEnds(shop, clock, id!, 4000)
    expect(ends.length).toBeGreaterThanOrEqual(4)
    expect(await shop.engine.sweep(100)).toMatchObject({ expired: 0 })
    open()
    expect(await done).toMatchObject({ id, number: 1 })
    expect(runs).toBe(1)
    expect(await shop.count('deliveries')).toBe(1)
  })

  it('ends with the timeout: no lease reaches more than a second beyond it', async () => {
    const { clock, shop } = await manualShop({ leaseMs: 1000, timeoutMs: 2500, backoff: { baseMs: 3_600_000 } })
    const [id] = await shop.enqueue(['hang'])
    const start = clock.wallMs()
    const worker = shop.work(() => new Promise(() => {}), loop)
    const retry = next(worker, 'retry')
    const ends = await leaseEnds(shop, clock, id!, 2600)
    expect((await retry).error).toMatchObject({ code: 'PW_TIMEOUT' })
    expect(Math.max(...ends) - start).toBeLessThanOrEqual(3501)
    expect(await shop.history(id!)).toMatchObject([{ outcome: 'timeout' }])
  })

  it('covers what was claimed ahead and has not started', async () => {
    const { clock, shop } = await manualShop({ leaseMs: 1000 })
    const [, waiting] = await shop.enqueue(['a', 'b'])
    const { passed, open } = gate()
    const worker = shop.work(() => passed, { ...loop, concurrency: 1, prefetch: 1 })
    const done = several(worker, 'done', 2)
    expect((await leaseEnds(shop, clock, waiting!, 3000)).length).toBeGreaterThanOrEqual(3)
    open()
    await done
    expect(await shop.count('deliveries')).toBe(2)
  })
})

describe('a lease that cannot be extended', () => {
  /** A worker whose extensions fail from now on, its handler running and waiting for its signal or the gate. */
  async function cutOff() {
    const { clock, shop } = await manualShop({ leaseMs: 1000, backoff: { baseMs: 3_600_000 } })
    const [id] = await shop.enqueue(['x'])
    const late = gate()
    const running = gate()
    let signal: AbortSignal | undefined
    const worker = shop.work(
      (_: string, delivery: Delivery) => {
        signal = delivery.signal
        running.open()
        return late.passed
      },
      { ...loop, concurrency: 1 },
    )
    const errors: Error[] = []
    worker.on('error', (error) => errors.push(error))
    await clock.settle()
    await running.passed
    shop.engine.extend = () => Promise.reject(new PieceworkError('PW_STORE_FAILED', 'away'))
    await clock.advance(990)
    expect(signal!.aborted).toBe(false)
    await clock.advance(20)
    return { clock, shop, id: id!, worker, late, signal: signal!, errors }
  }

  it('aborts its handler with PW_LEASE_LOST at its end, and says why', async () => {
    const { signal, errors } = await cutOff()
    expect(signal.reason).toMatchObject({ code: 'PW_LEASE_LOST' })
    expect(errors.length).toBeGreaterThanOrEqual(1)
    for (const error of errors) expect(error).toMatchObject({ code: 'PW_STORE_FAILED' })
  })

  it('a late ack is still accepted while nobody else has the task', async () => {
    const { shop, worker, late, id, clock } = await cutOff()
    await shop.engine.sweep(100)
    const done = next(worker, 'done')
    late.open()
    await clock.settle()
    expect(await done).toMatchObject({ id, number: 1 })
    expect(await shop.count('stale')).toBe(0)
  })

  it('a late ack is stale when another has it, and changes nothing for that one (case 9)', async () => {
    const { shop, worker, late, id, clock } = await cutOff()
    const { engine } = shop
    await engine.sweep(100)
    const wants = [{ queue: 'mail', types: null, max: 1 }]
    const { deliveries } = await engine.claim({ worker: 'other', requestId: null, wants })
    expect(deliveries).toMatchObject([{ id, number: 2 }])
    const stale = next(worker, 'stale')
    late.open()
    await clock.settle()
    expect(await stale).toMatchObject({ id, number: 1 })
    expect(await shop.task(id)).toMatchObject({ state: 'leased', number: 2 })
    const error = { code: null, text: 'mine' }
    const { receipt } = deliveries[0]!
    expect(await engine.settle({ worker: 'other', flush: null }, [{ receipt, do: 'retry', error }])).toEqual([
      'scheduled',
    ])
  })

  it('whose task another took is noticed at the next extension, long before its end', async () => {
    const { clock, shop } = await manualShop({ leaseMs: 10_000 })
    const [id] = await shop.enqueue(['x'])
    let receipt = ''
    const { claim } = shop.engine
    shop.engine.claim = async (ask) => {
      const answer = await claim.call(shop.engine, ask)
      receipt = answer.deliveries[0]?.receipt ?? receipt
      return answer
    }
    const worker = shop.work((_: string, { signal }: Delivery) => aborted(signal), loop)
    await worker.ready
    await clock.settle()
    const release = { receipt, do: 'release', by: 'stop', delayMs: 3_600_000 } as const
    expect(await shop.engine.settle({ worker: 'thief', flush: null }, [release])).toEqual(['scheduled'])
    const stale = next(worker, 'stale')
    await clock.advance(5100)
    expect(await stale).toMatchObject({ id, number: 1 })
    // One extension and one verdict: nobody goes on asking.
    expect(await shop.count('stale')).toBe(2)
  })

  it('a delivery whose lease ended before it could start goes back unstarted', async () => {
    const { clock, shop } = await manualShop({ leaseMs: 1000 })
    const [id] = await shop.enqueue(['x'])
    const { claim } = shop.engine
    let slow = true
    shop.engine.claim = async (ask) => {
      const answer = await claim.call(shop.engine, ask)
      if (slow && answer.deliveries.length > 0) await clock.advance(1500)
      slow = false
      return answer
    }
    let runs = 0
    const worker = shop.work(() => void runs++, loop)
    const done = next(worker, 'done')
    await worker.ready
    await clock.settle()
    await shop.engine.sweep(100)
    await clock.advance(1100)
    expect(await done).toMatchObject({ id, number: 2 })
    expect(runs).toBe(1)
  })
})

describe('cancel', () => {
  const cancel = (shop: Shop, id: string) =>
    shop.engine.amend({ ids: [id] }, { do: 'cancel' }, 'test', { max: 1, dryRun: false })

  it('aborts the running handler with PW_CANCELLED at the next beat; its failure ends the task', async () => {
    const { clock, shop } = await manualShop()
    const [id] = await shop.enqueue(['x'])
    let reason: unknown
    const worker = shop.work((_: string, { signal }: Delivery) => {
      return aborted(signal).catch((error) => {
        reason = error
        throw error
      })
    }, loop)
    await worker.ready
    await clock.settle()
    expect(await cancel(shop, id!)).toMatchObject({ asked: 1 })
    await clock.advance(1100)
    expect(reason).toMatchObject({ code: 'PW_CANCELLED' })
    expect(await shop.task(id!)).toBeUndefined()
    expect(await shop.count('done')).toBe(0)
    expect(worker.health().running).toBe(0)
  })

  it('loses against an ack that comes first', async () => {
    const { clock, shop } = await manualShop()
    const [id] = await shop.enqueue(['x'])
    const { passed, open } = gate()
    const worker = shop.work(() => passed, loop)
    await worker.ready
    await clock.settle()
    await cancel(shop, id!)
    const done = next(worker, 'done')
    open()
    await clock.settle()
    expect(await done).toMatchObject({ id })
  })

  it('of a task claimed ahead: its handler never starts', async () => {
    const { clock, shop } = await manualShop()
    const [, waiting] = await shop.enqueue(['a', 'b'])
    const { passed, open } = gate()
    const seen: string[] = []
    const worker = shop.work(
      (what: string) => {
        seen.push(what)
        return passed
      },
      { ...loop, concurrency: 1, prefetch: 1 },
    )
    await worker.ready
    await clock.settle()
    expect(await cancel(shop, waiting!)).toMatchObject({ asked: 1 })
    await clock.advance(1100)
    open()
    await clock.advance(100)
    expect(seen).toEqual(['a'])
    expect(await shop.task(waiting!)).toBeUndefined()
  })
})

describe('what a handler does to its lease', () => {
  it('extend moves the end it can read, progress is seen, both refuse once it no longer holds', async () => {
    const { clock, shop } = await manualShop({ leaseMs: 10_000, timeoutMs: 60_000 })
    const [id] = await shop.enqueue(['x'])
    const { passed, open } = gate()
    let delivery: Delivery | undefined
    const worker = shop.work((_: string, given: Delivery) => {
      delivery = given
      return passed
    }, loop)
    const done = next(worker, 'done')
    await worker.ready
    await clock.settle()
    const held = delivery!
    const left = () => held.leaseEndsAt.getTime() - clock.wallMs()
    expect(left()).toBeCloseTo(10_000, -1)
    const call = async (promise: Promise<void>) => {
      await clock.settle()
      await promise
    }
    await call(held.extend(45_000))
    expect(left()).toBeCloseTo(45_000, -1)
    expect((await shop.task(id!))!.leaseEndsAt! - clock.wallMs()).toBeCloseTo(45_000, -1)
    await call(held.progress({ done: 3, of: 10 }))
    expect(JSON.parse((await shop.task(id!))!.progress!)).toEqual({ done: 3, of: 10 })
    expect(left()).toBeCloseTo(45_000, -1)
    await expect(held.extend(99)).rejects.toMatchObject({ code: 'PW_OPTION_INVALID' })
    await expect(held.progress(1n)).rejects.toMatchObject({ code: 'PW_PAYLOAD_NOT_JSON' })
    open()
    await clock.settle()
    await done
    await expect(held.extend(1000)).rejects.toMatchObject({ code: 'PW_LEASE_LOST', details: { id } })
    await expect(held.progress(1)).rejects.toMatchObject({ code: 'PW_LEASE_LOST' })
    expect(await shop.count('stale')).toBe(0)
  })

  it('a signal looked at for the first time after the abort is aborted already', async () => {
    const { clock, shop } = await manualShop({ timeoutMs: 1000, backoff: { baseMs: 3_600_000 } })
    await shop.enqueue(['x'])
    let delivery: Delivery | undefined
    const worker = shop.work((_: string, given: Delivery) => {
      delivery = given
      return new Promise(() => {})
    }, loop)
    await worker.ready
    await clock.advance(1100)
    expect(delivery!.signal.aborted).toBe(true)
    expect(delivery!.signal.reason).toMatchObject({ code: 'PW_TIMEOUT' })
    expect(delivery!.signal).toBe(delivery!.signal)
  })
})

describe('a worker that was declared dead', () => {
  it('aborts what it holds, joins again under its name and works on', async () => {
    const { clock, shop } = await manualShop()
    await shop.enqueue(['x'])
    let reason: unknown
    const note = (error: unknown) => {
      reason = error
    }
    const worker = shop.work((what: string, { signal }: Delivery) => {
      return what === 'x' ? aborted(signal).catch(note) : undefined
    }, loop)
    await worker.ready
    await clock.settle()
    const [info] = (await shop.engine.measure(null, false)).workers
    await shop.engine.worker('leave', info!)
    await clock.advance(6000)
    expect(reason).toMatchObject({ code: 'PW_LEASE_LOST' })
    expect((await shop.engine.measure(null, false)).workers).toMatchObject([{ worker: info!.worker, queues: ['mail'] }])
    const done = next(worker, 'done')
    await shop.enqueue(['y'])
    await clock.advance(10)
    expect((await done).number).toBe(1)
  })
})
