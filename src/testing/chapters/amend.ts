// Conformance: what an operator's act touches, how it is bounded and tried out, and that it is written down.
import assert from 'node:assert/strict'
import type { Change } from '../../engine/contract.js'
import { type Chapter, like, type Trial } from '../trial.js'

/** One task in each state, by its state. */
async function oneOfEach(t: Trial): Promise<Record<string, string>> {
  const [dead] = await t.add({})
  await t.bury(await t.take())
  const [leased] = await t.add({})
  await t.take()
  const [ready, waiting, scheduled] = await t.add({ key: 'k' }, { key: 'k' }, { delayMs: 90_000 })
  return { dead, leased, ready, waiting, scheduled } as Record<string, string>
}

const touches: [Change['do'], string[], string[]][] = [
  ['cancel', ['ready', 'scheduled', 'waiting'], ['leased']],
  ['purge', ['ready', 'scheduled', 'waiting'], []],
  ['discard', ['dead'], []],
  ['redrive', ['dead'], []],
]

const touchTests: Chapter['tests'] = Object.fromEntries(
  touches.map(([change, changed, asked]) => [
    `${change} touches what is ${[...changed, ...asked].join(', ')}, and nothing else`,
    async (t: Trial) => {
      const ids = await oneOfEach(t)
      const answer = await t.amend({ queue: 'q' }, change)
      const touched = [...changed, ...asked].map((state) => ids[state] ?? '')
      like(answer, { changed: changed.length, asked: asked.length })
      assert.deepEqual([...answer.ids].sort(), touched.sort())
      for (const [state, id] of Object.entries(ids)) {
        if (touched.includes(id)) continue
        like(await t.task(id), { state, cancelAsked: false })
      }
    },
  ]),
)

export const amendChapter: Chapter = {
  title: 'amend',
  tests: {
    ...touchTests,

    'selects by id, queue, type, key, batch and state': async (t) => {
      const [a, b, c] = await t.add(
        { type: 'a', key: 'k' },
        { type: 'b', batch: 'b', delayMs: 9000 },
        { queue: 'other', type: 'a' },
      )
      const found = async (filter: Parameters<Trial['amend']>[0]) => (await t.amend(filter, 'cancel', 1000, true)).ids
      assert.deepEqual(await found({}), [a, b, c])
      assert.deepEqual(await found({ ids: [b ?? '', 'none', '99'] }), [b])
      assert.deepEqual(await found({ ids: [] }), [])
      assert.deepEqual(await found({ queue: 'q' }), [a, b])
      assert.deepEqual(await found({ queue: 'nowhere' }), [])
      assert.deepEqual(await found({ type: 'a' }), [a, c])
      assert.deepEqual(await found({ queue: 'q', type: 'a' }), [a])
      assert.deepEqual(await found({ key: 'k' }), [a])
      assert.deepEqual(await found({ batch: 'b' }), [b])
      assert.deepEqual(await found({ states: ['scheduled'] }), [b])
      assert.deepEqual(await found({ queue: 'q', states: ['dead'] }), [])
    },

    'takes at most max, the oldest first, until nothing is left': async (t) => {
      const ids = await t.add({}, {}, {})
      await t.take()
      assert.deepEqual((await t.amend({ queue: 'q' }, 'cancel', 2)).ids, ids.slice(0, 2))
      assert.deepEqual((await t.amend({ queue: 'q' }, 'cancel', 2)).ids, ids.slice(2))
      assert.deepEqual(await t.amend({ queue: 'q' }, 'cancel', 2), { changed: 0, asked: 0, ids: [] })
    },

    'only says what it would do, on a dry run': async (t) => {
      await oneOfEach(t)
      const before = [await t.tasks(), await t.figures(), await t.audits()]
      for (const [change, changed, asked] of touches) {
        like(await t.amend({}, change, 1000, true), { changed: changed.length, asked: asked.length })
      }
      assert.deepEqual([await t.tasks(), await t.figures(), await t.audits()], before)
    },

    'writes one audit row for each act that did something': async (t) => {
      await t.add({}, {})
      await t.amend({ queue: 'q' }, 'cancel')
      await t.amend({ queue: 'q' }, 'cancel')
      const audits = await t.audits()
      assert.equal(audits.length, 1)
      like(audits[0], { actor: 'tester', action: 'cancel', subject: 'q', at: await t.wallMs() })
      like(audits[0]?.details, { changed: 2 })
    },

    'asks a running task to be cancelled: an ack still wins': async (t) => {
      const [id] = await t.add({})
      const delivery = await t.take()
      await t.amend({ ids: [id ?? ''] }, 'cancel')
      like(await t.task(id), { state: 'leased', cancelAsked: true })
      assert.equal(await t.ack(delivery), 'done')
      like(await t.figures(), { done: 1, cancelled: 0 })
    },

    'asks a running task to be cancelled: any other end is the end': async (t) => {
      await t.policy({ deliveriesMax: 1 })
      const ends = [t.retry, t.release, t.bury] as const
      const ids = await t.add(...ends.map(() => ({})), {})
      const deliveries = await t.claim({ leaseMs: 1000 })
      await t.amend({ queue: 'q' }, 'cancel')
      for (const [n, end] of ends.entries()) {
        assert.equal(await end.call(t, deliveries[n] ?? { receipt: '' }), 'cancelled')
      }
      await t.advance(1000)
      await t.sweep()
      for (const id of ids) assert.equal(await t.state(id), 'gone')
      like(await t.figures(), { cancelled: 4, dead: 0, failures: 2, releases: 1, expiries: 1 })
    },
  },
}
