// Conformance: dedup keys and identities, that is when two tasks are one.
import assert from 'node:assert/strict'
import { type Chapter, like } from '../trial.js'

export const dedupChapter: Chapter = {
  title: 'dedup keys and identities',
  tests: {
    'answer the task that is there, in every state it can be open in (case 15)': async (t) => {
      const [scheduled] = await t.enqueue({ dedupKey: 'd', delayMs: 1000 })
      const again = () => t.enqueue({ dedupKey: 'd', payload: '"lost"' })
      assert.deepEqual(await again(), [{ id: scheduled?.id, state: 'scheduled', duplicate: true }])
      await t.advance(1000)
      const held = await t.take()
      assert.deepEqual(await again(), [{ id: scheduled?.id, state: 'leased', duplicate: true }])
      await t.release(held)
      assert.deepEqual(await again(), [{ id: scheduled?.id, state: 'ready', duplicate: true }])
      like(await t.task(scheduled?.id), { payload: '1', dedupKey: 'd' })
      like(await t.figures(), { enqueued: 1, ready: 1 })
    },

    'are one for two tasks of one call, with one answer': async (t) => {
      const [first, second] = await t.enqueue({ dedupKey: 'd', key: 'k' }, { dedupKey: 'd' })
      assert.deepEqual([first?.state, first?.duplicate], ['ready', false])
      assert.deepEqual(second, { id: first?.id, state: 'ready', duplicate: true })
    },

    'belong to one queue': async (t) => {
      const answers = await t.enqueue({ dedupKey: 'd' }, { dedupKey: 'd', queue: 'other' })
      assert.deepEqual(
        answers.map(({ duplicate }) => duplicate),
        [false, false],
      )
    },

    'are free when their task is done, without a window': async (t) => {
      const [first] = await t.add({ dedupKey: 'd' })
      await t.ack(await t.take())
      const [second] = await t.enqueue({ dedupKey: 'd' })
      assert.equal(second?.duplicate, false)
      assert.notEqual(second?.id, first)
    },

    'answer the ended task within its window, however it ended': async (t) => {
      await t.policy({ dedupWindowMs: 5000 })
      const [done, gone] = await t.add({ dedupKey: 'd' }, { dedupKey: 'e', delayMs: 60_000 })
      await t.ack(await t.take())
      await t.amend({ ids: [gone ?? ''] }, 'cancel')
      await t.advance(4999)
      await t.sweep()
      assert.deepEqual(await t.enqueue({ dedupKey: 'd' }, { dedupKey: 'e' }), [
        { id: done, state: 'gone', duplicate: true },
        { id: gone, state: 'gone', duplicate: true },
      ])
      await t.advance(1)
      assert.equal((await t.enqueue({ dedupKey: 'd' }))[0]?.duplicate, false)
    },

    'are given up by a dead task, whose discard frees nobody else (case 14)': async (t) => {
      const [first] = await t.add({ dedupKey: 'd' })
      await t.bury(await t.take())
      const [second] = await t.add({ dedupKey: 'd' })
      assert.notEqual(second, first)
      await t.amend({ ids: [first ?? ''] }, 'discard')
      assert.deepEqual(await t.enqueue({ dedupKey: 'd' }), [{ id: second, state: 'ready', duplicate: true }])
      await t.ack(await t.take())
      assert.equal((await t.enqueue({ dedupKey: 'd' }))[0]?.duplicate, false)
    },

    'are taken back by a redrive only when nobody holds them': async (t) => {
      const [first] = await t.add({ dedupKey: 'd' })
      await t.bury(await t.take())
      const [second] = await t.add({ dedupKey: 'd' })
      await t.amend({ ids: [first ?? ''] }, 'redrive')
      assert.equal((await t.task(first)).dedupKey, null)
      assert.equal((await t.enqueue({ dedupKey: 'd' }))[0]?.id, second)
      await t.bury(await t.take())
      await t.bury(await t.take())
      await t.amend({ ids: [second ?? ''] }, 'redrive')
      assert.deepEqual(await t.enqueue({ dedupKey: 'd' }), [{ id: second, state: 'ready', duplicate: true }])
    },

    'let an identity be enqueued once per batch, also after its task ended, until the batch is forgotten': async (
      t,
    ) => {
      const [first] = await t.add({ batch: 'b', identity: 'line 1' })
      await t.ack(await t.take())
      assert.deepEqual(await t.enqueue({ batch: 'b', identity: 'line 1' }, { batch: 'c', identity: 'line 1' }), [
        { id: first, state: 'gone', duplicate: true },
        { id: (await t.tasks())[0]?.id, state: 'ready', duplicate: false },
      ])
      await t.engine.configure('batch', 'b', null, 'tester')
      assert.equal((await t.enqueue({ batch: 'b', identity: 'line 1' }))[0]?.duplicate, false)
      like(await t.batch('b'), { total: 1, done: 0 })
    },

    'let an identity stand for the task that a dedup key found': async (t) => {
      const [there] = await t.add({ dedupKey: 'd' })
      await t.add({ dedupKey: 'd', batch: 'b', identity: 'i' })
      assert.deepEqual(await t.enqueue({ batch: 'b', identity: 'i' }), [{ id: there, state: 'ready', duplicate: true }])
    },
  },
}
