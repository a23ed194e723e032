// Conformance: two handles on one store see one another's work and never hold one task both.
import assert from 'node:assert/strict'
import { type Chapter, like } from '../trial.js'

export const handlesChapter: Chapter = {
  title: 'two handles on one store',
  needs: 'persists',
  tests: {
    'see what the other enqueued, claimed and settled': async (t) => {
      const other = await t.another()
      const [id] = await t.add({ queue: 'new', type: 'newer' })
      const delivery = await other.take({ queue: 'new' })
      assert.equal(delivery.id, id)
      assert.equal((await t.task(id)).state, 'leased')
      assert.equal(await t.ack(delivery), 'done')
      assert.equal(await other.state(id), 'gone')
      assert.equal(await other.ack(delivery), 'stale')
    },

    'follow each other in policy, pauses, batches and their end': async (t) => {
      const other = await t.another()
      await t.add({ batch: 'b' })
      await other.add({ batch: 'b' })
      await t.policy({ leaseMs: 1111 })
      assert.equal((await other.take()).leaseMs, 1111)
      await other.engine.configure('queue', 'q', { paused: true }, 'tester')
      assert.deepEqual(await t.claim(), [])
      await t.engine.configure('queue', 'q', { paused: false }, 'tester')
      await t.engine.configure('batch', 'b', null, 'tester')
      const later = await other.take()
      assert.equal(later.batch, null)
      await other.add({ batch: 'b' })
      like(await t.batch('b'), { total: 1 })
    },

    'never claim one task both (case 2)': async (t) => {
      const other = await t.another()
      const added = await t.add(...Array.from({ length: 300 }, () => ({})))
      const claims = await Promise.all(
        Array.from({ length: 60 }, (_, n) => (n % 2 ? t : other).claim({ worker: `w${n % 2}`, max: 5 })),
      )
      assert.deepEqual(
        claims
          .flat()
          .map(({ id }) => id)
          .sort(),
        [...added].sort(),
      )
    },

    'sweep what the other left': async (t) => {
      const other = await t.another()
      await t.add({}, { delayMs: 500, key: 'k' })
      await t.take({ leaseMs: 1000 })
      await t.advance(1000)
      like(await other.sweep(), { expired: 1, matured: 1 })
      like(await t.sweep(), { expired: 0, matured: 0 })
      like(await t.figures(), { ready: 2 })
    },

    'wake one another': async (t) => {
      const other = await t.another()
      const woken = other.engine.wait(['q'], 60_000, new AbortController().signal)
      await t.add({})
      await t.advance(1000)
      assert.equal(await woken, true)
    },
  },
}
