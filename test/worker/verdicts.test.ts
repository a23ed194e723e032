// What a handler's return or throw makes of its task: ack, retry, release, bury, and what is kept of the error.
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { PieceworkError } from '../../dist/ground/errors.js'
import { Bury, type Delivery, Overloaded, Release, Retry } from '../../dist/task/handler.js'
import { next, openShop, several } from './shop.js'

describe.each(['file', 'memory'] as const)('a verdict (%s)', (where) => {
  it('a return acks, from a plain function and from an async one', async () => {
    const shop = await openShop({ where })
    const [a, b] = await shop.enqueue([1, 2])
    const seen: unknown[] = []
    const worker = shop.work((n: number, delivery: Delivery) => {
      seen.push([n, delivery.id, delivery.number, delivery.queue, delivery.type])
      return n === 1 ? undefined : Promise.resolve('result')
    })
    const done = await several(worker, 'done', 2)
    expect(seen).toEqual([
      [1, a, 1, 'mail', 'mail'],
      [2, b, 1, 'mail', 'mail'],
    ])
    expect(done.map(({ id, number }) => [id, number])).toEqual([
      [a, 1],
      [b, 1],
    ])
    expect(done.every(({ runMs }) => runMs >= 0 && runMs < 5000)).toBe(true)
    expect(await shop.task(a!)).toBeUndefined()
    expect(await shop.count('done')).toBe(2)
  })

  it('a throw is a retry that counts, with code and stack in the history, and is delivered again', async () => {
    const shop = await openShop({ where, policy: { backoff: { baseMs: 0 } } })
    const [id] = await shop.enqueue(['x'])
    const worker = shop.work((_: unknown, delivery: Delivery) => {
      if (delivery.number === 1) throw Object.assign(new Error('no answer'), { code: 'ECONNRESET' })
      if (delivery.number === 2) return Promise.reject(new Error('again'))
      return delivery.number
    })
    const [first, second] = await several(worker, 'retry', 2)
    expect(first).toMatchObject({ id, number: 1, error: { message: 'no answer' } })
    expect(second).toMatchObject({ id, number: 2, error: { message: 'again' } })
    expect((await next(worker, 'done')).number).toBe(3)
    expect(await shop.count('failures')).toBe(2)
  })

  it('keeps each failure in the history, and the last one buries when the budget is spent', async () => {
    const shop = await openShop({ where, policy: { deliveriesMax: 2, backoff: { baseMs: 0 } } })
    const [id] = await shop.enqueue(['x'])
    const worker = shop.work(() => {
      throw Object.assign(new TypeError('broken'), { code: 'E_BROKEN' })
    })
    const dead = await next(worker, 'dead')
    expect(dead).toMatchObject({ id, number: 2, error: { message: 'broken' } })
    const history = await shop.history(id!)
    expect(history.map(({ number, outcome, code }) => [number, outcome, code])).toEqual([
      [1, 'retry', 'E_BROKEN'],
      [2, 'retry', 'E_BROKEN'],
    ])
    expect(history[0]!.error).toMatch(/^TypeError: broken\n {4}at /)
    expect(await shop.task(id!)).toMatchObject({ state: 'dead', code: 'E_BROKEN' })
  })

  it('Retry chooses the delay and its cause is the error that is kept', async () => {
    const shop = await openShop({ where })
    const [id] = await shop.enqueue(['x'])
    const cause = Object.assign(new Error('slow down'), { code: 'E_BUSY' })
    const worker = shop.work(() => {
      throw new Retry({ delayMs: 3_600_000, cause })
    })
    expect((await next(worker, 'retry')).error).toMatchObject({ name: 'Retry', message: 'slow down' })
    const task = (await shop.task(id!))!
    expect(task).toMatchObject({ state: 'scheduled', spent: 1 })
    expect(task.dueAt! - Date.now()).toBeGreaterThan(3_500_000)
    expect(await shop.history(id!)).toMatchObject([{ outcome: 'retry', code: 'E_BUSY' }])
  })

  it('Release and Overloaded give the task back uncounted', async () => {
    const shop = await openShop({ where })
    const [a, b] = await shop.enqueue(['release', 'overloaded'])
    const worker = shop.work((what: string) => {
      throw what === 'release' ? new Release({ delayMs: 3_600_000 }) : new Overloaded({ delayMs: 3_600_000 })
    })
    const released = await several(worker, 'released', 2)
    expect(released.map(({ id, by }) => [id, by])).toEqual([
      [a, 'handler'],
      [b, 'handler'],
    ])
    expect(await shop.task(a!)).toMatchObject({ state: 'scheduled', spent: 0, releases: 1 })
    expect(await shop.task(b!)).toMatchObject({ state: 'scheduled', spent: 0, releases: 1 })
  })

  it('Bury puts it into the dead letters with the reason and the cause', async () => {
    const shop = await openShop({ where })
    const [id] = await shop.enqueue(['x'])
    const worker = shop.work(() => {
      throw new Bury('no such customer', { cause: Object.assign(new Error('404'), { code: 'E_404' }) })
    })
    expect(await next(worker, 'dead')).toMatchObject({ id, number: 1, error: { message: 'no such customer' } })
    const task = (await shop.task(id!))!
    expect(task).toMatchObject({ state: 'dead', code: 'E_404' })
    expect(task.error).toContain('no such customer')
    expect(task.error).toContain('404')
  })

  it('decisions of another copy of the package count, by name and shape', async () => {
    const shop = await openShop({ where })
    const [id, other] = await shop.enqueue(['bury', 'release'])
    class Foreign extends Error {
      constructor(
        override readonly name: string,
        readonly delayMs?: number,
      ) {
        super('from another copy')
      }
    }
    const worker = shop.work((what: string) => {
      throw what === 'bury' ? new Foreign('Bury') : new Foreign('Release', 3_600_000)
    })
    const released = next(worker, 'released')
    expect(await next(worker, 'dead')).toMatchObject({ id })
    expect(await released).toMatchObject({ id: other })
  })
})

describe('a payload that cannot be decoded', () => {
  it.each([
    [
      'at once',
      () => {
        throw new PieceworkError('PW_PAYLOAD_CORRUPT', 'The payload is no JSON.')
      },
    ],
    ['later', () => Promise.reject(new PieceworkError('PW_PAYLOAD_CORRUPT', 'The payload is no JSON.'))],
  ])('buries its task %s, and the others flow on', async (_when, refuse) => {
    const shop = await openShop({ where: 'memory' })
    const [bad, good] = await shop.enqueue(['bad', 'good'])
    const seen: string[] = []
    const decode = (_type: string, text: string) => (text === '"bad"' ? refuse() : JSON.parse(text))
    const worker = shop.work((text: string) => seen.push(text), { decode })
    const done = next(worker, 'done')
    expect(await next(worker, 'dead')).toMatchObject({ id: bad, error: { code: 'PW_PAYLOAD_CORRUPT' } })
    expect((await done).id).toBe(good)
    expect(seen).toEqual(['good'])
  })

  it('an async schema is awaited before the handler runs', async () => {
    const shop = await openShop({ where: 'memory' })
    await shop.enqueue([1, 2])
    const seen: number[] = []
    const worker = shop.work((n: number) => seen.push(n), { decode: async (_, text) => Number(text) * 10 })
    await several(worker, 'done', 2)
    expect(seen).toEqual([10, 20])
  })
})

describe('whatever is thrown', () => {
  const nasty = new Proxy(
    {},
    {
      get() {
        throw new Error('no')
      },
      getPrototypeOf() {
        throw new Error('no')
      },
    },
  )
  const getter = Object.defineProperty(new Error('x'), 'stack', {
    get() {
      throw new Error('no stack for you')
    },
  })
  it.each([
    ['null', null, 'null'],
    ['undefined', undefined, 'undefined'],
    ['text', 'just text', 'just text'],
    ['a symbol', Symbol('why'), 'Symbol(why)'],
    ['an object', { status: 503 }, '{ status: 503 }'],
    ['a function', function failing() {}, '[Function: failing]'],
    ['an error of another realm', runInNewContext('new RangeError("elsewhere")'), 'RangeError: elsewhere'],
    ['a proxy that throws', nasty, 'cannot be shown'],
    ['an error whose stack throws', getter, 'cannot be shown'],
    ['NUL', new Error('a\0b'), 'a\0b'],
    ['a lone surrogate', new Error('a\ud800b'), 'a\ufffdb'],
  ])('%s is kept as text and told as an Error', async (_name, thrown, text) => {
    const shop = await openShop({ where: 'memory', policy: { deliveriesMax: 1 } })
    const [id] = await shop.enqueue(['x'])
    const worker = shop.work(() => {
      throw thrown
    })
    const { error } = await next(worker, 'dead')
    expect(Object.prototype.toString.call(error)).toBe('[object Error]')
    const { error: kept } = (await shop.task(id!))!
    expect(kept).toContain(text)
    expect(kept!.isWellFormed()).toBe(true)
  })
})
