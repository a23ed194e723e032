// Enqueueing one by one: what is stored, what is refused and with which words, and that neighbours stay unhurt.
import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import { PieceworkError } from '../../dist/ground/errors.js'
import { newUrl, openStore, refusalOf } from './store.js'

describe('one task', () => {
  it('is stored as given, with every option, and read back', async () => {
    const { pw, clock } = await openStore()
    const mail = pw.queue('mail')
    const options = { type: 'welcome', key: 'ada', priority: 5, delayMs: 60_000, deadlineMs: 90_000, dedupKey: 'd1' }
    const { id, duplicate } = await mail.enqueue(
      { to: 'ada', n: [1, null] },
      { ...options, batch: 'b1', headers: { trace: 'x' } },
    )
    expect(duplicate).toBe(false)
    expect(await mail.get(id)).toMatchObject({
      id,
      queue: 'mail',
      type: 'welcome',
      state: 'scheduled',
      key: 'ada',
      batch: 'b1',
      priority: 5,
      dedupKey: 'd1',
      headers: { trace: 'x' },
      payload: { to: 'ada', n: [1, null] },
      number: 0,
      progress: null,
    })
    const task = await mail.get(id)
    if (task.state === 'gone' || task.state === 'done') throw new Error('it is there')
    expect(task.enqueuedAt).toBeInstanceOf(Date)
    expect(Math.abs(task.enqueuedAt.getTime() - clock.wallMs())).toBeLessThan(5000)
    expect((task.dueAt?.getTime() ?? 0) - task.enqueuedAt.getTime()).toBe(60_000)
    expect((task.deadlineAt?.getTime() ?? 0) - task.enqueuedAt.getTime()).toBe(90_000)
  })

  it('has the queue as its type, and is due at an instant when one is given', async () => {
    const { pw, clock } = await openStore()
    const mail = pw.queue('mail')
    const dueAt = new Date(clock.wallMs() + 3_600_000)
    const { id } = await mail.enqueue(1, { dueAt })
    expect(await mail.get(id)).toMatchObject({ type: 'mail', state: 'scheduled', dueAt })
    const { id: now } = await mail.enqueue(1, { dueAt: clock.wallMs() - 5000 })
    expect(await mail.get(now)).toMatchObject({ state: 'ready' })
  })

  it('answers a duplicate with the id that is there (case 15)', async () => {
    const { pw } = await openStore()
    const mail = pw.queue('mail')
    const first = await mail.enqueue(1, { dedupKey: 'k', onDuplicate: 'keep' })
    expect(first).toEqual({ id: expect.any(String), duplicate: false })
    expect(await mail.enqueue(2, { dedupKey: 'k' })).toEqual({ id: first.id, duplicate: true })
    expect(await pw.queue('other').enqueue(2, { dedupKey: 'k' })).toMatchObject({ duplicate: false })
    expect((await mail.stats()).ready).toBe(1)
  })

  it('answers ids that rise in call order, 1000 of one turn in one commit', async () => {
    const { pw } = await openStore()
    const mail = pw.queue('mail')
    const answers = await Promise.all(Array.from({ length: 2500 }, (_, n) => mail.enqueue(n)))
    const ids = answers.map(({ id }) => Number(id))
    expect(new Set(ids).size).toBe(2500)
    expect(ids).toEqual([...ids].sort((a, b) => a - b))
    expect((await mail.list({ limit: 3 })).items.map((task) => task.payload)).toEqual([0, 1, 2])
  })

  it('is there for another connection once the call returned', async () => {
    const url = newUrl()
    const writer = await openStore({ url })
    const reader = await openStore({ url })
    const { id } = await writer.pw.queue('mail').enqueue('x')
    expect(await reader.pw.queue('mail').get(id)).toMatchObject({ payload: 'x' })
    expect(await reader.pw.queue('post').get(id)).toEqual({ state: 'gone' })
  })

  it('goes through where its neighbours of the same turn are refused', async () => {
    const { pw } = await openStore()
    const mail = pw.queue('mail')
    await pw.batch('sealed').seal()
    const outcomes = await Promise.allSettled([
      mail.enqueue(1),
      mail.enqueue(10n),
      mail.enqueue(2, { batch: 'sealed' }),
      mail.enqueue(3, { priority: 101 }),
      mail.enqueue(4),
    ])
    const codes = outcomes.map((outcome) => (outcome.status === 'rejected' ? outcome.reason.code : 'ok'))
    expect(codes).toEqual(['ok', 'PW_PAYLOAD_NOT_JSON', 'PW_BATCH_SEALED', 'PW_OPTION_INVALID', 'ok'])
    expect((await mail.list()).items.map((task) => task.payload)).toEqual([1, 4])
  })
})

describe('a store that fails', () => {
  it.each([
    ['PW_SYNC_FAILED', 1],
    ['PW_STORE_FAILED', 1],
    ['PW_BATCH_SEALED', 4],
  ] as const)('with %s is asked %i times for three tasks of one turn', async (code, calls) => {
    const { pw, connection } = await openStore({ url: 'sqlite::memory:' })
    let asked = 0
    connection.ports.engine.enqueue = async () => {
      asked++
      throw new PieceworkError(code, 'refused')
    }
    const outcomes = await Promise.allSettled([1, 2, 3].map((n) => pw.queue('mail').enqueue(n)))
    expect(outcomes).toMatchObject([{ reason: { code } }, { reason: { code } }, { reason: { code } }])
    expect(asked).toBe(calls)
  })
})

/** An object whose field is made when it is read. */
const read = (get: () => unknown) => Object.defineProperty({}, 'a', { enumerable: true, get })
/** Answers what JSON can hold the first time only. */
function changing() {
  let asked = 0
  return () => (asked++ === 0 ? 1 : 1n)
}

const deep = (levels: number): unknown => (levels === 0 ? 1 : [deep(levels - 1)])

describe('bad input', () => {
  const payloads: [string, unknown, string, Record<string, unknown>?][] = [
    ['a bigint', { a: { b: 1n } }, 'PW_PAYLOAD_NOT_JSON', { path: 'a.b' }],
    ['a Map', { list: [new Map([[1, 2]])] }, 'PW_PAYLOAD_NOT_JSON', { path: 'list[0]' }],
    ['undefined', undefined, 'PW_PAYLOAD_NOT_JSON'],
    ['a function', () => 1, 'PW_PAYLOAD_NOT_JSON'],
    ['NaN', { n: Number.NaN }, 'PW_PAYLOAD_NOT_JSON', { path: 'n' }],
    ['an invalid Date', new Date(Number.NaN), 'PW_PAYLOAD_NOT_JSON'],
    ['a getter that throws', read(() => JSON.parse('{')), 'PW_PAYLOAD_NOT_JSON'],
    ['a value that changes when it is read', read(changing()), 'PW_PAYLOAD_NOT_JSON'],
    ['a buffer of 1.1 MB (case 16)', Buffer.alloc(1_100_000), 'PW_PAYLOAD_NOT_JSON'],
    ['text over 1 MiB', 'x'.repeat(1_048_576), 'PW_PAYLOAD_TOO_LARGE', { bytes: 1_048_578 }],
    ['65 levels', deep(65), 'PW_PAYLOAD_TOO_DEEP'],
  ]
  it.each(payloads)('%s as payload is refused', async (_, payload, code, details = {}) => {
    const { pw } = await openStore({ url: 'sqlite::memory:' })
    const refusal = await refusalOf(pw.queue('mail').enqueue(payload))
    expect(refusal.code).toBe(code)
    expect(refusal.details).toMatchObject(details)
    expect((await pw.queue('mail').stats()).enqueued).toBe(0)
  })

  it('what JSON can hold comes back as it was: NUL, lone surrogates, 64 levels, Dates as text', async () => {
    const { pw } = await openStore()
    const mail = pw.queue('mail')
    for (const payload of ['a\0b', '\ud800', 'x\udc00y', deep(64), null, false, '', { '\0': '日本' }]) {
      const { id } = await mail.enqueue(payload)
      expect(await mail.get(id)).toMatchObject({ payload })
    }
    const itself = Object.create({ toJSON: () => itself }, { n: { value: 1, enumerable: true } })
    expect(await mail.get((await mail.enqueue(itself)).id)).toMatchObject({ payload: { n: 1 } })
    const { id } = await mail.enqueue({ at: new Date(0), left: undefined })
    const task = await mail.get(id)
    expect('payload' in task && task.payload).toEqual({ at: '1970-01-01T00:00:00.000Z' })
  })

  it('any name is kept apart and as it is, but the impossible ones are refused', async () => {
    const { pw } = await openStore()
    const names = ['a:b', 'a/b', '日本', '../x', '%2F', 'e\u0301', '\u00e9', ' ', "';--", 'x'.repeat(200)]
    for (const name of names) {
      const queue = pw.queue(name)
      const { id } = await queue.enqueue(name, { type: name, key: name, dedupKey: name, batch: name })
      expect(await queue.get(id)).toMatchObject({ queue: name, type: name, key: name, dedupKey: name, batch: name })
      expect(await queue.stats()).toMatchObject({ queue: name, enqueued: 1 })
    }
    for (const name of ['', 'a\0b', 'a\nb', '\ud800', 'x'.repeat(201), 7 as never]) {
      expect(await refusalOf(pw.queue(name).enqueue(1))).toMatchObject({ code: 'PW_NAME_INVALID' })
      expect(await refusalOf(pw.queue('q').enqueue(1, { key: name }))).toMatchObject({ code: 'PW_NAME_INVALID' })
      expect(await refusalOf(pw.queue('q').enqueue(1, { type: name }))).toMatchObject({ code: 'PW_NAME_INVALID' })
      expect(await refusalOf(pw.queue('q').enqueue(1, { dedupKey: name }))).toMatchObject({ code: 'PW_NAME_INVALID' })
      expect(await refusalOf(pw.queue('q').enqueue(1, { batch: name }))).toMatchObject({ code: 'PW_NAME_INVALID' })
      expect(await refusalOf(pw.batch(name).seal())).toMatchObject({ code: 'PW_NAME_INVALID' })
    }
    expect((await refusalOf(pw.queue('mail\0').enqueue(1))).details).toMatchObject({ offset: 4 })
  })

  const options: [object, string, RegExp][] = [
    [{ delaysMs: 3 }, 'PW_OPTION_UNKNOWN', /"delayMs"/],
    [{ retries: 3 }, 'PW_OPTION_UNKNOWN', /It has: type, key/],
    [{ delayMs: -1 }, 'PW_OPTION_INVALID', /delayMs is -1/],
    [{ delayMs: 1.5 }, 'PW_OPTION_INVALID', /whole number/],
    [{ delayMs: '5' }, 'PW_OPTION_INVALID', /"5"/],
    [{ priority: 101 }, 'PW_OPTION_INVALID', /from -100 to 100/],
    [{ dueAt: 'tomorrow' }, 'PW_OPTION_INVALID', /dueAt/],
    [{ dueAt: new Date(Number.NaN) }, 'PW_OPTION_INVALID', /dueAt/],
    [{ dueAt: 1, delayMs: 1 }, 'PW_OPTION_INVALID', /one of them/],
    [{ deadlineMs: 0 }, 'PW_OPTION_INVALID', /deadlineMs/],
    [{ headers: { a: 1 } }, 'PW_OPTION_INVALID', /header "a" is 1/],
    [{ headers: { a: '\ud800' } }, 'PW_OPTION_INVALID', /surrogate/],
    [{ headers: ['a'] }, 'PW_OPTION_INVALID', /headers/],
    [{ headers: { a: 'x'.repeat(70_000) } }, 'PW_OPTION_INVALID', /65536/],
    [{ onDuplicate: 'drop', dedupKey: 'd' }, 'PW_OPTION_INVALID', /"keep"/],
    [{ tx: {} }, 'PW_TX_UNSUPPORTED', /transaction/],
  ]
  it.each(options)('the options %j are refused with %s', async (given, code, words) => {
    const { pw } = await openStore({ url: 'sqlite::memory:' })
    const refusal = await refusalOf(pw.queue('mail').enqueue(1, given as never))
    expect(refusal.code).toBe(code)
    expect(refusal.message).toMatch(words)
    expect((await pw.queue('mail').stats()).enqueued).toBe(0)
  })

  it.each([null, 'x', 3, []])('options that are %j are refused', async (given) => {
    const { pw } = await openStore({ url: 'sqlite::memory:' })
    expect(await refusalOf(pw.queue('mail').enqueue(1, given as never))).toMatchObject({ code: 'PW_OPTION_INVALID' })
    const queue = pw.queue('mail', given as never)
    expect(await refusalOf(queue.enqueue(1))).toMatchObject({ code: 'PW_OPTION_INVALID' })
  })
})

describe('schemas', () => {
  const text = v.object({ to: v.pipe(v.string(), v.email()), size: v.optional(v.number(), 1) })

  it('refuse with their issues, and store the value as given', async () => {
    const { pw } = await openStore()
    const mail = pw.queue('mail', { schema: text })
    const refusal = await refusalOf(mail.enqueue({ to: 'ada', size: 'x' } as never))
    expect(refusal.code).toBe('PW_PAYLOAD_INVALID')
    expect(refusal.details.issues).toMatchObject([{ path: 'to' }, { path: 'size' }])
    expect(refusal.message).toContain('size: ')
    const { id } = await mail.enqueue({ to: 'ada@example.org' })
    const task = await mail.get(id)
    expect('payload' in task && task.payload).toEqual({ to: 'ada@example.org' })
  })

  it('may be asynchronous, and a schema that throws is a refusal', async () => {
    const { pw } = await openStore()
    const even = v.pipeAsync(
      v.number(),
      v.checkAsync(async (n) => n % 2 === 0, 'not even'),
    )
    const numbers = pw.queue('numbers', { schema: even })
    await numbers.enqueue(2)
    expect(await refusalOf(numbers.enqueue(3))).toMatchObject({ code: 'PW_PAYLOAD_INVALID' })
    const broken = v.pipe(
      v.number(),
      v.check(() => {
        throw new TypeError('boom')
      }),
    )
    const refusal = await refusalOf(pw.queue('broken', { schema: broken }).enqueue(1))
    expect(refusal).toMatchObject({ code: 'PW_PAYLOAD_INVALID', cause: expect.any(TypeError) })
  })

  it('see what a claim will see: a Date where a Date is wanted is refused now, not buried later', async () => {
    const { pw } = await openStore()
    const dates = pw.queue('dates', { schema: v.object({ at: v.date() }) })
    expect(await refusalOf(dates.enqueue({ at: new Date(0) }))).toMatchObject({ code: 'PW_PAYLOAD_INVALID' })
  })

  it('by type: the type is required, known, and says which schema', async () => {
    const { pw } = await openStore()
    const work = pw.queue('work', { types: { mail: text, count: v.number() } })
    await work.enqueue(3, { type: 'count' })
    const cases: [unknown, object | undefined, string, RegExp][] = [
      [3, undefined, 'PW_OPTION_INVALID', /needs a type.*mail, count/],
      [3, { type: 'coutn' }, 'PW_OPTION_INVALID', /Did you mean "count"/],
      [3, { type: 'mail' }, 'PW_PAYLOAD_INVALID', /schema/],
    ]
    for (const [payload, options, code, words] of cases) {
      const refusal = await refusalOf(work.enqueue(payload as never, options as never))
      expect(refusal.code).toBe(code)
      expect(refusal.message).toMatch(words)
    }
  })

  it.each([
    [{ schema: {} }, 'PW_OPTION_INVALID'],
    [{ types: {} }, 'PW_OPTION_INVALID'],
    [{ types: { a: 1 } }, 'PW_OPTION_INVALID'],
    [{ schema: v.number(), types: { a: v.number() } }, 'PW_OPTION_INVALID'],
    [{ shema: v.number() }, 'PW_OPTION_UNKNOWN'],
    [{ leasMs: 3 }, 'PW_OPTION_UNKNOWN'],
    [{ leaseMs: 3 }, 'PW_OPTION_INVALID'],
    [{ isolate: 'thread' }, 'PW_OPTION_UNKNOWN'],
  ])('queue options %o are refused at the first awaited call, not before', async (given, code) => {
    const { pw } = await openStore({ url: 'sqlite::memory:' })
    const queue = pw.queue('mail', given as never)
    for (const call of [() => queue.enqueue(1), () => queue.stats(), () => queue.enqueueMany([]), () => pw.ready]) {
      expect(await refusalOf(call())).toMatchObject({ code })
    }
    expect(await refusalOf(queue.dead.list())).toMatchObject({ code })
    expect(await refusalOf(queue.drained())).toMatchObject({ code })
  })
})
