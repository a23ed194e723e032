// Enqueueing streams: any iterable, constant memory, exact words about the item that did not fit.
import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import type { Connection } from '../../dist/queue/connection.js'
import { openStore, refusalOf } from './store.js'

/** Notes the sizes of the engine's calls and how many ran at once. */
function watchCalls(connection: Connection) {
  const { engine } = connection.ports
  const seen = { sizes: [] as number[], together: 0, running: 0 }
  const enqueue = engine.enqueue.bind(engine)
  engine.enqueue = async (request, tasks, ...tx) => {
    seen.sizes.push(tasks.length)
    seen.together = Math.max(seen.together, ++seen.running)
    try {
      return await enqueue(request, tasks, ...tx)
    } finally {
      seen.running--
    }
  }
  return seen
}

function* count(to: number): Generator<number> {
  for (let n = 0; n < to; n++) yield n
}

describe('enqueueMany', () => {
  it('takes a generator in chunks of 1000, one in flight, reading ahead by one chunk at most', async () => {
    const { pw, connection } = await openStore()
    const seen = watchCalls(connection)
    let read = 0
    function* items() {
      for (const n of count(2500)) {
        read = n
        if (seen.sizes.length > 0) expect(read).toBeLessThanOrEqual((seen.sizes.length + 1) * 1000)
        yield n
      }
    }
    expect(await pw.queue('mail').enqueueMany(items())).toEqual({ enqueued: 2500, duplicates: 0 })
    expect(seen).toEqual({ sizes: [1000, 1000, 500], together: 1, running: 0 })
    expect(await pw.queue('mail').stats()).toMatchObject({ ready: 2500, enqueued: 2500 })
  })

  it('takes async iterables and waits for the store before it asks for more', async () => {
    const { pw, connection } = await openStore()
    const seen = watchCalls(connection)
    let asked = 0
    const items = {
      [Symbol.asyncIterator]: () => ({
        next: async () => {
          if (asked >= 2000) expect(seen.sizes.length).toBeGreaterThan(0)
          return asked < 3000 ? { done: false as const, value: asked++ } : { done: true as const, value: undefined }
        },
      }),
    }
    expect(await pw.queue('mail').enqueueMany(items)).toEqual({ enqueued: 3000, duplicates: 0 })
  })

  it('makes chunks of about 1 MiB of large payloads', async () => {
    const { pw, connection } = await openStore()
    const seen = watchCalls(connection)
    await pw.queue('mail').enqueueMany(Array.from({ length: 7 }, () => 'x'.repeat(400_000)))
    expect(seen.sizes).toEqual([2, 2, 2, 1])
  })

  it('takes options for all or for each, and counts duplicates', async () => {
    const { pw } = await openStore()
    const mail = pw.queue<{ id: number }>('mail')
    const items = Array.from(count(10), (n) => ({ id: n % 7 }))
    const options = ({ id }: { id: number }, index: number) => ({
      dedupKey: `${id}`,
      type: index === 0 ? 'first' : 'other',
    })
    expect(await mail.enqueueMany(items, options)).toEqual({ enqueued: 7, duplicates: 3 })
    expect(await mail.enqueueMany(items, { type: 'third' })).toEqual({ enqueued: 10, duplicates: 0 })
    const stats = await mail.stats()
    expect(stats.types.map(({ type, ready }) => [type, ready])).toEqual([
      ['first', 1],
      ['other', 6],
      ['third', 10],
    ])
  })

  it('an item that does not fit ends it by index; all before it are enqueued, nothing after', async () => {
    const { pw } = await openStore()
    const mail = pw.queue<unknown>('mail')
    let closed = false
    function* items() {
      try {
        for (const n of count(3000)) yield n === 1234 ? new Map() : n
      } finally {
        closed = true
      }
    }
    const refusal = await refusalOf(mail.enqueueMany(items()))
    expect(refusal.code).toBe('PW_PAYLOAD_NOT_JSON')
    expect(refusal.message).toMatch(/^Item 1234: .*Map/)
    expect(refusal.details).toMatchObject({ index: 1234, enqueued: 1234, duplicates: 0 })
    expect(closed).toBe(true)
    expect((await mail.stats()).enqueued).toBe(1234)
  })

  it('a source that fails, or options that do, are thrown as they are, after what came before', async () => {
    const { pw } = await openStore()
    const mail = pw.queue('mail')
    const failure = new Error('the file ended early')
    function* items() {
      yield* count(3)
      throw failure
    }
    await expect(mail.enqueueMany(items())).rejects.toBe(failure)
    expect((await mail.stats()).enqueued).toBe(3)
    const options = (_: unknown, index: number) => {
      if (index === 2) throw failure
      return {}
    }
    await expect(mail.enqueueMany(count(9), options)).rejects.toBe(failure)
    expect((await mail.stats()).enqueued).toBe(5)
  })

  it('a refusal of the store says from which item on, and is not answered by half', async () => {
    const { pw } = await openStore()
    await pw.batch('b').seal()
    const options = (n: number) => (n < 1500 ? {} : { batch: 'b' })
    const refusal = await refusalOf(pw.queue<number>('mail').enqueueMany(count(4000), options))
    expect(refusal.code).toBe('PW_BATCH_SEALED')
    expect(refusal.message).toMatch(/^Items from 1000 on: /)
    expect(refusal.details).toMatchObject({ index: 1000, enqueued: 1000, duplicates: 0 })
    expect((await pw.queue('mail').stats()).enqueued).toBe(1000)
  })

  it('onInvalid bury stores what the schema refuses, and throws what JSON cannot hold', async () => {
    const { pw } = await openStore()
    const numbers = pw.queue('numbers', { schema: v.number() })
    const items = [1, 'two', 3] as number[]
    expect(await numbers.enqueueMany(items, { onInvalid: 'bury' })).toEqual({ enqueued: 3, duplicates: 0 })
    expect((await numbers.list()).items.map((task) => task.payload)).toEqual([1, 'two', 3])
    const refusal = await refusalOf(numbers.enqueueMany([1, 2n] as number[], { onInvalid: 'bury' }))
    expect(refusal).toMatchObject({ code: 'PW_PAYLOAD_NOT_JSON', details: { index: 1, enqueued: 1 } })
    expect(await refusalOf(numbers.enqueueMany([1], { onInvalid: 'skip' as never }))).toMatchObject({
      code: 'PW_OPTION_INVALID',
    })
  })

  it('takes asynchronous schemas, in order', async () => {
    const { pw } = await openStore()
    const small = v.pipeAsync(
      v.number(),
      v.checkAsync(async (n) => n < 5, 'too big'),
    )
    const refusal = await refusalOf(pw.queue('small', { schema: small }).enqueueMany(count(9)))
    expect(refusal).toMatchObject({ code: 'PW_PAYLOAD_INVALID', details: { index: 5, enqueued: 5 } })
  })

  it.each([['abc'], [7], [null], [{ length: 1 }], [Promise.resolve([1])]])('%s is no stream', async (items) => {
    const { pw } = await openStore({ url: 'sqlite::memory:' })
    expect(await refusalOf(pw.queue('mail').enqueueMany(items as never))).toMatchObject({ code: 'PW_OPTION_INVALID' })
  })

  it('an unknown option is refused, for all and for each', async () => {
    const { pw } = await openStore({ url: 'sqlite::memory:' })
    const mail = pw.queue('mail')
    const wrong = { prioritty: 1 } as never
    expect(await refusalOf(mail.enqueueMany([1], wrong))).toMatchObject({ code: 'PW_OPTION_UNKNOWN' })
    expect((await refusalOf(mail.enqueueMany([1], () => wrong))).message).toContain('"priority"')
    expect(await mail.enqueueMany([])).toEqual({ enqueued: 0, duplicates: 0 })
    expect(await mail.enqueueMany([1], () => undefined)).toEqual({ enqueued: 1, duplicates: 0 })
  })
})
