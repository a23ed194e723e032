// Conformance: what a newer enqueue under a dedup key does to the task that has it: keep, replace or delay.
import assert from 'node:assert/strict'
import { type Chapter, idsOf, like, refused, type Trial } from '../trial.js'

const d = { dedupKey: 'd' }
const replace = { ...d, onDuplicate: 'replace', payload: '"new"' } as const
const delay = { ...d, onDuplicate: 'delay', payload: '"unused"' } as const

async function one(t: Trial, task: Parameters<Trial['add']>[0]) {
  const [answer] = await t.enqueue(task)
  assert.ok(answer)
  return answer
}

export const duplicatesChapter: Chapter = {
  title: 'a duplicate',
  tests: {
    'replaces payload and options, at the old place': async (t) => {
      const first = await one(t, { ...d, payload: '"old"', headers: '{"a":"1"}', deadlineMs: 5000 })
      const [behind] = await t.add({})
      await t.advance(1000)
      like(await one(t, { ...replace, headers: '{"a":"2"}' }), { id: first.id, duplicate: true, state: 'ready' })
      const task = await t.task(first.id)
      like(task, { payload: '"new"', headers: '{"a":"2"}', deadlineAt: null, dedupKey: 'd' })
      assert.deepEqual(idsOf(await t.claim()), [first.id, behind])
    },

    'that replaces may bring a priority, a deadline and another due instant': async (t) => {
      const [ahead] = await t.add({})
      const first = await one(t, d)
      await one(t, { ...replace, priority: 1, deadlineMs: 2000 })
      like(await t.task(first.id), { priority: 1, deadlineAt: (await t.wallMs()) + 2000 })
      assert.deepEqual(idsOf(await t.claim({ max: 1 })), [first.id])
      assert.equal((await t.take()).id, ahead)
      const later = await one(t, { dedupKey: 'e', delayMs: 500 })
      like(await one(t, { ...replace, dedupKey: 'e', delayMs: 2000 }), { id: later.id, state: 'scheduled' })
      await t.advance(1999)
      await t.sweep()
      assert.equal(await t.state(later.id), 'scheduled')
      await t.advance(1)
      like(await t.take(), { id: later.id, payload: '"new"' })
    },

    'that delays moves the due instant alone, again and again': async (t) => {
      const first = await one(t, { ...d, payload: '"old"', delayMs: 1000 })
      for (let n = 0; n < 3; n++) {
        await t.advance(900)
        like(await one(t, { ...delay, delayMs: 1000 }), { id: first.id, duplicate: true, state: 'scheduled' })
        assert.deepEqual(await t.claim(), [])
      }
      await t.advance(1000)
      like(await t.take(), { id: first.id, payload: '"old"', number: 1 })
    },

    'that delays takes a ready task back, and can bring one forward': async (t) => {
      const ready = await one(t, d)
      await one(t, { ...delay, delayMs: 1000 })
      assert.deepEqual(await t.claim(), [])
      await one(t, { ...delay, delayMs: 0 })
      assert.equal((await t.take()).id, ready.id)
    },

    'touches no task that is leased, and none that is gone or dead': async (t) => {
      await t.policy({ dedupWindowMs: 10_000 })
      const first = await one(t, { ...d, payload: '"old"' })
      const delivery = await t.take()
      like(await one(t, replace), { id: first.id, duplicate: true, state: 'leased' })
      like(await one(t, { ...delay, delayMs: 1000 }), { id: first.id, state: 'leased' })
      like(await t.task(first.id), { payload: '"old"', leaseEndsAt: (await t.wallMs()) + 30_000 })
      assert.equal(await t.ack(delivery), 'done')
      like(await one(t, replace), { id: first.id, duplicate: true, state: 'gone' })
      const next = await one(t, { dedupKey: 'e' })
      await t.bury(await t.take())
      const fresh = await one(t, { ...replace, dedupKey: 'e' })
      assert.equal(fresh.duplicate, false)
      assert.equal((await t.task(next.id)).payload, '1')
    },

    'spends the lapsed receipt of what it changes': async (t) => {
      for (const [key, change] of [
        ['a', replace],
        ['b', { ...delay, delayMs: 0 }],
      ] as const) {
        await t.add({ dedupKey: key })
        const delivery = await t.take({ leaseMs: 1000 })
        await t.advance(1000)
        await t.sweep()
        await one(t, { ...change, dedupKey: key })
        assert.equal(await t.ack(delivery), 'stale')
        await t.ack(await t.take())
      }
    },

    'of a retry keeps what the task has been through': async (t) => {
      const first = await one(t, d)
      await t.retry(await t.take(), 60_000)
      await one(t, { ...replace, delayMs: 0 })
      like(await t.take(), { id: first.id, number: 2, spent: 2, payload: '"new"' })
      assert.equal((await t.history(first.id)).length, 1)
    },

    'that is delayed behind others of its key lets them go first': async (t) => {
      const [first, second] = await t.add({ ...d, key: 'k' }, { key: 'k' })
      await one(t, { ...delay, key: 'k', delayMs: 1000 })
      assert.equal((await t.take()).id, second)
      await t.advance(1000)
      assert.deepEqual(await t.claim(), [])
      like(await t.task(first), { state: 'waiting' })
    },

    'of another type or key replaces nothing, and neither do the tasks beside it': async (t) => {
      await t.add({ ...d, type: 'a', key: 'k' })
      await refused(t.enqueue({}, { ...replace, type: 'b', key: 'k' }), 'PW_DUPLICATE_DIFFERS')
      await refused(t.enqueue({}, { ...replace, type: 'a' }), 'PW_DUPLICATE_DIFFERS')
      await refused(t.enqueue({}, { ...replace, type: 'a', key: 'l' }), 'PW_DUPLICATE_DIFFERS')
      assert.deepEqual(
        (await t.tasks()).map(({ type, payload }) => [type, payload]),
        [['a', '1']],
      )
    },

    'in one call replaces what came before it there': async (t) => {
      const answers = await t.enqueue(d, { ...replace, payload: '2' }, { ...replace, payload: '3' })
      assert.deepEqual(
        answers.map(({ id, duplicate }) => [id, duplicate]),
        [
          [answers[0]?.id, false],
          [answers[0]?.id, true],
          [answers[0]?.id, true],
        ],
      )
      assert.equal((await t.take()).payload, '3')
    },
  },
}
