// Conformance: a queue that takes the dead of another as tasks.
import assert from 'node:assert/strict'
import { type Chapter, like, refused, type Trial } from '../trial.js'

const kill = async (t: Trial, queue = 'q') => t.bury(await t.take({ queue }), { code: 'E_BAD', text: 'bad' })

export const deadToChapter: Chapter = {
  title: 'a queue that takes the dead',
  tests: {
    'gets a task with the same id, payload, headers, key and history, and a fresh budget': async (t) => {
      await t.policy({ deadTo: 'bin', deliveriesMax: 2 })
      const [id] = await t.add({ type: 'a', key: 'k', headers: '{"h":"1"}', payload: '"p"', priority: 3 })
      await t.retry(await t.take(), 0)
      const last = await t.take()
      assert.equal(await t.retry(last), 'dead')
      const task = await t.task(id)
      like(task, { queue: 'bin', type: 'a', key: 'k', headers: '{"h":"1"}', payload: '"p"', state: 'ready' })
      like(task, { spent: 0, number: 2, deaths: 0, reason: null, priority: 3 })
      assert.deepEqual(
        (await t.history(id)).map(({ number, outcome }) => [number, outcome]),
        [
          [1, 'retry'],
          [2, 'retry'],
        ],
      )
      like(await t.figures('q', 'a'), { dead: 0, failures: 2, moved: 1, ready: 0 })
      like(await t.figures('bin', 'a'), { dead: 0, ready: 1, enqueued: 0 })
      assert.equal(await t.ack(last), 'stale')
      const delivery = await t.take({ queue: 'bin' })
      like(delivery, { id, number: 3, spent: 1 })
      assert.equal(await t.ack(delivery), 'done')
    },

    'gets what has no type of its own under its own name, and what dies without a delivery': async (t) => {
      await t.policy({ deadTo: 'bin', deliveriesMax: 1 })
      await t.add({}, { deadlineMs: 1000 })
      await t.take({ leaseMs: 1000 })
      await t.advance(1000)
      await t.sweep()
      const [expired, late] = await t.tasks({ queue: 'bin' })
      like(late, { type: 'bin', state: 'ready', deadlineAt: null })
      like(expired, { type: 'bin', state: 'ready' })
    },

    'leaves it dead for its batch, whatever becomes of the task': async (t) => {
      await t.policy({ deadTo: 'bin' })
      await t.follow()
      await t.add({ batch: 'b' }, { batch: 'b' })
      await t.seal()
      await kill(t)
      await t.ack(await t.take())
      await t.sweep()
      like(await t.batch('b'), { total: 2, done: 1, dead: 1 })
      assert.equal((await t.tasks({ queue: 'after' })).length, 1)
      await t.proveCounts()
      const delivery = await t.take({ queue: 'bin' })
      assert.equal(delivery.batch, null)
      await t.ack(delivery)
      like(await t.batch('b'), { total: 2, done: 1, dead: 1 })
    },

    'leaves its key and its dedup key to others': async (t) => {
      await t.policy({ deadTo: 'bin' })
      const [first, second] = await t.add({ key: 'k', dedupKey: 'd' }, { key: 'k' })
      await kill(t)
      assert.equal((await t.take()).id, second)
      assert.notEqual((await t.add({ dedupKey: 'd' }))[0], first)
      // In its new queue it waits behind nobody.
      like(await t.task(first), { queue: 'bin', state: 'ready', key: 'k', dedupKey: null })
    },

    'may have one behind it': async (t) => {
      await t.policy({ deadTo: 'bin' })
      await t.policy({ deadTo: 'last' }, 'bin')
      const [id] = await t.add({ type: 'a' })
      await kill(t)
      await kill(t, 'bin')
      like(await t.task(id), { queue: 'last', type: 'a', state: 'ready' })
      await kill(t, 'last')
      like(await t.task(id), { queue: 'last', state: 'dead', reason: 'buried' })
    },

    'is said to who waits for the task': async (t) => {
      await t.policy({ deadTo: 'bin' })
      const [id] = await t.add({ keepsResult: true })
      await kill(t)
      const [end] = (await t.engine.select('result', { ids: [id ?? ''] }, null)).items
      like(end, { outcome: 'dead', queue: 'q' })
      assert.deepEqual(JSON.parse(String(end?.result)), { reason: 'buried', code: 'E_BAD', error: 'bad' })
    },

    'gets no task that was cancelled, and none that an operator moves elsewhere': async (t) => {
      await t.policy({ deadTo: 'bin' })
      const [cancelled, moved] = await t.add({}, {})
      const [first, second] = await t.claim()
      await t.amend({ ids: [cancelled ?? ''] }, 'cancel')
      await t.amend({ ids: [moved ?? ''] }, { do: 'move', to: 'other' })
      assert.equal(await t.bury(first ?? { receipt: '' }), 'cancelled')
      assert.equal(await t.bury(second ?? { receipt: '' }), 'dead')
      like(await t.task(moved), { queue: 'other', state: 'dead' })
      assert.deepEqual(await t.tasks({ queue: 'bin' }), [])
    },

    'cannot be the queue itself, nor lead back to it, nor leave a key held': async (t) => {
      await refused(t.policy({ deadTo: 'q' }), 'PW_OPTION_INVALID')
      await t.policy({ deadTo: 'two' })
      await t.policy({ deadTo: 'three' }, 'two')
      await refused(t.policy({ deadTo: 'q' }, 'three'), 'PW_OPTION_INVALID')
      await refused(t.policy({ perKey: { onDead: 'hold' } }), 'PW_OPTION_INVALID')
      await refused(t.policy({ deadTo: '' }), 'PW_NAME_INVALID')
      await t.policy({ deadTo: null })
      await t.policy({ deadTo: 'q' }, 'three')
      await t.add({})
      await kill(t)
      like((await t.tasks())[0], { queue: 'q', state: 'dead' })
    },
  },
}
