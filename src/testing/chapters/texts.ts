// Conformance: names and payloads of any Unicode come back as they were, and two of them never meet.
import assert from 'node:assert/strict'
import { type Chapter, like } from '../trial.js'

const names = [
  'a:b',
  'a/b',
  'a b',
  '日本',
  '🚀',
  '../x',
  '%2F',
  "'",
  '"',
  '\\',
  '?',
  '__proto__',
  'null',
  ' ',
  'é',
  'e\u0301',
]
const payloads = [
  '""',
  '"a\\u0000b"',
  '"\\ud800"',
  '"日本 🚀"',
  '12345678901234567890.5e-400',
  '{"a":1,"a":2}',
  '[[[[[[]]]]]]',
  ' { "spaces" : [ 1 , 2 ] } ',
  'null',
  `"${'x'.repeat(1_048_574)}"`,
]

export const textsChapter: Chapter = {
  title: 'texts',
  tests: {
    'names of queues, types, keys, dedup keys, batches and workers come back as they were': async (t) => {
      for (const name of names) {
        const given = { queue: name, type: `type ${name}`, key: name, dedupKey: name, batch: name }
        const [{ id, duplicate } = { id: '', duplicate: true }] = await t.enqueue({ ...given, identity: name })
        assert.equal(duplicate, false, name)
        like(await t.task(id), given)
        const delivery = await t.take({ queue: name, types: [`type ${name}`], worker: name })
        like(delivery, { id, queue: name, type: `type ${name}`, key: name, batch: name })
        assert.equal((await t.task(id)).worker, name)
        assert.equal(await t.ack(delivery), 'done')
        like(await t.figures(name, `type ${name}`), { enqueued: 1, done: 1 })
        like(await t.batch(name), { name, total: 1, done: 1 })
        like(await t.queue(name), { name })
      }
      assert.equal((await t.engine.select('queue', {}, null)).items.length, names.length)
    },

    'payloads, headers and progress come back byte by byte': async (t) => {
      const ids = await t.add(...payloads.map((payload) => ({ payload, headers: payload.slice(0, 4000) })))
      assert.deepEqual(
        (await t.claim()).map(({ payload }) => payload),
        payloads,
      )
      const stored = await t.tasks({ ids })
      assert.deepEqual(
        stored.map(({ headers }) => headers),
        payloads.map((payload) => payload.slice(0, 4000)),
      )
    },

    'request ids and flush numbers of any text are told apart': async (t) => {
      await t.add(...names.map(() => ({})))
      for (const name of names) {
        const [delivery] = await t.claim({ worker: name, requestId: name, max: 1 })
        assert.deepEqual(await t.claim({ worker: name, requestId: name, max: 1 }), [delivery])
        const settle = () =>
          t.engine.settle({ worker: name, flush: name }, [{ receipt: delivery?.receipt ?? '', do: 'ack' }])
        assert.deepEqual([await settle(), await settle()], [['done'], ['done']], name)
      }
      assert.equal((await t.figures()).stale, 0)
    },

    'two names that joined would be one text stay two': async (t) => {
      await t.add({}, {})
      const first = await t.claim({ worker: 'a', requestId: 'b c', max: 1 })
      const second = await t.claim({ worker: 'a b', requestId: 'c', max: 1 })
      assert.notEqual(first[0]?.id, second[0]?.id)
      const settle = (worker: string, flush: string, receipt = '') =>
        t.engine.settle({ worker, flush }, [{ receipt, do: 'ack' }])
      assert.deepEqual(await settle('a', 'b c', first[0]?.receipt), ['done'])
      assert.deepEqual(await settle('a b', 'c', 'none'), ['stale'])
    },
  },
}
