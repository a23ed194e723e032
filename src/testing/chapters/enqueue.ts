// Conformance: what enqueue stores and answers, one task or a thousand, now or later.
import assert from 'node:assert/strict'
import { type Chapter, idsOf, like, refused } from '../trial.js'

export const enqueueChapter: Chapter = {
  title: 'enqueue',
  tests: {
    'answers a thousand tasks in call order, with ids that rise': async (t) => {
      const answers = await t.enqueue(...Array.from({ length: 1000 }, (_, n) => ({ payload: String(n) })))
      assert.equal(answers.length, 1000)
      assert.ok(answers.every(({ state, duplicate }) => state === 'ready' && !duplicate))
      const ids = answers.map(({ id }) => Number(id))
      assert.ok(ids.every((id, n) => n === 0 || id > (ids[n - 1] ?? 0)))
      assert.ok(Number((await t.add({}))[0]) > (ids.at(-1) ?? 0), 'and those of the next call are higher')
      like(await t.figures(), { ready: 1001, enqueued: 1001 })
    },

    'makes an unknown queue by first use; the type is the name of the queue unless given (case 15)': async (t) => {
      const [plain, typed] = await t.add({ queue: 'new' }, { queue: 'new', type: 'other' })
      like(await t.task(plain), { queue: 'new', type: 'new', state: 'ready', number: 0, key: null, batch: null })
      like(await t.task(typed), { queue: 'new', type: 'other' })
    },

    'stores what it was given, and its instants as the wall clock shows them': async (t) => {
      const now = await t.wallMs()
      const given = {
        type: 'a',
        key: 'k',
        priority: 7,
        dedupKey: 'd',
        batch: 'b',
        headers: '{"x":"1"}',
        payload: '[2]',
      }
      const [id] = await t.add({ ...given, delayMs: 5000, deadlineMs: 9000 })
      like(await t.task(id), {
        ...given,
        state: 'scheduled',
        enqueuedAt: now,
        dueAt: now + 5000,
        deadlineAt: now + 9000,
      })
    },

    'keeps the order of one call and of calls after each other for who claims one by one': async (t) => {
      const ids = [...(await t.add({}, {}, {})), ...(await t.add({}, {}))]
      await t.advance(5)
      ids.push(...(await t.add({})))
      const taken: string[] = []
      for (const _ of ids) taken.push((await t.take()).id)
      assert.deepEqual(taken, ids)
    },

    'makes a delayed task ready when its delay is over and no millisecond before': async (t) => {
      const [answer] = await t.enqueue({ delayMs: 1000 })
      assert.equal(answer?.state, 'scheduled')
      await t.advance(999)
      assert.deepEqual(await t.claim(), [])
      await t.advance(1)
      assert.equal((await t.take()).id, answer?.id)
    },

    'matures dueAt when the wall clock has reached it': async (t) => {
      const [answer] = await t.enqueue({ dueAt: (await t.wallMs()) + 5000 })
      assert.equal(answer?.state, 'scheduled')
      await t.advance(4999)
      assert.deepEqual(await t.claim(), [])
      await t.advance(1)
      assert.equal((await t.take()).id, answer?.id)
    },

    'takes a dueAt that has passed as due since then': async (t) => {
      const [now] = await t.add({})
      const [overdue] = await t.enqueue({ dueAt: (await t.wallMs()) - 60_000 })
      assert.equal(overdue?.state, 'ready')
      assert.deepEqual(idsOf(await t.claim()), [overdue?.id, now])
    },

    'answers a call with the same request id as the first time, for 10 minutes (case 20)': async (t) => {
      const task = { queue: 'q', payload: '1' }
      const first = await t.engine.enqueue('r1', [task, task])
      await t.ack(await t.take())
      assert.deepEqual(await t.engine.enqueue('r1', [task, task]), first)
      assert.equal((await t.figures()).enqueued, 2)
      await t.advance(601_000)
      const later = await t.engine.enqueue('r1', [task])
      assert.notEqual(later[0]?.id, first[0]?.id)
      assert.notEqual((await t.engine.enqueue('r2', [task]))[0]?.id, later[0]?.id)
    },

    'refuses a request id that comes again with other tasks, and changes nothing': async (t) => {
      const task = { queue: 'q', payload: '1' }
      const first = await t.engine.enqueue('r', [task])
      for (const other of [[], [task, task], [{ ...task, payload: '2' }], [{ ...task, queue: 'p' }]]) {
        await refused(t.engine.enqueue('r', other), 'PW_REQUEST_CHANGED')
      }
      assert.deepEqual(await t.engine.enqueue('r', [task]), first)
      like(await t.figures(), { ready: 1, enqueued: 1 })
    },

    'keeps nothing of a call that is refused, and hurts no call beside it (case 2)': async (t) => {
      await t.engine.configure('batch', 'closed', { sealed: true }, 'tester')
      const [left, middle, right] = await Promise.allSettled([
        t.add({ payload: '"left"' }),
        t.add({ queue: 'lost' }, { batch: 'closed' }),
        t.add({ payload: '"right"' }),
      ])
      assert.equal(middle?.status, 'rejected')
      assert.deepEqual([left?.status, right?.status], ['fulfilled', 'fulfilled'])
      await refused(t.add({ batch: 'closed' }), 'PW_BATCH_SEALED')
      assert.deepEqual(
        (await t.tasks()).map(({ payload }) => payload),
        ['"left"', '"right"'],
      )
    },
  },
}
