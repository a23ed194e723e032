// Conformance: how many tasks of a key are out at once, and in which order they go.
import assert from 'node:assert/strict'
import { type Chapter, idsOf, like, type Trial } from '../trial.js'

const claimed = async (t: Trial) => idsOf(await t.claim())
const k = { key: 'k' }

/** Claims and acks one by one; answers the order. */
async function drain(t: Trial): Promise<string[]> {
  const order: string[] = []
  for (let next = (await t.claim({ max: 1 }))[0]; next; next = (await t.claim({ max: 1 }))[0]) {
    order.push(next.id)
    await t.ack(next)
  }
  return order
}

export const keysChapter: Chapter = {
  title: 'keys',
  tests: {
    'of width 1 let one task out at a time, in order': async (t) => {
      const added = [...(await t.add(k, k)), ...(await t.add(k))]
      like(await t.figures(), { ready: 1, waiting: 2 })
      for (const id of added) {
        const [only, ...more] = await t.claim()
        assert.deepEqual([only?.id, more], [id, []])
        await t.ack(only ?? { receipt: '' })
      }
    },

    'keep the order they were promised, unless somebody says that another width is meant': async (t) => {
      await t.policy({ perKey: { width: 3 } })
      await t.policy({ perKey: { width: 1 } })
      await t.add({}, { key: 'k', delayMs: 9000 })
      const wider = { operator: { perKey: { width: 3 } } }
      const asked = (patch: Record<string, unknown>) => t.engine.configure('queue', 'q', patch, 'tester')
      await assert.rejects(asked(wider), { code: 'PW_POLICY_FORCE' })
      await assert.rejects(asked({ unset: [], code: { perKey: { width: 2 } }, operator: null }), {
        code: 'PW_POLICY_FORCE',
      })
      assert.equal((await t.queue()).policy.perKey.width, 1)
      await t.policy({ leaseMs: 5000 })
      await asked({ ...wider, force: true })
      assert.equal((await t.queue()).policy.perKey.width, 3)
      await t.policy({ perKey: { width: 5 } })
      await assert.rejects(asked({ operator: { perKey: { width: 1 } } }), { code: 'PW_POLICY_FORCE' })
    },

    'of width 3 let three out': async (t) => {
      await t.policy({ perKey: { width: 3 } })
      const added = await t.add(k, k, k, k, k)
      const first = await t.claim()
      assert.deepEqual(idsOf(first), added.slice(0, 3))
      await t.ack(first[1] ?? { receipt: '' })
      assert.deepEqual(await claimed(t), [added[3]])
    },

    'do not hinder each other, tasks without a key, or other queues': async (t) => {
      const added = await t.add(k, k, { key: 'l' }, {}, { ...k, queue: 'other' })
      assert.deepEqual(await claimed(t), [added[0], added[2], added[3]])
      assert.equal((await t.take({ queue: 'other' })).id, added[4])
    },

    'hold across the types of a queue': async (t) => {
      const [first, second] = await t.add({ ...k, type: 'a' }, { ...k, type: 'b' })
      assert.deepEqual(await t.claim({ types: ['b'] }), [])
      const head = await t.take({ types: ['a'] })
      assert.equal(head.id, first)
      await t.ack(head)
      assert.equal((await t.take({ types: ['b'] })).id, second)
    },

    'are not blocked by a task that is due later, which then goes by when it was due': async (t) => {
      const [later] = await t.add({ ...k, delayMs: 1000 })
      const [head, second] = await t.add(k, k)
      const out = await t.take()
      assert.equal(out.id, head)
      await t.advance(2000)
      const [third] = await t.add(k)
      await t.sweep()
      assert.equal(await t.state(later), 'waiting')
      await t.ack(out)
      assert.deepEqual(await drain(t), [second, later, third])
    },

    'keep their order against priority': async (t) => {
      const [first] = await t.add(k, { ...k, priority: 100 })
      assert.deepEqual(await claimed(t), [first])
    },

    'stay with a task that is retried, snoozed or whose lease ended': async (t) => {
      const [first] = await t.add(k, k)
      await t.retry(await t.take(), 1000)
      assert.deepEqual(await t.claim(), [])
      await t.advance(1000)
      await t.release(await t.take(), 'handler', 1000)
      assert.deepEqual(await t.claim(), [])
      await t.advance(1000)
      await t.take({ leaseMs: 1000 })
      await t.advance(1000)
      assert.deepEqual(await claimed(t), [first])
    },

    'go on when the head is dead': async (t) => {
      const [, second] = await t.add(k, k)
      await t.bury(await t.take())
      assert.deepEqual(await claimed(t), [second])
    },

    'are held by a dead head where the policy says so, until it is redriven or discarded': async (t) => {
      await t.policy({ perKey: { onDead: 'hold' } })
      const [first, second, third] = await t.add(k, k, k)
      await t.bury(await t.take())
      assert.deepEqual(await t.claim(), [])
      await t.amend({ ids: [first ?? ''] }, 'redrive')
      const again = await t.take()
      assert.equal(again.id, first)
      await t.ack(again)
      await t.bury(await t.take())
      assert.deepEqual(await t.claim(), [])
      await t.amend({ ids: [second ?? ''] }, 'discard')
      assert.deepEqual(await claimed(t), [third])
    },

    'let redriven tasks go before their others, in their old order': async (t) => {
      const [first, second, third] = await t.add(k, k, k)
      await t.bury(await t.take())
      await t.bury(await t.take())
      const out = await t.take()
      assert.equal(out.id, third)
      const [fourth] = await t.add(k)
      await t.amend({ states: ['dead'] }, 'redrive')
      await t.ack(out)
      assert.deepEqual(await drain(t), [first, second, fourth])
    },

    'are free when their head is cancelled or misses its deadline': async (t) => {
      const [first, , third] = await t.add(k, { ...k, deadlineMs: 1000 }, k)
      await t.amend({ ids: [first ?? ''] }, 'cancel')
      await t.advance(1000)
      await t.sweep()
      assert.deepEqual(await claimed(t), [third])
    },
  },
}
