// Conformance: how a delivery ends, what that costs the task, and that an end is told once.
import assert from 'node:assert/strict'
import type { Verdict } from '../../engine/contract.js'
import { type Chapter, idsOf, like } from '../trial.js'

const backoff = (patch: object) => ({ backoff: { baseMs: 1000, factor: 2, maxMs: 3000, jitter: 'none', ...patch } })
const outcomes = (rows: readonly { outcome: string }[]) => rows.map(({ outcome }) => outcome)

export const settleChapter: Chapter = {
  title: 'settle',
  tests: {
    'leaves nothing of a done task but counters (case 16)': async (t) => {
      await t.add(...Array.from({ length: 500 }, () => ({ payload: '"gone"' })))
      const verdicts = (await t.claim({ max: 500 })).map(({ receipt }): Verdict => ({ receipt, do: 'ack' }))
      assert.deepEqual([...new Set(await t.settle(...verdicts))], ['done'])
      assert.deepEqual(await t.tasks(), [])
      like(await t.figures(), { enqueued: 500, deliveries: 500, done: 500, ready: 0, leased: 0, backlogAgeMs: null })
      await t.add({})
      await t.retry(await t.take(), 0)
      const last = await t.take()
      await t.ack(last)
      assert.deepEqual(await t.history(last.id), [])
    },

    'answers many verdicts in their order, also two on one receipt': async (t) => {
      await t.add({}, {}, {}, {})
      const [a, b, c, d] = (await t.claim()).map(({ receipt }) => receipt) as [string, string, string, string]
      const error = { code: null, text: 'x' }
      const answers = await t.settle(
        { receipt: b, do: 'bury', error },
        { receipt: a, do: 'ack' },
        { receipt: 'none', do: 'ack' },
        { receipt: a, do: 'ack' },
        { receipt: d, do: 'release', by: 'stop' },
        { receipt: c, do: 'retry', error },
      )
      assert.deepEqual(answers, ['dead', 'done', 'stale', 'stale', 'ready', 'scheduled'])
    },

    'answers the same worker and flush as the first time (case 20)': async (t) => {
      await t.add({}, {})
      const [a, b] = await t.claim()
      const flush = (worker: string, name: string, { receipt = '' } = {}) =>
        t.engine.settle({ worker, flush: name }, [{ receipt, do: 'ack' }])
      assert.deepEqual(await flush('w', '1', a), ['done'])
      assert.deepEqual(await flush('w', '1', a), ['done'])
      assert.deepEqual(await flush('w', '2', a), ['stale'])
      assert.deepEqual(await flush('another', '1', b), ['done'], 'the flush of another worker is another')
      like(await t.figures(), { done: 2, stale: 1 })
    },

    'brings a failed task back after a backoff that grows to its ceiling': async (t) => {
      await t.policy({ ...backoff({}), deliveriesMax: null })
      const [id] = await t.add({})
      for (const delayMs of [1000, 2000, 3000, 3000]) {
        assert.equal(await t.retry(await t.take()), 'scheduled')
        await t.advance(delayMs - 1)
        assert.deepEqual(await t.claim(), [], `${delayMs} ms are not over`)
        await t.advance(1)
      }
      like(await t.take(), { id, number: 5 })
      like(await t.figures(), { failures: 4 })
    },

    'draws the delay between 0 and the backoff when it jitters, so that failures come back apart': async (t) => {
      await t.policy(backoff({ jitter: 'full' }))
      const now = await t.wallMs()
      const ids = await t.add(...Array.from({ length: 20 }, () => ({})))
      for (const delivery of await t.claim()) await t.retry(delivery)
      const due = await Promise.all(ids.map(async (id) => ((await t.task(id)).dueAt ?? 0) - now))
      assert.ok(due.every((ms) => ms >= 0 && ms <= 1000))
      assert.ok(new Set(due).size > 5)
    },

    'takes the delay that a retry names, and puts it behind what was due before': async (t) => {
      const [first] = await t.add({})
      assert.equal(await t.retry(await t.take(), 500), 'scheduled')
      const [second] = await t.add({})
      await t.advance(500)
      assert.deepEqual(idsOf(await t.claim()), [second, first])
    },

    'gives a stopping worker back what it has, any number of times, at its old place': async (t) => {
      await t.policy({ releasesMax: 2, deliveriesMax: 2 })
      const [id] = await t.add({})
      await t.advance(10)
      await t.add({})
      for (let n = 1; n <= 20; n++) {
        const delivery = await t.take()
        like(delivery, { id, number: n, spent: 1 })
        assert.equal(await t.release(delivery, n % 2 ? 'stop' : 'unstarted'), 'ready')
      }
      like(await t.task(id), { number: 20, spent: 0 })
      like(await t.figures(), { releases: 20, failures: 0 })
    },

    'lets a handler release releasesMax times, then it counts as a retry': async (t) => {
      await t.policy({ releasesMax: 2, ...backoff({}) })
      const [id] = await t.add({})
      assert.equal(await t.release(await t.take(), 'handler'), 'ready')
      assert.equal(await t.release(await t.take(), 'overloaded'), 'ready')
      assert.equal(await t.release(await t.take(), 'handler'), 'scheduled')
      like(await t.task(id), { number: 3, spent: 1, releases: 2 })
      like(await t.figures(), { releases: 2, failures: 1 })
    },

    'keeps the place of a task that is released for later': async (t) => {
      const [id] = await t.add({})
      const { place } = await t.task(id)
      await t.advance(5)
      await t.add({})
      assert.equal(await t.release(await t.take(), 'handler', 400), 'scheduled')
      await t.advance(400)
      const first = await t.take()
      assert.equal(first.id, id)
      assert.equal((await t.task(id)).place, place)
    },

    'charges a counted release, to the last one of the budget': async (t) => {
      await t.policy({ deliveriesMax: 2 })
      const [id] = await t.add({})
      assert.equal(await t.release(await t.take(), 'counted'), 'ready')
      assert.equal(await t.release(await t.take(), 'counted'), 'dead')
      like(await t.task(id), { spent: 2, reason: 'spent' })
      like(await t.figures(), { releases: 2, dead: 1 })
    },

    'buries at once, and keeps why': async (t) => {
      const [id] = await t.add({})
      const delivery = await t.take()
      assert.equal(await t.bury(delivery, { code: null, text: 'no such address' } as never), 'dead')
      like(await t.task(id), { state: 'dead', reason: 'buried', error: 'no such address', deadAt: await t.wallMs() })
      like((await t.history(id))[0], {
        number: 1,
        fence: delivery.fence,
        outcome: 'bury',
        worker: 'w',
        error: 'no such address',
      })
      like(await t.figures(), { failures: 1, dead: 1 })
    },

    'charges failures, timeouts and lost leases to one budget, and ends exactly with it (case 3)': async (t) => {
      await t.policy({ deliveriesMax: 4, ...backoff({ baseMs: 0 }) })
      const [id] = await t.add({})
      assert.equal(await t.retry(await t.take()), 'scheduled')
      await t.take({ leaseMs: 1000 })
      await t.advance(1000)
      await t.sweep()
      assert.equal(await t.retry(await t.take(), 0, { code: 'PW_TIMEOUT', text: 'late' } as never), 'scheduled')
      const last = await t.take()
      like(last, { number: 4, spent: 4, deliveriesMax: 4 })
      assert.equal(await t.retry(last), 'dead')
      assert.deepEqual(outcomes(await t.history(id)), ['retry', 'expired', 'timeout', 'retry'])
      like(await t.task(id), { state: 'dead', reason: 'spent', number: 4, spent: 4 })
      like(await t.figures(), { failures: 3, expiries: 1, deliveries: 4 })
      await t.advance(3_600_000)
      assert.deepEqual(await t.claim(), [])
    },

    'has no budget when deliveriesMax is null': async (t) => {
      await t.policy({ deliveriesMax: null, ...backoff({ baseMs: 0 }) })
      await t.add({})
      for (let n = 0; n < 30; n++) assert.equal(await t.retry(await t.take()), 'scheduled')
      assert.equal((await t.take()).deliveriesMax, null)
    },
  },
}
