// Reading and operating a queue: lists, figures, cancel, dead letters, batches; never wider than was meant.
import { describe, expect, it } from 'vitest'
import { manualClock } from '../../dist/testing/manual-clock.js'
import { ackAll, buryAll, holdSome, openStore, refusalOf } from './store.js'

describe('get and list', () => {
  it('refuse a cursor that no page gave, instead of the first page again', async () => {
    const { pw } = await openStore()
    const mail = pw.queue('mail')
    await mail.enqueue(1)
    for (const cursor of ['garbage', '', '-1', '1.5', '1e3']) {
      expect((await refusalOf(mail.list({ cursor }))).code).toBe('PW_OPTION_INVALID')
      expect((await refusalOf(mail.dead.list({ cursor }))).code).toBe('PW_OPTION_INVALID')
    }
    const { code } = await refusalOf(mail.dead.redrive({ all: true }, { dryRun: 'false' as never }))
    expect(code).toBe('PW_OPTION_INVALID')
  })

  it('page through a queue by cursor, filtered', async () => {
    const { pw, connection } = await openStore()
    const mail = pw.queue('mail')
    await mail.enqueueMany(
      Array.from({ length: 25 }, (_, n) => n),
      (_, n) => ({ type: n % 2 ? 'odd' : 'even' }),
    )
    await mail.enqueue('later', { delayMs: 60_000, key: 'k', batch: 'b' })
    await pw.queue('other').enqueue('not ours')
    await holdSome(connection, 'mail', 2)
    const seen: unknown[] = []
    let cursor: string | null = null
    do {
      const page: Awaited<ReturnType<typeof mail.list>> = await mail.list({ limit: 10, cursor })
      expect(page.items.length).toBeLessThanOrEqual(10)
      seen.push(...page.items.map((task) => task.payload))
      cursor = page.next
    } while (cursor !== null)
    expect(seen).toEqual([...Array.from({ length: 25 }, (_, n) => n), 'later'])
    expect((await mail.list({ type: 'odd' })).items).toHaveLength(12)
    expect((await mail.list({ state: 'leased' })).items.map((task) => task.worker)).toEqual(['by hand', 'by hand'])
    expect((await mail.list({ state: ['scheduled', 'leased'] })).items).toHaveLength(3)
    expect((await mail.list({ key: 'k', batch: 'b' })).items.map((task) => task.payload)).toEqual(['later'])
    expect(await mail.list({ key: 'no such' })).toEqual({ items: [], next: null })
  })

  it('answer gone for whatever is no task of this queue', async () => {
    const { pw } = await openStore({ url: 'sqlite::memory:' })
    const mail = pw.queue('mail')
    for (const id of ['1', 'abc', '-1', '9'.repeat(30), "1' or 1=1"])
      expect(await mail.get(id)).toEqual({ state: 'gone' })
    expect(await refusalOf(mail.get(7 as never))).toMatchObject({ code: 'PW_NAME_INVALID' })
  })

  it.each([
    [{ states: 'ready' }, 'PW_OPTION_UNKNOWN', /"state"/],
    [{ state: 'done' }, 'PW_OPTION_INVALID', /"scheduled", "waiting"/],
    [{ limit: 0 }, 'PW_OPTION_INVALID', /limit is 0/],
    [{ limit: 1001 }, 'PW_OPTION_INVALID', /1000/],
    [{ type: '' }, 'PW_NAME_INVALID', /empty/],
  ])('a filter %j is refused', async (filter, code, words) => {
    const { pw } = await openStore({ url: 'sqlite::memory:' })
    const refusal = await refusalOf(pw.queue('mail').list(filter as never))
    expect(refusal.code).toBe(code)
    expect(refusal.message).toMatch(words)
  })
})

describe('stats', () => {
  it('are the figures of one queue; what is not known is null', async () => {
    const { pw, connection, clock } = await openStore()
    const mail = pw.queue('mail')
    expect(await mail.stats()).toMatchObject({ ready: 0, drained: true, paused: false, backlogAgeMs: null, types: [] })
    await mail.enqueueMany([1, 2, 3], { type: 'a' })
    await mail.enqueue(4, { type: 'b', delayMs: 60_000 })
    await pw.queue('other').enqueue(1)
    clock.advance(5000)
    await holdSome(connection, 'mail', 1)
    await buryAll(connection, 'mail', 1, 'no')
    const stats = await mail.stats()
    expect(stats).toMatchObject({
      queue: 'mail',
      ready: 1,
      leased: 1,
      dead: 1,
      scheduled: 1,
      enqueued: 4,
      deliveries: 2,
    })
    expect(stats).toMatchObject({ drained: false, failures: 1, done: 0 })
    expect(stats.backlogAgeMs).toBeGreaterThanOrEqual(5000)
    expect(stats.backlogAgeMs).toBeLessThan(10_000)
    expect(stats.at).toBeInstanceOf(Date)
    expect(stats.types.map(({ type, backlogAgeMs }) => [type, backlogAgeMs !== null])).toEqual([
      ['a', true],
      ['b', false],
    ])
  })
})

describe('cancel', () => {
  it('ends what nobody holds, asks the others, and touches only what was meant', async () => {
    const { pw, connection } = await openStore()
    const mail = pw.queue('mail')
    const { id } = await mail.enqueue('one')
    const other = await pw.queue('other').enqueue('not ours')
    expect(await mail.cancel(other.id)).toEqual({ cancelled: 0, asked: 0 })
    expect(await mail.cancel(id)).toEqual({ cancelled: 1, asked: 0 })
    expect(await mail.get(id)).toEqual({ state: 'gone' })
    expect(await mail.cancel(id)).toEqual({ cancelled: 0, asked: 0 })

    await mail.enqueueMany(
      Array.from({ length: 2300 }, (_, n) => n),
      { type: 'a' },
    )
    await mail.enqueueMany([1, 2, 3], { type: 'b', delayMs: 60_000 })
    await holdSome(connection, 'mail', 1100)
    expect(await mail.cancel({ type: 'a' })).toEqual({ cancelled: 1200, asked: 1100 })
    expect(await mail.stats()).toMatchObject({ ready: 0, leased: 1100, scheduled: 3, cancelled: 1201 })
    expect(await mail.cancel({ state: 'leased' })).toEqual({ cancelled: 0, asked: 0 })
    expect(await mail.cancel({ all: true })).toEqual({ cancelled: 3, asked: 0 })
    expect(await pw.queue('other').get(other.id)).toMatchObject({ state: 'ready' })
  })

  it.each([[{}], [{ type: undefined }], [{ all: false }]])('an empty filter %j is refused', async (filter) => {
    const { pw } = await openStore({ url: 'sqlite::memory:' })
    const mail = pw.queue('mail')
    expect(await refusalOf(mail.cancel(filter as never))).toMatchObject({ code: 'PW_FILTER_MISSING' })
    expect(await refusalOf(mail.dead.redrive(filter as never))).toMatchObject({ code: 'PW_FILTER_MISSING' })
    expect(await refusalOf(mail.dead.discard(filter as never))).toMatchObject({ code: 'PW_FILTER_MISSING' })
  })

  it('everything and a filter together are refused, as is nothing at all', async () => {
    const { pw } = await openStore({ url: 'sqlite::memory:' })
    const mail = pw.queue('mail')
    const both = { all: true, type: 'a' } as never
    expect(await refusalOf(mail.cancel(both))).toMatchObject({ code: 'PW_OPTION_INVALID' })
    expect(await refusalOf(mail.dead.redrive(both))).toMatchObject({ code: 'PW_OPTION_INVALID' })
    expect(await refusalOf(mail.dead.discard(undefined as never))).toMatchObject({ code: 'PW_FILTER_MISSING' })
    expect(await refusalOf(mail.cancel({ al: true } as never))).toMatchObject({ code: 'PW_OPTION_UNKNOWN' })
  })
})

describe('move', () => {
  it('takes what is meant to another queue, over any number of commits; leased ones follow', async () => {
    const { pw, connection } = await openStore()
    const mail = pw.queue('mail')
    const slow = pw.queue('slow')
    await mail.enqueueMany(
      Array.from({ length: 2300 }, (_, n) => n),
      { type: 'report' },
    )
    await mail.enqueueMany([1, 2, 3], { type: 'ping' })
    await holdSome(connection, 'mail', 100)
    expect(await mail.move({ type: 'report', to: 'slow' })).toEqual({ moved: 2200, asked: 100, routed: true })
    expect(await slow.stats()).toMatchObject({ ready: 2200, enqueued: 0 })
    expect(await mail.stats()).toMatchObject({ ready: 3, leased: 100, moved: 2200 })
    expect(await slow.move({ to: 'mail' })).toEqual({ moved: 2200, asked: 0, routed: false })
    expect(await mail.stats()).toMatchObject({ ready: 2203 })
  })

  it('is refused without a queue to go to, to its own queue, and with options it does not know', async () => {
    const { pw } = await openStore({ url: 'sqlite::memory:' })
    const mail = pw.queue('mail')
    expect(await refusalOf(mail.move({} as never))).toMatchObject({ code: 'PW_NAME_INVALID' })
    expect(await refusalOf(mail.move(undefined as never))).toMatchObject({ code: 'PW_OPTION_INVALID' })
    expect(await refusalOf(mail.move({ to: 'mail' }))).toMatchObject({ code: 'PW_OPTION_INVALID' })
    expect(await refusalOf(mail.move({ to: 'x', typ: 'a' } as never))).toMatchObject({ code: 'PW_OPTION_UNKNOWN' })
    const wrong = { type: 'a', to: 'x', back: true }
    expect(await refusalOf(mail.move(wrong as never))).toMatchObject({ code: 'PW_OPTION_INVALID' })
    expect(await refusalOf(mail.move({ type: 'none', back: true }))).toMatchObject({ code: 'PW_MOVE_UNKNOWN' })
  })

  it('leads later tasks of a moved type along, until it is brought back', async () => {
    const { pw } = await openStore()
    const [mail, slow] = [pw.queue('mail'), pw.queue('slow')]
    const types = async () => {
      const listed = [...(await mail.list()).items, ...(await slow.list()).items]
      return listed.map(({ queue, type, payload }) => `${queue}/${type} ${payload}`)
    }
    await mail.enqueue(1, { type: 'report' })
    expect(await mail.move({ type: 'report', to: 'slow' })).toEqual({ moved: 1, asked: 0, routed: true })
    await mail.enqueue(2, { type: 'report' })
    await mail.enqueue(3)
    expect(await types()).toEqual(['mail/mail 3', 'slow/report 1', 'slow/report 2'])
    // Picked by more than its type: what comes later is not meant.
    expect(await mail.move({ type: 'mail', state: 'ready', to: 'slow' })).toMatchObject({ moved: 1, routed: false })
    await mail.enqueue(4)
    expect(await mail.move({ type: 'report', back: true })).toEqual({ moved: 2, asked: 0, routed: false })
    await mail.enqueue(5, { type: 'report' })
    expect(await types()).toEqual(['mail/report 1', 'mail/report 2', 'mail/mail 4', 'mail/report 5', 'slow/slow 3'])
    expect(await refusalOf(mail.move({ type: 'report', back: true }))).toMatchObject({ code: 'PW_MOVE_UNKNOWN' })
  })
})

describe('dead letters', () => {
  it('are listed with their error, shown with their history, redriven and discarded by filter', async () => {
    const { pw, connection } = await openStore()
    const mail = pw.queue('mail')
    await mail.enqueueMany([1, 2, 3], { type: 'a', key: undefined, headers: { h: '1' } })
    await mail.enqueueMany([4, 5], { type: 'b' })
    const [first] = await buryAll(connection, 'mail', 3, 'no route to host 10.0.0.7')
    await buryAll(connection, 'mail', 2, 'payload is bad')
    await mail.enqueue('alive')
    await pw.queue('other').enqueue('x')
    const [foreign] = await buryAll(connection, 'other', 1, 'no route to host 10.0.0.8')

    const page = await mail.dead.list()
    expect(page.items.map((letter) => letter.payload)).toEqual([1, 2, 3, 4, 5])
    expect(page.items[0]).toMatchObject({
      id: first,
      queue: 'mail',
      type: 'a',
      key: null,
      deliveries: 1,
      error: 'no route to host 10.0.0.7',
      headers: { h: '1' },
    })
    expect(page.items[0]?.deadAt).toBeInstanceOf(Date)
    expect(typeof page.items[0]?.reason).toBe('string')
    expect((await mail.dead.list({ text: 'route' })).items).toHaveLength(3)
    const alike = page.items[0]?.fingerprint ?? ''
    expect((await mail.dead.list({ fingerprint: alike, limit: 2 })).items).toHaveLength(2)

    const letter = await mail.dead.get(first ?? '')
    expect(letter?.history).toMatchObject([{ number: 1, outcome: 'bury', worker: 'by hand' }])
    expect(letter?.history[0]?.endedAt).toBeInstanceOf(Date)
    expect(await mail.dead.get(foreign ?? '')).toBeNull()
    expect(await mail.dead.get('77')).toBeNull()

    expect(await mail.dead.redrive({ type: 'a' }, { dryRun: true })).toEqual({ redriven: 3 })
    expect((await mail.stats()).dead).toBe(5)
    expect(await mail.dead.redrive({ ids: [first ?? '', foreign ?? ''] })).toEqual({ redriven: 1 })
    expect(await mail.dead.redrive({ text: 'route' })).toEqual({ redriven: 2 })
    expect(await mail.dead.discard({ all: true })).toEqual({ discarded: 2 })
    expect(await mail.stats()).toMatchObject({ dead: 0, ready: 4, redrives: 3, discarded: 2 })
    expect((await pw.queue('other').stats()).dead).toBe(1)
  })

  it('thousands are taken in pages, each once', async () => {
    const { pw, connection } = await openStore()
    const mail = pw.queue('mail')
    await mail.enqueueMany(Array.from({ length: 2100 }, (_, n) => n))
    expect(await buryAll(connection, 'mail', 2100, 'no')).toHaveLength(2100)
    expect(await mail.dead.redrive({ all: true })).toEqual({ redriven: 2100 })
    expect(await buryAll(connection, 'mail', 2100, 'no')).toHaveLength(2100)
    expect(await mail.dead.discard({ all: true })).toEqual({ discarded: 2100 })
    expect(await mail.stats()).toMatchObject({ ready: 0, dead: 0, redrives: 2100, discarded: 2100 })
  })

  it('are redriven at a rate', async () => {
    const clock = manualClock()
    const { pw, connection } = await openStore({ url: 'sqlite::memory:', clock })
    const mail = pw.queue('mail')
    await mail.enqueueMany(Array.from({ length: 50 }, (_, n) => n))
    await buryAll(connection, 'mail', 50, 'no')
    const redriven = mail.dead.redrive({ all: true }, { perSecond: 20 })
    await clock.settle()
    expect(await mail.stats()).toMatchObject({ ready: 2, dead: 48 })
    await clock.advance(999)
    expect(await mail.stats()).toMatchObject({ ready: 20, dead: 30 })
    await clock.advance(1500)
    expect(await redriven).toEqual({ redriven: 50 })
  })

  it.each([
    ['done', 0, 7],
    ['thrown out again', 1, 4],
  ])('follow their canaries when these are %s', async (what, failed, redriven) => {
    const { pw, connection } = await openStore({ url: 'sqlite::memory:' })
    const mail = pw.queue('mail', { backoff: { baseMs: 60_000, jitter: 'none' } })
    await mail.enqueueMany(Array.from({ length: 7 }, (_, n) => n))
    await buryAll(connection, 'mail', 7, 'no')
    let seen = 0
    const worker = mail.work(() => {
      if (++seen === 4 && what !== 'done') throw new Error('still broken')
    })
    expect(await mail.dead.redrive({ all: true }, { canary: 4 })).toEqual({ redriven, failed })
    await worker.stop()
    expect(await mail.stats()).toMatchObject({ dead: 7 - redriven, redrives: redriven })
  })

  it('an option of a later version is refused, not ignored', async () => {
    const { pw } = await openStore({ url: 'sqlite::memory:' })
    const { dead } = pw.queue('mail')
    for (const options of [{ perSecond: 0 }, { perSecond: 0.5 }, { canary: 0 }, { canary: 1001 }]) {
      expect(await refusalOf(dead.redrive({ all: true }, options))).toMatchObject({ code: 'PW_OPTION_INVALID' })
    }
    const odd = { perMinute: 3 } as never
    expect(await refusalOf(dead.redrive({ all: true }, odd))).toMatchObject({ code: 'PW_OPTION_UNKNOWN' })
    expect(await refusalOf(dead.list({ states: 'dead' } as never))).toMatchObject({ code: 'PW_OPTION_UNKNOWN' })
  })
})

describe('batches', () => {
  it('count their tasks, take none once sealed, and are done when none is open', async () => {
    const { pw, connection } = await openStore()
    const mail = pw.queue('mail')
    const batch = pw.batch('import-42')
    expect(await batch.stats()).toBeNull()
    await mail.enqueueMany([1, 2], { batch })
    await mail.enqueue(3, { batch: 'import-42' })
    const { id } = await mail.enqueue(4, { batch })
    await mail.cancel(id)
    const done = batch.done()
    await buryAll(connection, 'mail', 1, 'no')
    await ackAll(connection, await holdSome(connection, 'mail', 2))
    expect(await batch.stats()).toMatchObject({ sealed: false, total: 4, done: 2, dead: 1, cancelled: 1 })
    await batch.seal()
    expect(await done).toEqual({ total: 4, done: 2, dead: 1, cancelled: 1 })
    expect(await batch.stats()).toMatchObject({ name: 'import-42', sealed: true, finishedAt: expect.any(Date) })
    expect(await refusalOf(mail.enqueue(5, { batch }))).toMatchObject({ code: 'PW_BATCH_SEALED' })
  })

  it('done() gives up after waitMs, saying what it waits for', async () => {
    const { pw } = await openStore()
    const batch = pw.batch('b')
    expect((await refusalOf(batch.done({ waitMs: 0 }))).message).toContain('not sealed')
    await pw.queue('mail').enqueue(1, { batch })
    await batch.seal()
    const refusal = await refusalOf(batch.done({ waitMs: 5 }))
    expect(refusal).toMatchObject({ code: 'PW_DRAIN_TIMEOUT', details: { batch: 'b', sealed: true } })
    expect(refusal.message).toContain('1 of its tasks')
    expect(await refusalOf(batch.done({ waitMs: -1 }))).toMatchObject({ code: 'PW_OPTION_INVALID' })
    await expect(batch.done({ signal: AbortSignal.abort('enough') })).rejects.toBe('enough')
  })
})
