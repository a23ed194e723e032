// Conformance: pages of rows and the figures, which a reader can believe.
import assert from 'node:assert/strict'
import { type Chapter, idsOf, like, refused } from '../trial.js'

export const readingChapter: Chapter = {
  title: 'select and measure',
  tests: {
    'answer tasks in pages, by id, each once': async (t) => {
      const ids = await t.add(...Array.from({ length: 25 }, () => ({})))
      const pages: string[][] = []
      for (let cursor: string | null = ''; cursor !== null; ) {
        const page = await t.engine.select('task', { queue: 'q', limit: 10 }, cursor === '' ? null : cursor)
        pages.push(page.items.map(({ id }) => String(id)))
        cursor = page.next
        // What is read already may go; the rest keeps its order.
        await t.amend({ ids: pages.at(-1)?.slice(0, 1) ?? [] }, 'cancel')
      }
      assert.deepEqual(pages, [ids.slice(0, 10), ids.slice(10, 20), ids.slice(20)])
    },

    'find tasks by what a filter names': async (t) => {
      const [a, b] = await t.add({ key: 'k' }, { type: 'x', batch: 'b' }, { queue: 'other' })
      await t.take()
      const found = async (filter: Parameters<typeof t.tasks>[0]) => idsOf(await t.tasks(filter))
      assert.deepEqual(await found({ queue: 'q' }), [a, b])
      assert.deepEqual(await found({ states: ['leased'] }), [a])
      assert.deepEqual(await found({ key: 'k', states: ['ready'] }), [])
      assert.deepEqual(await found({ type: 'x' }), [b])
      assert.deepEqual(await found({ batch: 'b' }), [b])
      assert.deepEqual(await found({ batch: 'no batch' }), [])
      assert.deepEqual(await found({ ids: ['nothing', '-1', '9'.repeat(30)] }), [])
    },

    'tell the history of a task in order, with who held it and when': async (t) => {
      const [id] = await t.add({})
      const startedAt = await t.wallMs()
      const first = await t.take({ worker: 'ada' })
      await t.advance(500)
      await t.retry(first, 0)
      await t.bury(await t.take({ worker: 'bob' }))
      const [one, two, ...more] = await t.history(id)
      like(one, { number: 1, outcome: 'retry', worker: 'ada', startedAt, endedAt: startedAt + 500, fence: first.fence })
      like(two, { number: 2, outcome: 'bury', worker: 'bob' })
      assert.deepEqual(more, [])
    },

    'list queues, batches, workers and audit rows': async (t) => {
      await t.add({ batch: 'b' }, { queue: 'other', batch: 'c' })
      await t.worker('join', 'ada')
      await t.policy({ leaseMs: 5000 })
      await t.policy({ leaseMs: 6000 })
      const names = async (kind: 'queue' | 'batch' | 'worker', field = 'name') =>
        (await t.engine.select(kind, {}, null)).items.map((row) => row[field])
      assert.deepEqual(await names('queue'), ['other', 'q'])
      assert.deepEqual(await names('batch'), ['b', 'c'])
      assert.deepEqual(await names('worker', 'worker'), ['ada'])
      const { items, next } = await t.engine.select('audit', { limit: 1 }, null)
      assert.equal(items.length, 1)
      const rest = await t.engine.select('audit', { limit: 1 }, next)
      assert.deepEqual([rest.items.length, rest.next], [1, null])
      await refused(t.engine.select('nonsense' as never, {}, null), 'PW_OPTION_INVALID')
    },

    'list the acks of tasks that were delivered more than once, for seven days': async (t) => {
      const [, again] = await t.add({}, { key: 'k', type: 'b' })
      for (const worker of ['ada', 'bob']) await t.worker('join', worker)
      const [plain, first] = await t.claim({ worker: 'ada' })
      await t.ack(plain ?? { receipt: '' })
      await t.retry(first ?? { receipt: '' }, 0)
      const second = await t.take({ worker: 'bob' })
      await t.retry(second, 0)
      await t.ack(await t.take({ worker: 'bob' }))
      const list = async (sinceAt?: number) => (await t.engine.select('redelivered', { sinceAt }, null)).items
      const [row, ...others] = await list()
      assert.deepEqual(others, [])
      like(row, { id: again, queue: 'q', type: 'b', key: 'k', deliveries: 3, workers: ['ada', 'bob'] })
      assert.equal(row?.ackedAt, await t.wallMs())
      assert.equal((await list((await t.wallMs()) + 1)).length, 0)
      await t.advance(7 * 86_400_000 - 1)
      await t.sweep()
      assert.equal((await list()).length, 1)
      await t.advance(1)
      await t.sweep()
      assert.equal((await list()).length, 0)
    },

    'measure each type, of the queues asked for': async (t) => {
      await t.add({ type: 'a' }, { type: 'b' }, { queue: 'other' })
      const types = async (queues: string[] | null) =>
        (await t.engine.measure(queues, true)).types.map(({ queue, type }) => `${queue}/${type}`).sort()
      assert.deepEqual(await types(null), ['other/other', 'q/a', 'q/b'])
      assert.deepEqual(await types(['q', 'nowhere']), ['q/a', 'q/b'])
      assert.deepEqual(await types([]), [])
    },

    'measure the age of the backlog and of leases, and null where there is none': async (t) => {
      await t.add({ delayMs: 9000 })
      like(await t.figures(), { backlogAgeMs: null, leaseAgeMaxMs: null })
      await t.add({})
      await t.advance(1000)
      await t.add({ priority: 50 })
      await t.advance(500)
      like(await t.figures(), { backlogAgeMs: 1500, leaseAgeMaxMs: null })
      const urgent = await t.take()
      await t.advance(300)
      like(await t.figures(), { backlogAgeMs: 1800, leaseAgeMaxMs: 300 })
      await t.release(urgent)
      await t.take({ max: 1 })
      await t.advance(10)
      like(await t.figures(), { leaseAgeMaxMs: 10 })
    },

    'measure totals that only rise, one for each thing that happened': async (t) => {
      await t.policy({ deliveriesMax: 9 })
      await t.add(...Array.from({ length: 6 }, () => ({})))
      const [a, b, c, d, e] = (await t.claim({ max: 5, leaseMs: 1000 })) as [never, never, never, never, never]
      await t.ack(a)
      await t.ack(a)
      await t.retry(b, 60_000)
      await t.release(c)
      await t.bury(d)
      await t.advance(1000)
      await t.sweep()
      await t.bury(e)
      await t.amend({ states: ['dead'] }, 'redrive')
      await t.amend({ states: ['scheduled'] }, 'cancel')
      like(await t.figures(), {
        ...{ enqueued: 6, deliveries: 5, done: 1, failures: 2, releases: 1, expiries: 1, deaths: 0, stale: 2 },
        ...{
          redrives: 1,
          cancelled: 1,
          discarded: 0,
          moved: 0,
          ready: 4,
          leased: 0,
          scheduled: 0,
          dead: 0,
          waiting: 0,
        },
      })
    },
  },
}
