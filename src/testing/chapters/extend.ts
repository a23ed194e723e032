// Conformance: how a lease is made longer or shorter, and what an extension tells of a task to be cancelled.
import assert from 'node:assert/strict'
import type { ClaimedTask } from '../../engine/contract.js'
import { type Chapter, like } from '../trial.js'

export const extendChapter: Chapter = {
  title: 'extend',
  tests: {
    'carries a delivery as long as it is repeated (case 10)': async (t) => {
      const [id] = await t.add({})
      const delivery = await t.take({ leaseMs: 1000 })
      for (let n = 0; n < 8; n++) {
        await t.advance(500)
        assert.equal(await t.extend(delivery, 1000), 'held')
        await t.sweep()
      }
      like(await t.task(id), { state: 'leased', number: 1, leaseEndsAt: (await t.wallMs()) + 1000 })
      assert.equal(await t.ack(delivery), 'done')
      like(await t.figures(), { deliveries: 1, expiries: 0 })
    },

    'may shorten a lease': async (t) => {
      const [id] = await t.add({})
      const delivery = await t.take({ leaseMs: 60_000 })
      assert.equal(await t.extend(delivery, 100), 'held')
      await t.advance(100)
      assert.equal((await t.sweep()).expired, 1)
      assert.equal(await t.state(id), 'ready')
    },

    'stores progress, and keeps it when none is given': async (t) => {
      const [id] = await t.add({})
      const delivery = await t.take()
      await t.extend(delivery, 5000, '{"done":3}')
      await t.extend(delivery, 5000)
      like(await t.task(id), { progress: '{"done":3}' })
    },

    'takes a lease up again that ended by time, as the same delivery': async (t) => {
      const [id] = await t.add({ key: 'k' })
      const delivery = await t.take({ leaseMs: 1000 })
      await t.advance(1000)
      await t.sweep()
      assert.equal(await t.extend(delivery, 1000), 'held')
      like(await t.task(id), { state: 'leased', number: 1, spent: 1, fence: delivery.fence, worker: 'w' })
      assert.deepEqual(await t.history(id), [])
      assert.deepEqual(await t.claim(), [])
      assert.equal(await t.ack(delivery), 'done')
      like(await t.figures(), { expiries: 1, deliveries: 1, done: 1 })
    },

    'answers each receipt of a call in its order, and tells of a cancel': async (t) => {
      await t.add({}, {})
      const [a, b] = (await t.claim()) as [ClaimedTask, ClaimedTask]
      await t.amend({ ids: [a.id] }, 'cancel')
      const asks = [b.receipt, 'none', a.receipt].map((receipt) => ({ receipt, leaseMs: 4000 }))
      assert.deepEqual(await t.engine.extend('w', asks), ['held', 'stale', 'cancelled'])
      assert.deepEqual(await t.engine.extend('w', []), [])
    },
  },
}
