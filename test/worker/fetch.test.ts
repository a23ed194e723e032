// Claiming on demand: how many, when, and what an engine that fails or loses answers does to it.
import { describe, expect, it } from 'vitest'
import type { ClaimAsk, Claimed } from '../../dist/engine/contract.js'
import { pause, systemClock } from '../../dist/ground/clock.js'
import { PieceworkError } from '../../dist/ground/errors.js'
import type { Delivery } from '../../dist/task/handler.js'
import { manualClock } from '../../dist/testing/manual-clock.js'
import { counter, gate, next, openShop, type Shop, several } from './shop.js'

/** Notes every claim and settle, and how many claims were in flight at once. */
function watch({ engine }: Shop, claiming = () => {}) {
  const seen = { asks: [] as ClaimAsk[], answers: [] as number[], settles: [] as number[], inFlightMax: 0, order: '' }
  let inFlight = 0
  const { claim, settle } = engine
  engine.claim = async (ask) => {
    seen.asks.push(ask)
    seen.order += 'c'
    claiming()
    seen.inFlightMax = Math.max(seen.inFlightMax, ++inFlight)
    const answer = await claim.call(engine, ask)
    inFlight--
    seen.answers.push(answer.deliveries.length)
    return answer
  }
  engine.settle = (by, verdicts, tx) => {
    seen.settles.push(verdicts.length)
    seen.order += 's'
    systemClock.soon(() => {
      if (!seen.order.endsWith('|')) seen.order += '|'
    })
    return settle.call(engine, by, verdicts, tx)
  }
  return seen
}

describe('demand', () => {
  it('never runs more than its slots, and never has two claims in flight', async () => {
    const shop = await openShop({ where: 'memory' })
    const seen = watch(shop)
    let running = 0
    let most = 0
    await shop.enqueue(Array.from({ length: 300 }, (_, n) => n))
    const worker = shop.work(
      async (n: number) => {
        most = Math.max(most, ++running)
        await new Promise<void>((resolve) => systemClock.after(n % 4, resolve, true))
        running--
      },
      { concurrency: 7 },
    )
    await several(worker, 'done', 300)
    expect(most).toBe(7)
    expect(seen.inFlightMax).toBe(1)
    expect(seen.asks[0]!.wants).toEqual([{ queue: 'mail', types: null, max: 7 }])
  })

  it('asks for nothing while every slot is busy with work that has not been measured', async () => {
    const shop = await openShop({ where: 'memory' })
    const seen = watch(shop)
    const started = counter(3)
    const { passed, open } = gate()
    await shop.enqueue(Array.from({ length: 10 }, (_, n) => n))
    const worker = shop.work(
      () => {
        started.pass()
        return passed
      },
      { concurrency: 3 },
    )
    await started.all
    expect(seen.asks.map(({ wants }) => wants[0]!.max)).toEqual([3])
    expect(await shop.count('ready')).toBe(7)
    open()
    await several(worker, 'done', 10)
  })

  it('claims ahead of quick work, and settles and claims in one turn', async () => {
    // A run takes 2 µs of this clock, a claim 1 ms.
    let now = 1000
    const clock = { ...systemClock, monotonicMs: () => (now += 0.002) }
    const shop = await openShop({ where: 'memory', clock })
    const seen = watch(shop, () => {
      now += 1
    })
    await shop.enqueue(Array.from({ length: 1000 }, (_, n) => n))
    const worker = shop.work(async () => {}, { concurrency: 4, heartbeat: 'loop' })
    await several(worker, 'done', 1000)
    const asks = seen.asks.map(({ wants }) => wants[0]!.max)
    expect(asks[0]).toBe(4)
    expect(asks[1]).toBeGreaterThan(100)
    expect(asks.length).toBeLessThan(12)
    expect(seen.order).toMatch(/^c(sc\|)+$/)
  })

  it('claims a fixed number ahead when told so', async () => {
    const shop = await openShop({ where: 'memory' })
    const seen = watch(shop)
    const started = counter(2)
    const { passed, open } = gate()
    await shop.enqueue(Array.from({ length: 10 }, (_, n) => n))
    const worker = shop.work(
      () => {
        started.pass()
        return passed
      },
      { concurrency: 2, prefetch: 5 },
    )
    await started.all
    expect(seen.answers).toEqual([7])
    expect(await shop.count('leased')).toBe(7)
    open()
    await several(worker, 'done', 10)
  })

  it('one slot without retries is first in, first out', async () => {
    const shop = await openShop({ where: 'memory' })
    const numbers = Array.from({ length: 500 }, (_, n) => n)
    const seen: number[] = []
    await shop.enqueue(numbers)
    await several(
      shop.work(async (n: number) => void seen.push(n), { concurrency: 1 }),
      'done',
      500,
    )
    expect(seen).toEqual(numbers)
  })

  it('claims only the types it has handlers for, and the fallback takes the rest', async () => {
    const shop = await openShop({ where: 'memory' })
    for (const type of ['a', 'b', 'c']) await shop.enqueue([type], { type })
    const seen: string[] = []
    const narrow = shop.work({ a: (x: string) => void seen.push(`narrow ${x}`) })
    await next(narrow, 'done')
    await narrow.stop()
    expect(await shop.count('ready')).toBe(2)
    const wide = shop.work({ b: (x: string) => void seen.push(`b ${x}`), '*': (x: string) => void seen.push(`* ${x}`) })
    await several(wide, 'done', 2)
    expect(seen.sort()).toEqual(['* c', 'b b', 'narrow a'])
  })
})

describe('what was claimed ahead', () => {
  it('goes back, uncounted, when slow work has taken the slots', async () => {
    const shop = await openShop({ where: 'memory' })
    const { passed, open } = gate()
    await shop.enqueue(Array.from({ length: 100 }, () => 'quick'))
    const worker = shop.work((what: string) => (what === 'slow' ? passed : undefined), { concurrency: 2 })
    await several(worker, 'done', 100)
    await shop.enqueue(['slow', 'slow', ...Array.from({ length: 20 }, () => 'quick')])
    // The two slow ones hold both slots; another worker gets the quick ones without waiting for a lease to end.
    const other = shop.work((what: string) => (what === 'slow' ? passed : undefined))
    const done = await several(other, 'done', 20)
    expect(done.every(({ number }) => number <= 2)).toBe(true)
    expect(await shop.count('expiries')).toBe(0)
    expect(worker.health().running).toBe(2)
    open()
  })

  it('is not claimed again while the same slow work holds the slots, however long a claim takes', async () => {
    const clock = manualClock()
    const shop = await openShop({ where: 'memory', clock })
    const claim = shop.engine.claim.bind(shop.engine)
    shop.engine.claim = async (ask) => {
      await pause(clock, 100)
      return claim(ask)
    }
    const { passed, open } = gate()
    await shop.enqueue(Array.from({ length: 100 }, () => 'quick'))
    const worker = shop.work((what: string) => (what === 'slow' ? passed : pause(clock, 1)), {
      concurrency: 10,
      heartbeat: 'loop',
    })
    const warm = several(worker, 'done', 100)
    await clock.advance(5000)
    await warm
    await shop.enqueue(Array.from({ length: 10 }, () => 'slow'))
    const ids = await shop.enqueue(Array.from({ length: 20 }, () => 'quick'))
    await clock.advance(10_000)
    expect(worker.health().running).toBe(10)
    const numbers = (await Promise.all(ids.map((id) => shop.task(id)))).map((task) => task?.number ?? 0)
    expect(Math.max(...numbers)).toBe(1)
    const rest = several(worker, 'done', 30)
    open()
    await clock.advance(5000)
    await rest
  })
})

describe('the event loop', () => {
  it('gets its turn while many plain functions run', async () => {
    const shop = await openShop({ where: 'memory' })
    await shop.enqueue(Array.from({ length: 150 }, (_, n) => n))
    let turns = 0
    let running = true
    const turn = () => {
      turns++
      if (running) systemClock.soon(turn)
    }
    const worker = shop.work(
      () => {
        const until = systemClock.monotonicMs() + 2
        while (systemClock.monotonicMs() < until);
      },
      { prefetch: 200 },
    )
    turn()
    await several(worker, 'done', 150)
    running = false
    expect(turns).toBeGreaterThan(20)
  })
})

describe('waiting', () => {
  it('hears of what is enqueued while its claim is on the way, without time passing', async () => {
    const clock = manualClock()
    const shop = await openShop({ where: 'memory', clock })
    const { engine } = shop
    const { claim } = engine
    const late: Promise<unknown>[] = []
    engine.claim = (ask) => {
      const answer = claim.call(engine, ask)
      // Asked for after the claim in the same turn: in the same commit, but too late for its answer.
      if (late.length === 0) late.push(engine.enqueue(null, [{ queue: 'mail', payload: '"late"' }]))
      return answer
    }
    const worker = shop.work(() => {}, { heartbeat: 'loop' })
    const done = next(worker, 'done')
    await clock.settle()
    expect((await done).number).toBe(1)
  })

  it('takes a scheduled task when it is due', async () => {
    const clock = manualClock()
    const shop = await openShop({ where: 'memory', clock })
    await shop.enqueue(['later'], { delayMs: 300 })
    const seen: number[] = []
    const worker = shop.work(() => void seen.push(clock.monotonicMs()), { heartbeat: 'loop' })
    await worker.ready
    const dueAt = clock.monotonicMs() + 300
    await clock.advance(299)
    expect(seen).toEqual([])
    await clock.advance(3)
    expect(seen).toHaveLength(1)
    expect(seen[0]).toBeGreaterThanOrEqual(dueAt)
  })
})

describe('an engine that fails', () => {
  const busy = () => new PieceworkError('PW_BUSY', 'locked')

  it('a claim is reported and tried again, with a pause that grows', async () => {
    const clock = manualClock()
    const shop = await openShop({ where: 'memory', clock })
    await shop.enqueue(['x'])
    const { engine } = shop
    const { claim } = engine
    const triedAt: number[] = []
    engine.claim = (ask) => {
      triedAt.push(clock.monotonicMs())
      return triedAt.length <= 4 ? Promise.reject(busy()) : claim.call(engine, ask)
    }
    const worker = shop.work(() => {}, { heartbeat: 'loop' })
    const errors = several(worker, 'error', 4)
    const done = next(worker, 'done')
    await clock.advance(1000)
    expect(await errors).toMatchObject(Array.from({ length: 4 }, () => ({ code: 'PW_BUSY' })))
    await done
    const pauses = triedAt.slice(1, 5).map((at, i) => at - triedAt[i]!)
    pauses.forEach((ms, i) => {
      expect(ms).toBeGreaterThanOrEqual(12.5 * 2 ** i)
      expect(ms).toBeLessThanOrEqual(25 * 2 ** i)
    })
    expect(worker.health()).toMatchObject({ live: true, ready: true })
  })

  it.each(['PW_SYNC_FAILED', 'PW_SCHEMA_NEW'] as const)('%s ends its claims for good and is told', async (code) => {
    const shop = await openShop({ where: 'memory' })
    const { engine } = shop
    const { claim } = engine
    let claims = 0
    engine.claim = (): Promise<Claimed> => {
      claims++
      return Promise.reject(new PieceworkError(code, 'the end'))
    }
    const worker = shop.work(() => {})
    expect(await next(worker, 'error')).toMatchObject({ code })
    expect(worker.health()).toMatchObject({ live: false, ready: false })
    engine.claim = claim
    const [id] = await shop.enqueue(['x'])
    await worker.stop()
    expect(claims).toBe(1)
    expect(await shop.task(id!)).toMatchObject({ state: 'ready' })
  })

  it('verdicts are sent again until they are answered', async () => {
    const shop = await openShop({ where: 'memory' })
    await shop.enqueue([1, 2, 3])
    const { engine } = shop
    const { settle } = engine
    let tries = 0
    engine.settle = (...args) => (++tries <= 2 ? Promise.reject(busy()) : settle.apply(engine, args))
    const worker = shop.work(() => {})
    const errors: Error[] = []
    worker.on('error', (error) => errors.push(error))
    await several(worker, 'done', 3)
    expect(errors).toMatchObject([{ code: 'PW_BUSY' }])
    expect(await shop.count('done')).toBe(3)
  })

  it('one verdict that the engine cannot take does not keep the others', async () => {
    const shop = await openShop({ where: 'memory', policy: { leaseMs: 60_000 } })
    const ids = await shop.enqueue(Array.from({ length: 20 }, (_, n) => n))
    const { engine } = shop
    const { settle } = engine
    engine.settle = (by, verdicts) =>
      verdicts.some(({ receipt }) => receipt.startsWith(`${ids[13]}.`))
        ? Promise.reject(new PieceworkError('PW_BUG', 'poison'))
        : settle.call(engine, by, verdicts)
    const worker = shop.work(() => {}, { concurrency: 20 })
    worker.on('error', () => {})
    const error = next(worker, 'error')
    const done = await several(worker, 'done', 19)
    expect(done.map(({ id }) => id)).not.toContain(ids[13])
    expect(await error).toMatchObject({ code: 'PW_BUG' })
    await worker.stop()
    expect(await shop.task(ids[13]!)).toMatchObject({ state: 'leased' })
  })

  it('takes no more tasks while four thousand verdicts wait for an answer', async () => {
    const shop = await openShop({ where: 'memory' })
    for (let i = 0; i < 7; i++) await shop.enqueue(Array.from({ length: 1000 }, (_, n) => n))
    const { engine } = shop
    const { settle } = engine
    const { passed, open } = gate()
    engine.settle = async (by, verdicts) => {
      await passed
      return settle.call(engine, by, verdicts)
    }
    const many = counter(4000)
    const worker = shop.work(() => many.pass())
    await many.all
    await new Promise<void>((resolve) => systemClock.soon(() => systemClock.soon(resolve)))
    expect(many.count).toBeLessThan(5100)
    const rest = several(worker, 'done', 7000)
    open()
    await rest
  })
})

describe('an engine across a wire', () => {
  it('answers that were lost are asked for again under the same name: no task twice, none stale', async () => {
    const shop = await openShop({ where: 'memory' })
    const ids = await shop.enqueue(Array.from({ length: 30 }, (_, n) => n))
    const { engine } = shop
    const { claim, settle } = engine
    Object.assign(engine.traits, { transactions: 'none' })
    const lost = () => new PieceworkError('PW_STORE_FAILED', 'the answer was lost')
    const asked: (string | null)[] = []
    const flushed: (string | null)[] = []
    engine.claim = async (ask) => {
      const answer = await claim.call(engine, ask)
      asked.push(ask.requestId)
      if (asked.filter((id) => id === ask.requestId).length === 1) throw lost()
      return answer
    }
    engine.settle = async (by, verdicts) => {
      const outcomes = await settle.call(engine, by, verdicts)
      flushed.push(by.flush)
      if (flushed.filter((flush) => flush === by.flush).length === 1) throw lost()
      return outcomes
    }
    const seen: string[] = []
    const worker = shop.work((_: unknown, delivery: Delivery) => void seen.push(delivery.id), { prefetch: 0 })
    worker.on('error', () => {})
    const done = await several(worker, 'done', 30)
    expect(done.map(({ id }) => id).sort()).toEqual([...ids].sort())
    expect(seen.length).toBe(30)
    expect(asked[0]).toBe(asked[1])
    expect(flushed[0]).not.toBeNull()
    expect(await shop.count('stale')).toBe(0)
    expect(await shop.count('deliveries')).toBe(30)
  })
})
