// From enqueue to handler through the real worker: schemas at claim, handlers by type, refusals, what runs on defaults.
import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import { Bury, Retry } from '../../dist/task/handler.js'
import { latch, newUrl, openStore, refusalOf } from './store.js'

describe('work', () => {
  it('runs what was enqueued, and drained says when all is done', async () => {
    const { pw } = await openStore()
    const mail = pw.queue<{ n: number; at: Date }>('mail')
    const seen: unknown[] = []
    const worker = mail.work((payload, delivery) => seen.push([payload.n, payload.at, delivery.number]))
    await worker.ready
    await mail.enqueueMany([1, 2, 3].map((n) => ({ n, at: new Date(0) })))
    expect(await mail.drained()).toEqual({ dead: 0 })
    expect(seen).toEqual([1, 2, 3].map((n) => [n, '1970-01-01T00:00:00.000Z', 1]))
    expect(await mail.stats()).toMatchObject({ done: 3, ready: 0, workers: 1 })
    await worker.stop()
    expect((await mail.stats()).workers).toBe(0)
  })

  it('works in memory too', async () => {
    const { pw } = await openStore({ url: 'sqlite::memory:' })
    const mail = pw.queue('mail')
    const seen: unknown[] = []
    mail.work((payload) => seen.push(payload))
    await mail.enqueue('x')
    await mail.drained()
    expect(seen).toEqual(['x'])
  })

  it('gives the handler what the schema makes of it; what no longer fits is buried with its issues', async () => {
    const { pw } = await openStore()
    const schema = v.object({ n: v.pipe(v.string(), v.transform(Number)) })
    const numbers = pw.queue('numbers', { schema })
    await numbers.enqueue({ n: '41' })
    await pw.queue('numbers').enqueue({ n: 41 })
    await numbers.enqueueMany([{ n: '1' }, { n: true as never }], { onInvalid: 'bury' })
    const seen: number[] = []
    numbers.work(({ n }) => seen.push(n + 1))
    expect(await numbers.drained()).toEqual({ dead: 2 })
    expect(seen.sort()).toEqual([2, 42])
    const { items } = await numbers.dead.list()
    expect(items.map((letter) => letter.payload)).toEqual([{ n: 41 }, { n: true }])
    for (const letter of items) {
      expect(letter).toMatchObject({ code: 'PW_PAYLOAD_INVALID', deliveries: 1 })
      expect(letter.error).toContain('n: ')
    }
  })

  it('takes asynchronous schemas at claim', async () => {
    const { pw } = await openStore()
    const schema = v.pipeAsync(
      v.number(),
      v.transformAsync(async (n) => n * 2),
    )
    const numbers = pw.queue('numbers', { schema })
    const seen: number[] = []
    numbers.work((n) => seen.push(n))
    await numbers.enqueue(21)
    await numbers.drained()
    expect(seen).toEqual([42])
  })

  it('a stored payload that is no JSON any more is buried, and the others flow on (case 21)', async () => {
    const { pw, connection } = await openStore()
    const mail = pw.queue('mail')
    await connection.ports.engine.enqueue(null, [{ queue: 'mail', payload: '{"a":' }])
    await mail.enqueue('good')
    const seen: unknown[] = []
    mail.work((payload) => seen.push(payload))
    expect(await mail.drained()).toEqual({ dead: 1 })
    expect(seen).toEqual(['good'])
    expect((await mail.dead.list()).items).toMatchObject([{ code: 'PW_PAYLOAD_CORRUPT', payload: undefined }])
  })

  it('claims only the types it has handlers for; the rest stays ready', async () => {
    const { pw } = await openStore()
    const mail = pw.queue('mail')
    await mail.enqueueMany(['a', 'b', 'c'], (type) => ({ type }))
    const seen: unknown[] = []
    const two = latch(2)
    const some = mail.work({ a: (payload) => seen.push(payload), b: (payload) => seen.push(payload) })
    some.on('done', two.hit)
    await two.reached
    expect(seen.sort()).toEqual(['a', 'b'])
    expect((await mail.list()).items.map((task) => [task.type, task.state])).toEqual([['c', 'ready']])
    await some.stop()
    mail.work({ a: () => seen.push('never'), '*': (payload, { type }) => seen.push(`${payload} by ${type}`) })
    await mail.drained()
    expect(seen.sort()).toEqual(['a', 'b', 'c by c'])
  })

  it('by schemas: a function takes the declared types and leaves the others alone', async () => {
    const { pw } = await openStore()
    const work = pw.queue('work', { types: { n: v.number(), s: v.string() } })
    await pw.queue('work').enqueue('?', { type: 'unknown here' })
    await work.enqueue(1, { type: 'n' })
    await work.enqueue('x', { type: 's' })
    const seen: unknown[] = []
    const two = latch(2)
    work.work((payload) => seen.push(payload)).on('done', two.hit)
    await two.reached
    expect(seen.sort()).toEqual([1, 'x'])
    expect((await work.list()).items.map((task) => task.type)).toEqual(['unknown here'])
  })

  it('a handler may enqueue, also in its grace time while the connection closes', async () => {
    const url = newUrl()
    const { pw } = await openStore({ url })
    const mail = pw.queue('mail')
    await mail.enqueue('first')
    const started = latch()
    mail.work(
      async (_, { signal }) => {
        started.hit()
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        await pw.queue('next').enqueue('second')
      },
      { graceMs: 50 },
    )
    await started.reached
    await pw.close()
    const again = await openStore({ url })
    expect(await again.pw.queue('next').stats()).toMatchObject({ ready: 1 })
    expect(await again.pw.queue('mail').stats()).toMatchObject({ done: 1, ready: 0 })
  })

  const refused: [string, unknown, object | undefined, string, RegExp][] = [
    ['no handler', undefined, undefined, 'PW_HANDLER_INVALID', /undefined/],
    ['a list', [() => 1], undefined, 'PW_HANDLER_INVALID', /handler/],
    ['an empty object', {}, undefined, 'PW_HANDLER_INVALID', /empty/],
    ['no function for a type', { a: 'x' }, undefined, 'PW_HANDLER_INVALID', /type "a" is "x"/],
    ['a type without its handler', { a: () => 1 }, { types: ['a', 'b'] }, 'PW_HANDLER_INVALID', /no handler for "b"/],
    ['a misspelled option', () => 1, { concurency: 1 }, 'PW_OPTION_UNKNOWN', /"concurrency"/],
    ['no slots', () => 1, { concurrency: 0 }, 'PW_OPTION_INVALID', /concurrency is 0/],
    ['half a millisecond', () => 1, { graceMs: 0.5 }, 'PW_OPTION_INVALID', /graceMs/],
    ['no types', () => 1, { types: [] }, 'PW_OPTION_INVALID', /types/],
    ['prefetch by word', () => 1, { prefetch: 'lots' }, 'PW_OPTION_INVALID', /prefetch/],
    ['no signals', () => 1, { stopOn: 'SIGTERM' }, 'PW_OPTION_INVALID', /stopOn/],
  ]
  it.each(refused)(
    '%s is refused at worker.ready, and nothing is claimed',
    async (_, handler, options, code, words) => {
      const { pw } = await openStore({ url: 'sqlite::memory:' })
      const mail = pw.queue('mail')
      const worker = mail.work(handler as never, options as never)
      worker.on('error', () => {})
      await mail.enqueue(1)
      const refusal = await refusalOf(worker.ready)
      expect(refusal.code).toBe(code)
      expect(refusal.message).toMatch(words)
      expect(await mail.stats()).toMatchObject({ ready: 1, deliveries: 0 })
      await worker.stop()
    },
  )

  it('handlers of a queue with schemas are all there, or name their types', async () => {
    const { pw } = await openStore({ url: 'sqlite::memory:' })
    const work = pw.queue('work', { types: { mail: v.number(), resize: v.string() } })
    const ready = async (handlers: object, options?: object) => {
      const worker = work.work(handlers as never, options)
      worker.on('error', () => {})
      return worker.ready
    }
    const handler = () => {}
    expect(await refusalOf(ready({ mail: handler }))).toMatchObject({ details: { missing: ['resize'] } })
    expect((await refusalOf(ready({ mail: handler, resise: handler }))).message).toContain('"resize"')
    expect(await refusalOf(ready(handler, { types: ['post'] }))).toMatchObject({ code: 'PW_HANDLER_INVALID' })
    await ready({ mail: handler }, { types: ['mail'] })
    await ready({ mail: handler, '*': handler })
    await ready({ mail: handler, resize: handler })
  })

  it('retries, buries and counts as the handler decides', async () => {
    const { pw } = await openStore()
    const mail = pw.queue('mail', { deliveriesMax: 2, backoff: { baseMs: 1 } })
    await mail.enqueueMany(['again', 'never', 'poison'])
    mail.work((payload, { number }) => {
      if (payload === 'again' && number === 1) throw new Retry({ delayMs: 1 })
      if (payload === 'never') throw new Bury('not ours')
      if (payload === 'poison') throw new Error('boom')
    })
    expect(await mail.drained()).toEqual({ dead: 2 })
    const { items } = await mail.dead.list()
    expect(items).toMatchObject([
      { payload: 'never', deliveries: 1, error: expect.stringContaining('not ours') },
      { payload: 'poison', deliveries: 2, error: expect.stringContaining('boom') },
    ])
    expect((await mail.dead.get(items[1]?.id ?? ''))?.history).toHaveLength(2)
  })
})

describe('on defaults', () => {
  it('a delayed task runs when it is due, with nobody asked to sweep (case 7)', async () => {
    const { pw, clock } = await openStore()
    const mail = pw.queue('mail')
    const seen: unknown[] = []
    mail.work((payload) => seen.push(payload))
    await mail.enqueue('later', { delayMs: 60_000 })
    await mail.enqueue('now')
    expect(await mail.drained({ scheduled: 'ignore' })).toEqual({ dead: 0 })
    expect(seen).toEqual(['now'])
    clock.advance(60_000)
    await mail.drained()
    expect(seen).toEqual(['now', 'later'])
  })

  it('a producer alone sweeps too: what is due becomes ready, what is past its deadline dead', async () => {
    const { pw, connection, clock } = await openStore()
    const mail = pw.queue('mail')
    await mail.enqueue('due', { delayMs: 60_000 })
    await mail.enqueue('late', { delayMs: 120_000, deadlineMs: 60_000 })
    clock.advance(60_001)
    expect(await connection.ports.engine.wait(['mail'], 10_000, new AbortController().signal)).toBe(true)
    expect(await mail.stats()).toMatchObject({ ready: 1, scheduled: 0, dead: 1 })
    expect((await mail.dead.list()).items).toMatchObject([{ payload: 'late', reason: 'deadline' }])
  })

  it('a task whose holder vanished comes back after its lease (case 7)', async () => {
    const { pw, connection, clock } = await openStore()
    const mail = pw.queue('mail')
    await mail.enqueue('held')
    await connection.ports.engine.claim({
      worker: 'vanished',
      requestId: null,
      wants: [{ queue: 'mail', types: null, max: 1 }],
    })
    clock.advance(30_001)
    const seen: unknown[] = []
    mail.work((payload, { number }) => seen.push([payload, number]))
    await mail.drained()
    expect(seen).toEqual([['held', 2]])
  })
})
