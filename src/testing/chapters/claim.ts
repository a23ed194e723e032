// Conformance: which tasks a claim hands out, in which order, and what it says when it has none.
import assert from 'node:assert/strict'
import { type Chapter, idsOf, like, type Trial } from '../trial.js'

const ask = (t: Trial, ...wants: { queue: string; types: string[] | null; max: number }[]) =>
  t.engine.claim({ worker: 'w', requestId: null, wants })

export const claimChapter: Chapter = {
  title: 'claim',
  tests: {
    'takes at most max, the lowest place first, equal places by id': async (t) => {
      const added = await t.add({}, {}, {}, {})
      assert.deepEqual(idsOf(await t.claim({ max: 3 })), added.slice(0, 3))
      assert.deepEqual(idsOf(await t.claim({ max: 3 })), added.slice(3))
      assert.deepEqual(await t.claim({ max: 3 }), [])
      assert.deepEqual(await t.claim({ max: 0 }), [])
      like(await t.figures(), { leased: 4, ready: 0, deliveries: 4 })
    },

    'tells what a worker must know': async (t) => {
      const now = await t.wallMs()
      await t.policy({ leaseMs: 7000, timeoutMs: 8000, deliveriesMax: 4 })
      const given = { type: 'a', key: 'k', batch: 'b', headers: '{"h":"1"}', payload: '{"p":1}' }
      const [id] = await t.add(given)
      await t.advance(250)
      const delivery = await t.take()
      like(delivery, { id, queue: 'q', ...given, number: 1, spent: 1, deaths: 0, deliveriesMax: 4, waitedMs: 250 })
      like(delivery, { enqueuedAt: now, leaseMs: 7000, timeoutMs: 8000 })
      const task = await t.task(id)
      like(task, { state: 'leased', worker: 'w', fence: delivery.fence, leaseEndsAt: now + 250 + 7000 })
      await t.add({})
      assert.equal((await t.take({ leaseMs: 900 })).leaseMs, 900)
    },

    'lets priority n overtake what was enqueued less than n head starts before it, and no more': async (t) => {
      await t.policy({ headStartMs: 1000 })
      const [old] = await t.add({})
      await t.advance(1000)
      const [middle] = await t.add({})
      await t.advance(999)
      const [urgent, lazy] = await t.add({ priority: 1 }, { priority: -1 })
      await t.advance(2)
      const [late] = await t.add({})
      assert.deepEqual(idsOf(await t.claim()), [old, urgent, middle, late, lazy])
    },

    'takes only the types asked for, all of them for null': async (t) => {
      const [a, b, c] = await t.add({ type: 'a' }, { type: 'b' }, { type: 'c' })
      assert.deepEqual(await t.claim({ types: ['none'] }), [])
      assert.deepEqual(await t.claim({ types: [] }), [])
      assert.deepEqual(idsOf(await t.claim({ types: ['b', 'none', 'c'], max: 1 })), [b])
      assert.deepEqual(idsOf(await t.claim()), [a, c])
    },

    'merges many types by place': async (t) => {
      const added = await t.add(...Array.from({ length: 140 }, (_, n) => ({ type: `type ${n % 70}` })))
      const first = idsOf(await t.claim({ max: 5 }))
      assert.equal(first.length, 5)
      const rest: string[] = []
      for (let took = 1; took > 0; ) {
        const more = idsOf(await t.claim({ max: 100 }))
        took = more.length
        rest.push(...more)
      }
      assert.deepEqual([...first, ...rest].sort(), [...added].sort())
    },

    'serves several wants in one call, and nothing from a queue that nobody knows': async (t) => {
      const [a, b] = await t.add({ queue: 'a' }, { queue: 'b' }, { queue: 'b' })
      const { deliveries, blockedBy } = await ask(
        t,
        { queue: 'a', types: null, max: 9 },
        { queue: 'nowhere', types: null, max: 9 },
        { queue: 'b', types: ['b'], max: 1 },
      )
      assert.deepEqual(idsOf(deliveries), [a, b])
      assert.deepEqual(blockedBy, [])
    },

    'takes nothing from a paused queue or type, and says so': async (t) => {
      const [a, b] = await t.add({ type: 'a' }, { type: 'b' })
      await t.engine.configure('type', 'q\0a', { paused: true }, 'tester')
      assert.deepEqual(idsOf(await t.claim()), [b])
      await t.engine.configure('queue', 'q', { paused: true }, 'tester')
      await t.engine.configure('type', 'q\0a', { paused: false }, 'tester')
      const { deliveries, blockedBy } = await ask(t, { queue: 'q', types: null, max: 9 })
      assert.deepEqual([deliveries, blockedBy], [[], [{ queue: 'q', by: 'pause' }]])
      assert.equal((await t.figures('q', 'a')).paused, true)
      await t.engine.configure('queue', 'q', { paused: false }, 'tester')
      assert.deepEqual(idsOf(await t.claim()), [a])
    },

    'says when something is due next: a delay, or the end of a lease': async (t) => {
      const next = async () => (await ask(t, { queue: 'q', types: null, max: 1 })).nextDueMs
      assert.equal(await next(), null)
      await t.add({ delayMs: 9000 })
      await t.advance(1000)
      assert.equal(await next(), 8000)
      await t.add({})
      await t.take({ leaseMs: 5000 })
      assert.equal(await next(), 5000)
    },

    'answers the same request id with the same deliveries, as long as they are leased': async (t) => {
      const added = await t.add({}, {}, {})
      const first = await t.claim({ requestId: 'r', max: 2 })
      assert.deepEqual(idsOf(first), added.slice(0, 2))
      assert.deepEqual(await t.claim({ requestId: 'r', max: 2 }), first)
      assert.deepEqual(idsOf(await t.claim({ requestId: 'r', worker: 'another', max: 2 })), added.slice(2))
      await t.ack(first[0] ?? { receipt: '' })
      assert.deepEqual(await t.claim({ requestId: 'r', max: 2 }), first.slice(1))
    },

    'that found nothing may ask again under its request id, and one of which nothing is leased any more': async (t) => {
      assert.deepEqual(await t.claim({ requestId: 'r' }), [])
      const added = await t.add({}, {})
      const [first] = await t.claim({ requestId: 'r', max: 1 })
      assert.equal(first?.id, added[0])
      assert.deepEqual(await t.claim({ requestId: 'r', max: 0 }), [first])
      await t.ack(first ?? { receipt: '' })
      assert.deepEqual(await t.claim({ requestId: 'r', max: 0 }), [])
      assert.deepEqual(idsOf(await t.claim({ requestId: 'r' })), added.slice(1))
    },

    'gives one task to one of those who claim at the same time': async (t) => {
      const added = await t.add(...Array.from({ length: 50 }, () => ({})))
      const claims = await Promise.all(Array.from({ length: 7 }, (_, n) => t.claim({ worker: `w${n}`, max: 10 })))
      assert.deepEqual(
        claims
          .flat()
          .map(({ id }) => id)
          .sort(),
        [...added].sort(),
      )
    },

    'numbers deliveries from 1 without a gap, with fences that rise and receipts that never repeat': async (t) => {
      await t.policy({ deliveriesMax: null })
      const [id] = await t.add({})
      const seen: { number: number; fence: number; receipt: string }[] = []
      for (const end of [t.release, t.retry, t.release, t.retry, t.release]) {
        const delivery = await t.take()
        seen.push(delivery)
        await end.call(t, delivery)
        await t.advance(3_600_000)
      }
      assert.deepEqual(
        seen.map(({ number }) => number),
        [1, 2, 3, 4, 5],
      )
      assert.ok(seen.every(({ fence }, n) => fence < 2 ** 53 && fence > (seen[n - 1]?.fence ?? 0)))
      assert.equal(new Set(seen.map(({ receipt }) => receipt)).size, 5)
      like(await t.task(id), { number: 5, spent: 2 })
    },

    'finds a lease that ended without waiting for a sweep': async (t) => {
      const [id] = await t.add({})
      await t.take({ leaseMs: 1000 })
      await t.advance(1000)
      like(await t.take(), { id, number: 2, spent: 2 })
      like(await t.figures(), { expiries: 1, deliveries: 2 })
    },

    'hands out whatever a row holds, and the rest flows on (case 21)': async (t) => {
      const odd = ['', 'no JSON', '{"a":', '\u0000', '"\\ud800"', 'x'.repeat(100_000)]
      await t.add(...odd.map((payload) => ({ payload, headers: payload })), { payload: '"good"' })
      assert.deepEqual(
        (await t.claim()).map(({ payload }) => payload),
        [...odd, '"good"'],
      )
    },

    'wakes who waits when there is work, and lets them go after a while or on a signal': async (t) => {
      const { signal } = new AbortController()
      const woken = t.engine.wait(['other', 'q'], 60_000, signal)
      await t.add({})
      assert.equal(await woken, true)
      const waited = t.engine.wait(['nothing'], 500, signal)
      await t.advance(500)
      assert.equal(await waited, false)
      const stop = new AbortController()
      const stopped = t.engine.wait(['nothing'], 60_000, stop.signal)
      stop.abort()
      assert.equal(await stopped, false)
    },
  },
}
