// Conformance: what can be done with dead letters, by whom it was done, and what stays known of them.
import assert from 'node:assert/strict'
import { type Chapter, idsOf, like } from '../trial.js'

export const deadChapter: Chapter = {
  title: 'dead letters',
  tests: {
    'are redriven with a fresh budget and a new place; numbers and history go on': async (t) => {
      await t.policy({ deliveriesMax: 2, backoff: { baseMs: 0 } })
      const [id] = await t.add({})
      await t.retry(await t.take())
      await t.retry(await t.take())
      await t.advance(5000)
      const [other] = await t.add({})
      await t.advance(5000)
      assert.deepEqual(await t.amend({ ids: [id ?? ''] }, 'redrive'), { changed: 1, asked: 0, ids: [id] })
      like(await t.task(id), {
        state: 'ready',
        number: 2,
        spent: 0,
        releases: 0,
        reason: null,
        error: null,
        deadAt: null,
      })
      assert.deepEqual(idsOf(await t.claim({ max: 1 })), [other])
      const again = await t.take()
      like(again, { id, number: 3, spent: 1 })
      assert.equal(await t.retry(again), 'scheduled')
      assert.deepEqual(
        (await t.history(id)).map(({ number }) => number),
        [1, 2, 3],
      )
      like(await t.figures(), { redrives: 1, dead: 0, failures: 3 })
    },

    'are found by what they died of': async (t) => {
      const texts = ['no route to host 10.0.0.7', 'no route to host 10.0.0.12', 'disk on fire']
      const ids = await t.add(...texts.map(() => ({})))
      const deliveries = await t.claim()
      for (const [n, delivery] of deliveries.entries()) await t.bury(delivery, { code: null, text: texts[n] ?? '' })
      const { fingerprint } = await t.task(ids[0])
      assert.equal((await t.task(ids[1])).fingerprint, fingerprint, 'numbers in an error make no other kind of it')
      assert.deepEqual((await t.amend({ fingerprint: fingerprint ?? '' }, 'redrive', 1000, true)).ids, ids.slice(0, 2))
      assert.deepEqual(idsOf(await t.tasks({ text: 'fire' })), [ids[2]])
    },

    'are discarded for good, by a named actor': async (t) => {
      const [id] = await t.add({})
      const delivery = await t.take()
      await t.bury(delivery)
      assert.equal((await t.amend({ ids: [id ?? ''] }, 'discard')).changed, 1)
      assert.deepEqual([await t.state(id), await t.history(id), await t.ack(delivery)], ['gone', [], 'stale'])
      like((await t.audits()).at(-1), { actor: 'tester', action: 'discard' })
      like(await t.figures(), { discarded: 1, dead: 0 })
    },

    'can be edited, which the next delivery sees': async (t) => {
      const [id] = await t.add({ payload: '{"to":"nobody"}' })
      await t.bury(await t.take())
      await t.amend({ ids: [id ?? ''] }, { do: 'edit', payload: '{"to":"ada"}' })
      like(await t.task(id), { state: 'dead', payload: '{"to":"ada"}', reason: 'buried' })
      like((await t.audits()).at(-1), { action: 'edit' })
      await t.amend({ ids: [id ?? ''] }, 'redrive')
      assert.equal((await t.take()).payload, '{"to":"ada"}')
    },

    'keep an error text as it was, whatever it holds': async (t) => {
      const texts = ['a\0b', '日本 🚀', '"quoted"\n\tlines', '', "'; drop table task; --"]
      const ids = await t.add(...texts.map(() => ({})))
      for (const [n, delivery] of (await t.claim()).entries())
        await t.bury(delivery, { code: null, text: texts[n] ?? '' })
      assert.deepEqual(await Promise.all(ids.map(async (id) => (await t.task(id)).error)), texts)
      assert.deepEqual(await Promise.all(ids.map(async (id) => (await t.history(id))[0]?.error)), texts)
    },
  },
}
