// Conformance: what each verb answers to each kind of receipt, live, lapsed by time or by death, or spent.
import assert from 'node:assert/strict'
import type { ClaimedTask } from '../../engine/contract.js'
import { type Chapter, like, type Trial } from '../trial.js'

type Verb = 'ack' | 'retry' | 'release' | 'bury' | 'extend'
type Make = (t: Trial) => Promise<ClaimedTask>

const call: Record<Verb, (t: Trial, d: ClaimedTask) => Promise<unknown>> = {
  ack: (t, d) => t.ack(d),
  retry: (t, d) => t.retry(d, 0),
  release: (t, d) => t.release(d),
  bury: (t, d) => t.bury(d),
  extend: (t, d) => t.extend(d, 9000),
}
const stale = { ack: 'stale', retry: 'stale', release: 'stale', bury: 'stale', extend: 'stale' }
const works = { ack: 'done', retry: 'scheduled', release: 'ready', bury: 'dead', extend: 'held' }

/** A first delivery under a lease of 1 s, of a worker that joined. */
async function live(t: Trial): Promise<ClaimedTask> {
  await t.worker('join', 'w')
  await t.add({})
  return t.take({ leaseMs: 1000 })
}

/** A live one, after `act` was done with it. */
const after =
  (act: (t: Trial, d: ClaimedTask) => Promise<unknown>): Make =>
  async (t) => {
    const delivery = await live(t)
    await act(t, delivery)
    return delivery
  }

const lapsed = async (t: Trial) => {
  await t.advance(1000)
  await t.sweep()
}
const dead = async (t: Trial) => {
  t.store.die('w')
  await t.sweep()
}

const spent: Record<string, Make> = {
  'an acked receipt': after((t, d) => t.ack(d)),
  'a retried receipt': after((t, d) => t.retry(d)),
  'a released receipt': after((t, d) => t.release(d)),
  'a buried receipt': after((t, d) => t.bury(d)),
  'a receipt whose task another claimed': after(async (t) => {
    await lapsed(t)
    await t.take({ worker: 'another' })
  }),
  'a lapsed receipt whose task was cancelled': after(async (t, { id }) => {
    await lapsed(t)
    await t.amend({ ids: [id] }, 'cancel')
  }),
  'a receipt whose task was redriven': after(async (t, d) => {
    await t.bury(d)
    await t.amend({ ids: [d.id] }, 'redrive')
  }),
  'a receipt whose task was edited': after(async (t, d) => {
    await t.bury(d)
    await t.amend({ ids: [d.id] }, { do: 'edit', payload: '2' })
  }),
  'a receipt that ended with the last delivery of the budget': after(async (t) => {
    await t.policy({ deliveriesMax: 1 })
    await lapsed(t)
  }),
  'a lapsed receipt whose task missed its deadline': async (t) => {
    await t.add({ deadlineMs: 1500 })
    const delivery = await t.take({ leaseMs: 1000 })
    await t.advance(1000)
    await t.sweep()
    await t.advance(500)
    await t.sweep()
    assert.equal(await t.state(delivery.id), 'dead')
    return delivery
  },
}

/** One test for each verb: the answer, and for a stale one that nothing moved but its counter. */
const table = (kind: string, make: Make, answers: Record<Verb, unknown>): Chapter['tests'] =>
  Object.fromEntries(
    Object.entries(answers).map(([verb, answer]) => [
      `${kind}: ${verb} answers ${answer}`,
      async (t: Trial) => {
        const delivery = await make(t)
        const before = [await t.tasks(), await t.history(delivery.id), await t.figures()] as const
        assert.equal(await call[verb as Verb](t, delivery), answer)
        if (answer !== 'stale') return
        const [tasks, history, figures] = before
        assert.deepEqual([await t.tasks(), await t.history(delivery.id)], [tasks, history])
        assert.deepEqual(await t.figures(), { ...figures, stale: figures.stale + 1 })
      },
    ]),
  )

export const receiptsChapter: Chapter = {
  title: 'receipts',
  tests: {
    ...table('a live receipt', live, works),
    ...table('a receipt that lapsed by time', after(lapsed), { ...stale, ack: 'done', extend: 'held' }),
    ...Object.assign({}, ...Object.entries(spent).map(([kind, make]) => table(kind, make, stale))),

    'of a former holder never act on what the next one holds (case 9)': async (t) => {
      const first = await live(t)
      await lapsed(t)
      const second = await t.take({ worker: 'another' })
      for (const verb of ['ack', 'retry', 'release', 'bury', 'extend'] as const) {
        assert.equal(await call[verb](t, first), 'stale', verb)
      }
      like(await t.task(first.id), { state: 'leased', worker: 'another', number: 2 })
      assert.equal(await t.retry(second, 1000), 'scheduled')
      like(await t.task(first.id), { state: 'scheduled', spent: 2 })
    },

    'that were never given out act on nothing': async (t) => {
      const { receipt, id } = await live(t)
      const garbage = ['', 'x', id, '1.2.3', '1.2.3.4.5', `${receipt}0.`, ` ${receipt}`, '\0', '9'.repeat(400)]
      // One digit of each number in it is another one.
      const near = [...receipt.matchAll(/\d(?!\d)/g)].slice(0, 3).map(({ index }) => {
        const digit = (Number(receipt[index]) + 1) % 10
        return `${receipt.slice(0, index)}${digit}${receipt.slice(index + 1)}`
      })
      for (const text of [...garbage, ...near]) {
        for (const verb of ['ack', 'retry', 'release', 'bury', 'extend'] as const) {
          assert.equal(await call[verb](t, { receipt: text } as ClaimedTask), 'stale', `${verb} of ${text}`)
        }
      }
      like(await t.task(id), { state: 'leased', number: 1 })
      assert.equal(await t.ack({ receipt }), 'done')
    },
  },
}

export const lapsedByDeathChapter: Chapter = {
  title: 'receipts of a dead worker',
  needs: 'deaths',
  tests: {
    ...table('a receipt that lapsed by death', after(dead), { ...stale, ack: 'done' }),
    ...table(
      'a receipt that lapsed by death and was claimed again',
      after(async (t) => {
        await dead(t)
        await t.take({ worker: 'another' })
      }),
      stale,
    ),
  },
}
