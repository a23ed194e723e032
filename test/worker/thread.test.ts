// The heartbeat from a thread, in real time: a blocked event loop loses no lease, and cannot keep what it should not.
import { describe, expect, it } from 'vitest'
import { pause, systemClock } from '../../dist/ground/clock.js'
import type { Delivery } from '../../dist/task/handler.js'
import { aborted, block, counter, gate, next, openRival, openShop, several } from './shop.js'

const file = { where: 'file' } as const
const delayed = { baseMs: 3_600_000, jitter: 'none' } as const

describe('a handler that blocks the loop', () => {
  it('for three lease lengths runs once and is accepted; on the loop it would lose its lease (case 4)', async () => {
    const shop = await openShop({ ...file, policy: { leaseMs: 800 } })
    const rival = await openRival(shop.url)
    const [id] = await shop.enqueue(['busy'])
    let runs = 0
    const worker = shop.work(() => {
      runs++
      rival.go()
      block(2500)
    })
    expect(await next(worker, 'done')).toMatchObject({ id, number: 1 })
    expect(runs).toBe(1)
    expect(await rival.stop()).toEqual([])
    expect(await shop.count('expiries')).toBe(0)
  })

  it('the same on the loop: the rival gets the task, so this test can see a lost lease', async () => {
    const shop = await openShop({ ...file, policy: { leaseMs: 800 } })
    const rival = await openRival(shop.url)
    const [id] = await shop.enqueue(['busy'])
    const worker = shop.work(
      () => {
        rival.go()
        block(2500)
      },
      { heartbeat: 'loop' },
    )
    expect(await next(worker, 'stale')).toMatchObject({ id, number: 1 })
    expect((await rival.stop())[0]).toMatchObject({ id, number: 2 })
  })

  it('does not cost a finished neighbour its lease, whose ack cannot be sent meanwhile', async () => {
    const shop = await openShop({ ...file, policy: { leaseMs: 800 } })
    const rival = await openRival(shop.url)
    await shop.enqueue(['quick', 'busy'])
    const worker = shop.work((what: string) => {
      if (what === 'quick') return
      rival.go()
      block(2500)
    })
    const done = await several(worker, 'done', 2)
    expect(done.map(({ number }) => number)).toEqual([1, 1])
    expect(await rival.stop()).toEqual([])
    expect(await shop.count('expiries')).toBe(0)
  })

  it('past timeoutMs loses its task to the thread, while it still blocks', async () => {
    const policy = { leaseMs: 800, timeoutMs: 400, backoff: delayed }
    const shop = await openShop({ ...file, policy })
    const [id] = await shop.enqueue(['busy'])
    let unblockedAt = 0
    let reason: unknown
    const worker = shop.work(async (what: string, { signal }: Delivery) => {
      if (what !== 'busy') return
      block(1500)
      unblockedAt = systemClock.wallMs()
      await aborted(signal).catch((error) => {
        reason = error
      })
    })
    const stale = next(worker, 'stale')
    expect(await next(worker, 'retry')).toMatchObject({ id, number: 1, error: { code: 'PW_TIMEOUT' } })
    expect(await stale).toMatchObject({ id, number: 1 })
    expect(reason).toMatchObject({ code: 'PW_TIMEOUT' })
    const history = await shop.history(id!)
    expect(history).toMatchObject([{ number: 1, outcome: 'timeout', code: 'PW_TIMEOUT' }])
    expect(history[0]!.endedAt).toBeLessThan(unblockedAt - 400)
    expect(await shop.count('stale')).toBe(0)
    expect(worker.health()).toMatchObject({ live: true, running: 0 })
    const done = next(worker, 'done')
    await shop.enqueue(['quick'])
    expect((await done).number).toBe(1)
  })

  it('a plain function that blocks past timeoutMs: its return is stale, and the slot is back', async () => {
    const shop = await openShop({ ...file, policy: { leaseMs: 800, timeoutMs: 300, backoff: delayed } })
    const [id] = await shop.enqueue(['busy'])
    const worker = shop.work((what: string) => what === 'busy' && block(1200), { concurrency: 1 })
    const retry = next(worker, 'retry')
    expect(await next(worker, 'stale')).toMatchObject({ id, number: 1 })
    expect(await retry).toMatchObject({ id, error: { code: 'PW_TIMEOUT' } })
    const done = next(worker, 'done')
    await shop.enqueue(['quick'])
    await done
    expect(await shop.count('stale')).toBe(0)
  })

  it('does not keep what was claimed ahead: the thread gives it back, uncounted', async () => {
    const shop = await openShop(file)
    const rival = await openRival(shop.url)
    await shop.enqueue(Array.from({ length: 500 }, () => 'quick'))
    let seen = 0
    const worker = shop.work(
      (what: string) => {
        if (what === 'quick') return void seen++
        rival.go()
        block(2500)
      },
      { concurrency: 1 },
    )
    await several(worker, 'done', 500)
    const busy = next(worker, 'done')
    const ids = await shop.enqueue(['busy', ...Array.from({ length: 20 }, () => 'quick')])
    const { id, runMs } = await busy
    expect(id).toBe(ids[0])
    const unblockedAt = systemClock.monotonicMs()
    const taken = await rival.stop()
    // The rival also gets what was never claimed ahead: only second deliveries are proof.
    const returned = taken.filter(({ number }) => number === 2)
    expect(returned.length).toBeGreaterThan(0)
    for (const { at } of returned) expect(at).toBeLessThan(unblockedAt - runMs + 2000)
    expect(await shop.count('expiries')).toBe(0)
    expect(seen).toBe(500)
  })
})

describe('where the thread cannot help', () => {
  it('because it failed: that is told, and the loop keeps the leases', async () => {
    const shop = await openShop({ ...file, policy: { leaseMs: 600 } })
    const { engine } = shop
    engine.descriptor = () => ({ engine: 'sqlite', file: `${shop.url.slice('sqlite:'.length)}-gone`, create: false })
    const rival = await openRival(shop.url)
    const [id] = await shop.enqueue(['x'])
    const worker = shop.work(async () => {
      rival.go()
      await pause(systemClock, 2000)
    })
    const done = next(worker, 'done')
    expect(await next(worker, 'error')).toMatchObject({ code: 'PW_STORE_MISSING' })
    await worker.ready
    expect(await done).toMatchObject({ id, number: 1 })
    expect(await rival.stop()).toEqual([])
  })

  it('because the receipts do not fit on the board: the loop keeps the leases', async () => {
    const shop = await openShop({ ...file, policy: { leaseMs: 600 } })
    const { engine } = shop
    const { claim, extend, settle } = engine
    const long = (receipt: string) => receipt.padEnd(200, '#')
    const short = <T extends { receipt: string }>(asks: readonly T[]) =>
      asks.map((ask) => ({ ...ask, receipt: ask.receipt.replace(/#+$/, '') }))
    engine.claim = async (ask) => {
      const claimed = await claim.call(engine, ask)
      return { ...claimed, deliveries: claimed.deliveries.map((one) => ({ ...one, receipt: long(one.receipt) })) }
    }
    let extensions = 0
    engine.extend = (name, asks) => {
      extensions += asks.length
      return extend.call(engine, name, short(asks))
    }
    engine.settle = (by, verdicts) => settle.call(engine, by, short(verdicts))
    const rival = await openRival(shop.url)
    const [id] = await shop.enqueue(['x'])
    const worker = shop.work(async () => {
      rival.go()
      await pause(systemClock, 2000)
    })
    expect(await next(worker, 'done')).toMatchObject({ id, number: 1 })
    expect(extensions).toBeGreaterThanOrEqual(3)
    expect(await rival.stop()).toEqual([])
  })
})

describe('the thread', () => {
  it('extends a lease of 1 s while a handler waits 4 s: one run, at least three extensions (case 10)', async () => {
    const shop = await openShop({ ...file, policy: { leaseMs: 1000 } })
    const rival = await openRival(shop.url)
    const [id] = await shop.enqueue(['long'])
    const ends = new Set<number>()
    const worker = shop.work(async () => {
      rival.go()
      const until = systemClock.monotonicMs() + 4000
      while (systemClock.monotonicMs() < until) {
        ends.add(Math.round((await shop.task(id!))!.leaseEndsAt!))
        await pause(systemClock, 50)
      }
    })
    expect(await next(worker, 'done')).toMatchObject({ id, number: 1 })
    expect(ends.size).toBeGreaterThanOrEqual(4)
    expect(await rival.stop()).toEqual([])
  })

  it('beats for the worker, hears of cancelled tasks, and tells the handler its new lease end', async () => {
    const shop = await openShop({ ...file, policy: { leaseMs: 600 } })
    const [id] = await shop.enqueue(['x'])
    const started = gate()
    let delivery: Delivery | undefined
    const worker = shop.work((_: string, given: Delivery) => {
      delivery = given
      started.open()
      return aborted(given.signal)
    })
    await started.passed
    const firstEnd = delivery!.leaseEndsAt.getTime()
    await shop.engine.amend({ ids: [id!] }, { do: 'cancel' }, 'test', { max: 1, dryRun: false })
    const error = await aborted(delivery!.signal).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'PW_CANCELLED' })
    expect(delivery!.leaseEndsAt.getTime()).toBeGreaterThan(firstEnd + 100)
    await worker.stop()
    expect(await shop.task(id!)).toBeUndefined()
  })

  it('two workers of one store share it, and it ends with the last of them', async () => {
    const shop = await openShop({ ...file, policy: { leaseMs: 1000 } })
    await shop.enqueue(['a', 'b'])
    const { passed, open } = gate()
    const both = counter(2)
    const handler = () => {
      both.pass()
      return passed
    }
    const first = shop.work(handler, { concurrency: 1 })
    const second = shop.work(handler, { concurrency: 1 })
    await Promise.all([first.ready, second.ready, both.all])
    const threads = () => process.getActiveResourcesInfo().filter((name) => name === 'MessagePort').length
    const before = threads()
    const done = next(first, 'done')
    block(2200)
    open()
    await done
    await first.stop()
    const more = next(second, 'done')
    await shop.enqueue(['c'])
    expect(await more).toMatchObject({ number: 1 })
    await second.stop()
    expect(threads()).toBeLessThanOrEqual(before)
    expect(await shop.count('expiries')).toBe(0)
    const third = shop.work(() => block(1500))
    const last = next(third, 'done')
    await shop.enqueue(['d'])
    expect(await last).toMatchObject({ number: 1 })
  })
})
