// Conformance: the layers of a queue's policy, what is refused, and what is written down of a change.
import assert from 'node:assert/strict'
import { type Chapter, like, refused, type Trial } from '../trial.js'

const code = (t: Trial, layer: Record<string, unknown>) => t.engine.configure('queue', 'q', { code: layer }, 'program')

export const policyChapter: Chapter = {
  title: 'policy',
  tests: {
    'lays the operator over the code over the defaults': async (t) => {
      await code(t, { leaseMs: 5000, deliveriesMax: 7, backoff: { baseMs: 10, factor: 5 } })
      await t.policy({ leaseMs: 9000, backoff: { baseMs: 20 }, perKey: { width: 4 } })
      const { policy, code: mine, operator } = await t.queue()
      like(policy, { leaseMs: 9000, deliveriesMax: 7, releasesMax: 100 })
      like(policy.backoff, { baseMs: 20, factor: 5, jitter: 'full' })
      like(policy.perKey, { width: 4, onDead: 'continue' })
      assert.deepEqual(mine, { leaseMs: 5000, deliveriesMax: 7, backoff: { baseMs: 10, factor: 5 } })
      assert.deepEqual(operator, { leaseMs: 9000, backoff: { baseMs: 20 }, perKey: { width: 4 } })
    },

    'replaces the layer of the code, and merges into that of the operator': async (t) => {
      await code(t, { leaseMs: 5000 })
      await code(t, { deliveriesMax: 7 })
      await t.policy({ leaseMs: 9000, backoff: { baseMs: 20 } })
      await t.policy({ releasesMax: 3, backoff: { factor: 2 } })
      const { code: mine, operator } = await t.queue()
      assert.deepEqual(mine, { deliveriesMax: 7 })
      assert.deepEqual(operator, { leaseMs: 9000, releasesMax: 3, backoff: { baseMs: 20, factor: 2 } })
      await t.engine.configure('queue', 'q', { unset: ['leaseMs'] }, 'tester')
      like((await t.queue()).operator ?? undefined, { leaseMs: undefined, releasesMax: 3 })
      await t.engine.configure('queue', 'q', { operator: null }, 'tester')
      assert.equal((await t.queue()).operator, null)
    },

    'is in force for the next claim and the next end of a delivery': async (t) => {
      await t.add({}, {})
      const before = await t.take()
      await t.policy({ leaseMs: 1234, deliveriesMax: 1 })
      like(await t.take(), { leaseMs: 1234, deliveriesMax: 1 })
      assert.equal(await t.retry(before), 'dead')
    },

    'refuses what no queue has, and values out of bounds, and changes nothing then': async (t) => {
      await t.policy({ leaseMs: 9000 })
      await refused(t.policy({ leaseMs: 8000, laeseMs: 1 }), 'PW_OPTION_UNKNOWN')
      for (const bad of [{ leaseMs: 99 }, { leaseMs: '9000' }, { deliveriesMax: 0 }, { backoff: { factor: 0.5 } }]) {
        await refused(t.policy({ releasesMax: 1, ...bad }), 'PW_OPTION_INVALID')
      }
      assert.deepEqual((await t.queue()).operator, { leaseMs: 9000 })
    },

    'writes one audit row for a change, and none where nothing changed': async (t) => {
      await t.policy({ leaseMs: 9000 })
      await t.policy({ leaseMs: 9000 })
      await t.engine.configure('queue', 'q', { paused: true }, 'ada')
      await t.engine.configure('queue', 'q', { paused: true }, 'ada')
      const audits = await t.audits()
      assert.deepEqual(
        audits.map(({ actor, subject }) => [actor, subject]),
        [
          ['tester', 'q'],
          ['ada', 'q'],
        ],
      )
      assert.equal(audits[0]?.at, await t.wallMs())
    },
  },
}
