// Limits as programs meet them: ceilings over several processes' workers, nothing claimed ahead, Overloaded, breakers.
import { Overloaded } from 'piecework'
import { describe, expect, it } from 'vitest'
import { newUrl, openStore, refusalOf } from './store.js'

/** Counts how many handlers run at once, over all workers that use it. */
function gauge() {
  const seen = { running: 0, most: 0 }
  const handler = async () => {
    seen.running++
    seen.most = Math.max(seen.most, seen.running)
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
    seen.running--
  }
  return { seen, handler }
}

describe('a limit', () => {
  it('holds over the workers of several processes, and every task gets through', async () => {
    const url = newUrl()
    const { seen, handler } = gauge()
    const stores = [await openStore({ url }), await openStore({ url }), await openStore({ url })]
    await stores[0]?.pw.limit('db', { concurrencyMax: 3 })
    for (const { pw } of stores) {
      for (const name of ['a', 'b']) pw.queue(name, { uses: ['db'] }).work(handler, { concurrency: 5 })
    }
    const first = stores[0]?.pw
    for (const name of ['a', 'b'])
      await first?.queue(name, { uses: ['db'] }).enqueueMany(Array.from({ length: 60 }, (_, i) => i))
    for (const name of ['a', 'b']) await first?.queue(name, { uses: ['db'] }).drained()
    expect(seen.most).toBe(3)
    expect(await first?.limit('db')).toMatchObject({ name: 'db', leased: 0, queues: ['a', 'b'], concurrencyMax: 3 })
  }, 60_000)

  it('lets nothing be claimed ahead of need, although the work is fast', async () => {
    const { pw, connection } = await openStore()
    const queue = pw.queue('q', { concurrencyMax: 2 })
    await queue.enqueueMany(Array.from({ length: 400 }, (_, i) => i))
    let most = 0
    const worker = queue.work(
      async () => {
        const figures = await connection.engine().measure(['q'], false)
        most = Math.max(most, figures.types[0]?.leased ?? 0)
      },
      { concurrency: 8 },
    )
    await queue.drained()
    await worker.stop()
    expect(most).toBe(2)
    expect((await queue.stats()).deliveries).toBe(400)
  }, 60_000)

  it('wakes a worker of another queue as soon as its own has ended, without a task being added', async () => {
    const { pw } = await openStore()
    await pw.limit('one', { concurrencyMax: 1 })
    const [a, b] = [pw.queue('a', { uses: ['one'] }), pw.queue('b', { uses: ['one'] })]
    let end = () => {}
    const held = new Promise<void>((resolve) => {
      end = resolve
    })
    await a.enqueue(1)
    a.work(() => held)
    await expect.poll(async () => (await a.stats()).leased).toBe(1)
    await b.enqueue(2)
    const order: string[] = []
    b.work(() => {
      order.push('b')
    })
    await expect.poll(async () => (await b.stats()).ready).toBe(1)
    order.push('a ends')
    end()
    await b.drained()
    expect(order).toEqual(['a ends', 'b'])
  })

  it('of a rate lets work start no faster', async () => {
    const { pw } = await openStore()
    const queue = pw.queue('q', { perSecondMax: 50 })
    await queue.enqueueMany(Array.from({ length: 30 }, (_, i) => i))
    const starts: number[] = []
    queue.work(() => {
      starts.push(performance.now())
    })
    await queue.drained()
    // 25 of the 30 wait 20 ms each, whatever the machine does meanwhile.
    expect((starts.at(-1) as number) - (starts[0] as number)).toBeGreaterThanOrEqual(25 * 20 - 20)
  })

  it('that is adaptive shrinks when a handler throws Overloaded', async () => {
    const { pw } = await openStore()
    await pw.limit('api', { concurrencyMax: 8, adaptive: true })
    const queue = pw.queue('q', { uses: ['api'] })
    await queue.enqueue(1)
    const worker = queue.work(() => {
      throw new Overloaded({ delayMs: 600_000 })
    })
    await expect.poll(async () => (await queue.stats()).scheduled).toBe(1)
    await worker.stop()
    await queue.enqueue(2)
    queue.work(() => {})
    await queue.drained({ scheduled: 'ignore' })
    expect((await pw.limit('api'))?.concurrencyNow).toBe(4)
  })

  it('is refused with a hint when it is not there, or not well said', async () => {
    const { pw } = await openStore()
    expect(await pw.limit('nowhere')).toBeNull()
    await pw.limit('db', { concurrencyMax: 1 })
    const unknown = await refusalOf(pw.queue('q', { uses: ['bd'] }).enqueue(1))
    expect(unknown).toMatchObject({ code: 'PW_LIMIT_UNKNOWN', message: expect.stringContaining('There are: db') })
    const typo = await refusalOf(pw.limit('db', { concurencyMax: 1 } as object))
    expect(typo).toMatchObject({ code: 'PW_OPTION_UNKNOWN', message: expect.stringContaining('concurrencyMax') })
    expect(await refusalOf(pw.limit('db', { perSecondMax: 0 }))).toMatchObject({ code: 'PW_OPTION_INVALID' })
    expect(await refusalOf(pw.limit('', {}))).toMatchObject({ code: 'PW_NAME_INVALID' })
  })
})

describe('a breaker', () => {
  it('stops a queue whose work fails alike, probes, and lets it go on after one success', async () => {
    const { pw, clock } = await openStore()
    const backoff = { baseMs: 600_000, factor: 1, jitter: 'none' } as const
    const breaker = { failures: 3, distinctTasks: 3, windowMs: 600_000 }
    const queue = pw.queue('q', { breaker, backoff, deliveriesMax: null })
    await queue.enqueueMany([1, 2, 3, 4, 5, 6])
    let broken = true
    let runs = 0
    queue.work(
      () => {
        runs++
        if (broken) throw new Error('connect refused')
      },
      { concurrency: 1, prefetch: 0 },
    )
    await expect.poll(async () => (await queue.stats()).scheduled).toBe(3)
    broken = false
    clock.advance(601_000)
    await queue.drained()
    expect(runs).toBe(3 + 6)
  })
})
