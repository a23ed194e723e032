// Conformance: what follows a batch is enqueued once, when that has finished, and keeps the batch it is in open.
import assert from 'node:assert/strict'
import { type Chapter, like, refused, type Trial } from '../trial.js'

const b = { batch: 'b' }

/** What lies in queue `after`; a sweep ends what an engine has not ended by itself. */
async function after(t: Trial): Promise<string[]> {
  await t.sweep()
  return (await t.tasks({ queue: 'after' })).map(({ payload }) => payload)
}

/** Each of these batches gets one task, which `end` then finds leased. */
async function leasedIn(t: Trial, ...names: string[]) {
  await t.add(...names.map((batch) => ({ batch })))
  return t.claim()
}

export const followUpsChapter: Chapter = {
  title: 'what follows a batch',
  tests: {
    'comes when the last task has ended, however it ended': async (t) => {
      await t.follow()
      const [first, second] = await leasedIn(t, 'b', 'b')
      like(await t.seal(), { total: 2, followUp: { queue: 'after', type: 'after', id: null } })
      assert.deepEqual(await after(t), [])
      await t.ack(first ?? { receipt: '' })
      assert.deepEqual(await after(t), [])
      await t.bury(second ?? { receipt: '' })
      assert.deepEqual(await after(t), ['"end"'])
      const [task] = await t.tasks({ queue: 'after' })
      like(task, { state: 'ready', batch: null })
      like(await t.batch('b'), { followUp: { queue: 'after', type: 'after', id: task?.id } })
      assert.equal(await t.ack(await t.take({ queue: 'after' })), 'done')
    },

    'comes with the seal when nothing is open, also of a batch that had no task': async (t) => {
      await t.follow()
      await t.ack((await leasedIn(t, 'b'))[0] ?? { receipt: '' })
      assert.deepEqual(await after(t), [])
      await t.seal()
      await t.follow({ payload: '"of the empty"' }, 'empty')
      await t.seal('empty')
      assert.deepEqual(await after(t), ['"end"', '"of the empty"'])
    },

    'comes once: neither redrive, late success, discard nor purge repeat it': async (t) => {
      await t.follow()
      const [purged] = await t.add({ ...b, delayMs: 60_000 })
      const [first, second] = await leasedIn(t, 'b', 'b')
      await t.seal()
      await t.bury(first ?? { receipt: '' })
      await t.bury(second ?? { receipt: '' })
      await t.amend({ ids: [purged ?? ''] }, 'purge')
      assert.deepEqual(await after(t), ['"end"'])
      await t.amend({ ids: [first?.id ?? ''] }, 'redrive')
      await t.ack(await t.take())
      await t.amend({ ids: [second?.id ?? ''] }, 'discard')
      assert.deepEqual(await after(t), ['"end"'])
      like(await t.batch('b'), { total: 3, done: 1, dead: 0, cancelled: 2 })
    },

    'has everything that a task can have': async (t) => {
      await t.follow({ type: 'sum', key: 'k', priority: 2, delayMs: 1000, headers: '{"a":"b"}' })
      await t.seal()
      await t.sweep()
      const [task] = await t.tasks({ queue: 'after' })
      like(task, { type: 'sum', key: 'k', priority: 2, state: 'scheduled', headers: '{"a":"b"}' })
      await t.advance(1000)
      await t.sweep()
      like(await t.take({ queue: 'after' }), { type: 'sum', key: 'k', payload: '"end"' })
    },

    'can be changed until the batch has finished, and then no more': async (t) => {
      await t.follow({ payload: '"old"' })
      await t.follow()
      await t.follow()
      const [delivery] = await leasedIn(t, 'b')
      await t.seal()
      await t.ack(delivery ?? { receipt: '' })
      assert.deepEqual(await after(t), ['"end"'])
      await t.follow()
      await refused(t.follow({ payload: '"too late"' }), 'PW_BATCH_FINISHED')
      assert.deepEqual(await after(t), ['"end"'])
      assert.deepEqual(
        (await t.audits()).map(({ action }) => action),
        ['follow batch', 'follow batch', 'seal batch'],
      )
    },

    'has its place in another batch from the start, which cannot finish without it': async (t) => {
      await t.follow({ batch: 'outer' })
      await t.follow({ payload: '"last"' }, 'outer')
      const [inner, outer] = await leasedIn(t, 'b', 'outer')
      like(await t.seal('outer'), { total: 2 })
      await t.ack(outer ?? { receipt: '' })
      await t.proveCounts()
      assert.deepEqual(await after(t), [])
      await t.seal()
      await t.ack(inner ?? { receipt: '' })
      assert.deepEqual(await after(t), ['"end"'])
      like(await t.batch('outer'), { total: 2, done: 1, finishedAt: null })
      const last = await t.take({ queue: 'after' })
      assert.equal(last.batch, 'outer')
      await t.ack(last)
      assert.deepEqual(await after(t), ['"last"'])
      like(await t.batch('outer'), { total: 2, done: 2 })
    },

    'gives its place back when it changes, or its batch is forgotten': async (t) => {
      await t.follow({ batch: 'one' })
      await t.follow({ batch: 'two' })
      like(await t.batch('one'), { total: 1, cancelled: 1 })
      like(await t.batch('two'), { total: 1, cancelled: 0 })
      await t.seal('two')
      await t.follow({ batch: 'two', payload: '"other"' })
      await t.engine.configure('batch', 'b', null, 'tester')
      await t.sweep()
      const two = await t.batch('two')
      like(two, { total: 1, cancelled: 1 })
      assert.notEqual(two.finishedAt, null)
    },

    'comes without a batch when that was forgotten': async (t) => {
      await t.follow({ batch: 'outer' })
      await t.engine.configure('batch', 'outer', null, 'tester')
      await t.seal()
      assert.deepEqual(await after(t), ['"end"'])
      assert.equal((await t.tasks({ queue: 'after' }))[0]?.batch, null)
    },

    'cannot be in a batch that is sealed, or would wait for itself': async (t) => {
      await t.seal('sealed')
      await refused(t.follow({ batch: 'sealed' }), 'PW_BATCH_SEALED')
      await refused(t.follow({ batch: 'b' }), 'PW_OPTION_INVALID')
      await t.follow({ batch: 'second' })
      await t.follow({ batch: 'third' }, 'second')
      await refused(t.follow({ batch: 'b' }, 'third'), 'PW_OPTION_INVALID')
      like(await t.batch('b'), { total: 0 })
      like(await t.batch('second'), { total: 1, followUp: { queue: 'after', type: 'after', id: null } })
    },

    'comes also when a sweep ends the last task': async (t) => {
      await t.follow()
      await t.policy({ deliveriesMax: 1 })
      await t.add({ ...b, deadlineMs: 500 })
      await leasedIn(t, 'b')
      await t.seal()
      await t.advance(60_000)
      await t.sweep()
      assert.deepEqual(await after(t), ['"end"'])
      like(await t.batch('b'), { total: 2, dead: 2, done: 0 })
    },
  },
}
