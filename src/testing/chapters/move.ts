// Conformance: what goes with a task to another queue, and when a leased one follows.
import assert from 'node:assert/strict'
import { type Chapter, like, type Trial } from '../trial.js'

const to = { do: 'move', to: 'other' } as const

/** How a delivery can end otherwise than by ack, and where the task is then in the other queue. */
const ends: [string, (t: Trial) => Promise<unknown>, string][] = [
  ['a retry', async (t) => t.retry(await moved(t), 5000), 'scheduled'],
  ['a release', async (t) => t.release(await moved(t)), 'ready'],
  ['a release with a delay', async (t) => t.release(await moved(t), 'handler', 5000), 'scheduled'],
  ['a burial', async (t) => t.bury(await moved(t)), 'dead'],
  [
    'its lease end',
    async (t) => {
      const { receipt } = await moved(t)
      await t.advance(30_000)
      await t.sweep()
      assert.equal(await t.ack({ receipt }), 'stale')
      assert.equal(await t.extend({ receipt }, 5000), 'stale')
    },
    'ready',
  ],
]

/** A delivery from `q` of a task of its own type, which was asked to move meanwhile. */
async function moved(t: Trial) {
  const delivery = await t.take()
  like(await t.amend({ queue: 'q', states: ['leased'] }, to), { changed: 0, asked: 1, ids: [delivery.id] })
  like(await t.task(delivery.id), { queue: 'q', state: 'leased' })
  return delivery
}

const endTests: Chapter['tests'] = Object.fromEntries(
  ends.map(([how, end, state]) => [
    `a leased task follows at ${how}`,
    async (t: Trial) => {
      const [id] = await t.add({})
      await end(t)
      like(await t.task(id), { id, queue: 'other', type: 'other', state, number: 1 })
      like(await t.figures('q'), { scheduled: 0, ready: 0, leased: 0, dead: 0, deliveries: 1, moved: 1 })
      like(await t.figures('other'), { enqueued: 0, [state]: 1, deliveries: 0, moved: 0 })
      assert.deepEqual(await t.claim(), [])
      if (state !== 'dead') return
      await t.amend({ queue: 'other' }, 'redrive')
      like(await t.take({ queue: 'other' }), { id, queue: 'other', number: 2, spent: 1 })
    },
  ]),
)

export const moveChapter: Chapter = {
  title: 'move',
  tests: {
    'takes id, type, payload, place, deliveries and history along': async (t) => {
      await t.add({ queue: 'other', type: 'a', delayMs: 1 })
      const [id] = await t.add({ type: 'a', payload: '"p"', headers: '{"h":"1"}', priority: 1, batch: 'b' })
      await t.retry(await t.take(), 0)
      await t.advance(10)
      await t.sweep()
      const before = await t.task(id)
      like(await t.amend({ queue: 'q' }, to), { changed: 1, asked: 0, ids: [id] })
      assert.deepEqual(await t.task(id), { ...before, queue: 'other' })
      assert.equal((await t.history(id)).length, 1)
      like(await t.batch('b'), { total: 1, done: 0, cancelled: 0 })
      assert.deepEqual(await t.claim(), [])
      // Its head start is as long as ever.
      like(await t.take({ queue: 'other' }), { id, queue: 'other', type: 'a', number: 2, payload: '"p"' })
    },

    'moves what is scheduled, waiting and ready, and never what is dead or there already': async (t) => {
      const [dead] = await t.add({})
      await t.bury(await t.take())
      const [there] = await t.add({ queue: 'other', batch: 'b' })
      const [ready, first, second, later] = await t.add({}, { key: 'k' }, { key: 'k' }, { delayMs: 9000, key: 'l' })
      const ids = [ready, first, second, later]
      assert.deepEqual((await t.amend({}, to, 1000, true)).ids, ids)
      like(await t.task(ready), { queue: 'q' })
      assert.deepEqual((await t.amend({}, to, 2)).ids, ids.slice(0, 2))
      assert.deepEqual((await t.amend({}, to)).ids, ids.slice(2))
      assert.deepEqual(await t.amend({}, to), { changed: 0, asked: 0, ids: [] })
      like(await t.task(dead), { queue: 'q', state: 'dead' })
      like(await t.figures('other'), { ready: 3, waiting: 1, scheduled: 1, enqueued: 1 })
      like(await t.figures('q'), { ready: 0, waiting: 0, scheduled: 0, dead: 1, moved: 4 })
      const given = await t.claim({ queue: 'other' })
      assert.deepEqual(
        given.map(({ id }) => id),
        [there, ready, first],
      )
      const [audit] = (await t.audits()).filter(({ action }) => action === 'move')
      like(audit, { actor: 'tester', subject: ready })
    },

    'a dry run makes no queue': async (t) => {
      const [id] = await t.add({})
      like(await t.amend({}, to, 1000, true), { changed: 1, ids: [id] })
      assert.deepEqual((await t.engine.select('queue', { name: 'other' }, null)).items, [])
    },

    'a keyed task leaves its slot behind and takes its turn in the other queue': async (t) => {
      const [there] = await t.add({ queue: 'other', key: 'k' })
      const [first, second] = await t.add({ key: 'k' }, { key: 'k' })
      await t.amend({ ids: [first ?? ''] }, to)
      like(await t.task(first), { queue: 'other', state: 'waiting' })
      like(await t.task(second), { queue: 'q', state: 'ready' })
      const delivery = await t.take({ queue: 'other' })
      assert.equal(delivery.id, there)
      assert.deepEqual(await t.claim({ queue: 'other' }), [])
      await t.ack(delivery)
      like(await t.take({ queue: 'other' }), { id: first })
    },

    'takes its dedup key along unless another task holds it there': async (t) => {
      const [free, held] = await t.add({ dedupKey: 'free' }, { dedupKey: 'held' })
      const [there] = await t.add({ queue: 'other', dedupKey: 'held' })
      await t.amend({ queue: 'q' }, to)
      const again = await t.enqueue({ queue: 'other', dedupKey: 'free' }, { queue: 'other', dedupKey: 'held' })
      assert.deepEqual(
        again.map(({ id, duplicate }) => [id, duplicate]),
        [
          [free, true],
          [there, true],
        ],
      )
      like(await t.task(held), { queue: 'other', dedupKey: null })
      const anew = await t.enqueue({ dedupKey: 'free' }, { dedupKey: 'held' })
      assert.deepEqual(
        anew.map(({ duplicate }) => duplicate),
        [false, false],
      )
    },

    ...endTests,

    'an ack wins over a move': async (t) => {
      await t.add({})
      assert.equal(await t.ack(await moved(t)), 'done')
      like(await t.figures('q'), { done: 1, moved: 0 })
    },

    'a cancellation wins over a move': async (t) => {
      await t.add({})
      const delivery = await moved(t)
      await t.amend({ ids: [delivery.id] }, 'cancel')
      assert.equal(await t.retry(delivery), 'cancelled')
      like(await t.figures('q'), { leased: 0, cancelled: 1, moved: 0 })
    },

    'the last word counts for a task that is asked twice': async (t) => {
      const [id] = await t.add({})
      const delivery = await moved(t)
      assert.deepEqual(await t.amend({ queue: 'q' }, to), { changed: 0, asked: 0, ids: [] })
      like(await t.amend({ queue: 'q' }, { do: 'move', to: 'third' }), { asked: 1 })
      await t.release(delivery)
      like(await t.task(id), { queue: 'third', type: 'third', state: 'ready' })
    },
  },
}
