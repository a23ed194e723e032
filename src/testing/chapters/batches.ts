// Conformance: what a batch counts, when it is finished, and how it takes no more or is forgotten.
import assert from 'node:assert/strict'
import { type Chapter, like, refused } from '../trial.js'

const b = { batch: 'b' }

export const batchesChapter: Chapter = {
  title: 'batches',
  tests: {
    'count what became of their tasks, and finish with the last (case 5)': async (t) => {
      await t.add(b, b, b)
      const [first, second, third] = await t.claim()
      await t.ack(first ?? { receipt: '' })
      await t.bury(second ?? { receipt: '' })
      like(await t.batch('b'), { total: 3, done: 1, dead: 1, cancelled: 0, finishedAt: null, sealed: false })
      await t.seal()
      await t.advance(500)
      const now = await t.wallMs()
      await t.ack(third ?? { receipt: '' })
      await t.sweep()
      like(await t.batch('b'), { total: 3, done: 2, dead: 1, finishedAt: now, sealed: true })
    },

    'finish also when their last member is purged': async (t) => {
      const [, second] = await t.add(b, b)
      await t.seal()
      await t.ack(await t.take())
      await t.amend({ ids: [second ?? ''] }, 'purge')
      await t.sweep()
      const batch = await t.batch('b')
      like(batch, { total: 2, done: 1, cancelled: 1 })
      assert.notEqual(batch.finishedAt, null)
    },

    'are not finished before they are sealed, and then at once': async (t) => {
      await t.add(b)
      await t.ack(await t.take())
      await t.sweep()
      like(await t.batch('b'), { total: 1, done: 1, finishedAt: null })
      await t.advance(500)
      like(await t.seal(), { total: 1, sealed: true, finishedAt: await t.wallMs() })
      like(await t.seal('empty'), { total: 0, sealed: true, finishedAt: await t.wallMs() })
    },

    'are finished for ever: a redrive counts, and a discard counts as cancelled': async (t) => {
      const ids = await t.add(b, b)
      await t.seal()
      for (const delivery of await t.claim()) await t.bury(delivery)
      await t.sweep()
      const { finishedAt } = await t.batch('b')
      assert.notEqual(finishedAt, null)
      await t.advance(500)
      await t.amend({ ids: ids.slice(0, 1) }, 'redrive')
      like(await t.batch('b'), { dead: 1, finishedAt })
      await t.amend({ ids: ids.slice(1) }, 'discard')
      await t.ack(await t.take())
      await t.sweep()
      like(await t.batch('b'), { total: 2, done: 1, dead: 0, cancelled: 1, finishedAt })
    },

    'count retries and deliveries that came back by themselves': async (t) => {
      await t.add(b)
      await t.retry(await t.take(), 0)
      await t.take({ leaseMs: 1000 })
      await t.advance(1000)
      await t.sweep()
      like(await t.batch('b'), { total: 1, retries: 1, returned: 1 })
    },

    'count no retry for the failure that was the last': async (t) => {
      await t.policy({ deliveriesMax: 2 })
      await t.add(b)
      await t.retry(await t.take(), 0)
      await t.retry(await t.take(), 0)
      like(await t.batch('b'), { total: 1, dead: 1, retries: 1 })
    },

    'do not count a duplicate': async (t) => {
      await t.add({ ...b, dedupKey: 'd' }, { ...b, dedupKey: 'd' }, { ...b, identity: 'i' }, { ...b, identity: 'i' })
      like(await t.batch('b'), { total: 2 })
    },

    'take nothing more once they are sealed': async (t) => {
      await t.add(b)
      await t.engine.configure('batch', 'b', { info: { from: 'a' } }, 'tester')
      const sealed = await t.engine.configure('batch', 'b', { sealed: true, info: { to: 'z' } }, 'tester')
      like(sealed, { name: 'b', sealed: true, total: 1, info: { from: 'a', to: 'z' } })
      await refused(t.add(b), 'PW_BATCH_SEALED')
      await refused(t.seal(), 'PW_BATCH_SEALED')
      assert.equal(await t.ack(await t.take()), 'done')
      like(await t.batch('b'), { total: 1, done: 1 })
    },

    'are forgotten without their tasks': async (t) => {
      const [id] = await t.add(b)
      const delivery = await t.take()
      await t.engine.configure('batch', 'b', null, 'tester')
      assert.equal((await t.task(id)).batch, null)
      assert.equal(await t.ack(delivery), 'done')
      assert.deepEqual((await t.engine.select('batch', {}, null)).items, [])
      await refused(t.engine.configure('batch', 'b', null, 'tester'), 'PW_BATCH_UNKNOWN')
    },
  },
}
