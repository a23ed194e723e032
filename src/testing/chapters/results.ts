// Conformance: how a task ended and what its handler returned is kept as long as it should be, and no longer.
import assert from 'node:assert/strict'
import type { ResultRecord } from '../../task/records.js'
import { type Chapter, like, type Trial } from '../trial.js'

async function ends(t: Trial, ...ids: (string | undefined)[]): Promise<ResultRecord[]> {
  const page = await t.engine.select('result', { ids: ids.map((id) => id ?? '') }, null)
  return page.items as unknown as ResultRecord[]
}

const ackWith = (t: Trial, { receipt }: { receipt: string }, result?: string) =>
  t.settle({ receipt, do: 'ack', result })

export const resultsChapter: Chapter = {
  title: 'results',
  tests: {
    'are kept with the ack for resultKeepMs, and pruned by the sweep': async (t) => {
      await t.policy({ resultKeepMs: 1000 })
      const [first, second] = await t.add({}, { type: 'b', key: 'k' })
      const claimed = await t.claim()
      assert.deepEqual(
        claimed.map(({ keepsResult }) => keepsResult),
        [true, true],
      )
      await ackWith(t, claimed[0] ?? { receipt: '' }, '{"n":1.50}')
      await t.ack(claimed[1] ?? { receipt: '' })
      const [one, two] = await ends(t, first, second)
      like(one, { id: first, queue: 'q', type: 'q', outcome: 'done', result: '{"n":1.50}', endedAt: await t.wallMs() })
      like(two, { id: second, type: 'b', outcome: 'done', result: null })
      assert.equal(await t.state(first), 'gone')
      await t.advance(999)
      await t.sweep()
      assert.equal((await ends(t, first, second)).length, 2)
      await t.advance(1)
      assert.equal((await ends(t, first, second)).length, 0)
      await t.sweep()
      assert.equal((await ends(t, first, second)).length, 0)
    },

    'are not kept unless somebody asked for it': async (t) => {
      const [id] = await t.add({})
      const delivery = await t.take()
      assert.equal(delivery.keepsResult, false)
      await ackWith(t, delivery, '1')
      assert.deepEqual(await ends(t, id), [])
    },

    'are kept for who waits, whatever the policy': async (t) => {
      const [done, dropped, retried] = await t.add(
        { keepsResult: true },
        { keepsResult: true, delayMs: 60_000 },
        { keepsResult: true },
      )
      const [first, second] = await t.claim()
      assert.equal(first?.keepsResult, true)
      await ackWith(t, first ?? { receipt: '' }, '1')
      await t.amend({ ids: [dropped ?? ''] }, 'cancel')
      await t.retry(second ?? { receipt: '' }, 0)
      await ackWith(t, await t.take(), '"at last"')
      assert.deepEqual(
        (await ends(t, done, dropped, retried)).map(({ outcome, result }) => [outcome, result]),
        [
          ['done', '1'],
          ['cancelled', null],
          ['done', '"at last"'],
        ],
      )
    },

    'of a cancelled task say so, also when its delivery had to end first': async (t) => {
      await t.policy({ resultKeepMs: 1000 })
      const [id, late] = await t.add({}, {})
      const [delivery, other] = await t.claim()
      await t.amend({ ids: [id ?? '', late ?? ''] }, 'cancel')
      await t.retry(delivery ?? { receipt: '' })
      // An ack still wins.
      await ackWith(t, other ?? { receipt: '' }, '2')
      assert.deepEqual(
        (await ends(t, id, late)).map(({ outcome, result }) => [outcome, result]),
        [
          ['cancelled', null],
          ['done', '2'],
        ],
      )
    },

    'are answered by a settle that comes twice, and written once': async (t) => {
      await t.policy({ resultKeepMs: 1000 })
      const [id] = await t.add({})
      const { receipt } = await t.take()
      const verdicts = [{ receipt, do: 'ack', result: '"once"' }] as const
      const by = { worker: 'w', flush: 'the same' }
      assert.deepEqual(await t.engine.settle(by, verdicts), ['done'])
      assert.deepEqual(await t.engine.settle(by, verdicts), ['done'])
      assert.deepEqual(await t.settle({ receipt, do: 'ack', result: '"another"' }), ['stale'])
      assert.equal((await ends(t, id))[0]?.result, '"once"')
    },
  },
}
