// Conformance: a store that is closed and opened again goes on where it was.
import assert from 'node:assert/strict'
import { type Chapter, idsOf, like, refused, type Trial } from '../trial.js'

async function reopen(t: Trial): Promise<void> {
  await t.engine.close()
  t.engine = t.store.engine()
  await t.engine.open()
}

export const restartChapter: Chapter = {
  title: 'restart',
  needs: 'persists',
  tests: {
    'keeps every state, figure and row (case 11)': async (t) => {
      await t.policy({ deliveriesMax: 3, dedupWindowMs: 60_000 })
      await t.add({ batch: 'b', dedupKey: 'd' }, {}, {}, { key: 'k' }, { key: 'k' }, { delayMs: 5000 }, { priority: 9 })
      const [a, b, c] = (await t.claim({ max: 3 })) as [never, never, never]
      await t.ack(a)
      await t.bury(b)
      await t.retry(c, 7000)
      await t.engine.configure('queue', 'paused', { paused: true }, 'tester')
      const all = async () => [
        await t.tasks(),
        (await t.engine.measure(null, true)).types,
        (await t.engine.select('history', { ids: idsOf(await t.tasks()) }, null)).items,
        (await t.engine.select('queue', {}, null)).items,
        (await t.engine.select('batch', {}, null)).items,
        await t.audits(),
      ]
      const before = await all()
      await reopen(t)
      assert.deepEqual(await all(), before)
      await t.proveCounts()
    },

    'keeps receipts, answers and dedup keys': async (t) => {
      const ask = { queue: 'q', payload: '1', dedupKey: 'd' }
      const added = await t.engine.enqueue('r', [ask])
      const first = await t.claim({ requestId: 'c' })
      await reopen(t)
      assert.deepEqual(await t.engine.enqueue('r', [ask]), added)
      assert.deepEqual(await t.enqueue({ dedupKey: 'd' }), [{ id: added[0]?.id, state: 'leased', duplicate: true }])
      assert.deepEqual(await t.claim({ requestId: 'c' }), first)
      const settle = () =>
        t.engine.settle({ worker: 'w', flush: 'f' }, [{ receipt: first[0]?.receipt ?? '', do: 'ack' }])
      assert.deepEqual(await settle(), ['done'])
      await reopen(t)
      assert.deepEqual(await settle(), ['done'])
    },

    'gives out no id, fence or receipt twice': async (t) => {
      await t.policy({ deliveriesMax: null })
      const [task] = await t.add({})
      const ids = [Number(task)]
      const fences: number[] = []
      const receipts = new Set<string>()
      for (let n = 0; n < 4; n++) {
        const delivery = await t.take()
        fences.push(delivery.fence)
        receipts.add(delivery.receipt)
        ids.push(Number((await t.add({ queue: 'other' }))[0]))
        await t.release(delivery)
        await reopen(t)
      }
      for (const numbers of [ids, fences])
        assert.deepEqual(
          numbers,
          [...new Set(numbers)].sort((a, b) => a - b),
        )
      assert.equal(receipts.size, 4)
    },

    'finds what fell due while nobody was there': async (t) => {
      const [delayed, wall] = await t.add({ delayMs: 2000 }, { dueAt: (await t.wallMs()) + 4000 })
      const [leased] = await t.add({})
      await t.take({ leaseMs: 1000 })
      await t.engine.close()
      await t.advance(5000)
      t.engine = t.store.engine()
      await t.engine.open()
      like(await t.sweep(), { expired: 1, matured: 2 })
      for (const id of [delayed, wall, leased]) assert.equal(await t.state(id), 'ready')
    },

    'refuses calls on a closed handle, and closes and opens as often as asked': async (t) => {
      await t.add({})
      const closing = [t.engine.close(), t.engine.close()]
      await refused(t.add({}), 'PW_CLOSED')
      await Promise.all(closing)
      await t.engine.close()
      await Promise.all([t.engine.open(), t.engine.open()])
      like(await t.figures(), { ready: 1, enqueued: 1 })
      assert.deepEqual(await t.engine.migrate(true), [], 'an open store is of this format')
    },
  },
}
