// Conformance: ceilings over many queues, rates, what an overloaded downstream does to them, and the breaker.
import assert from 'node:assert/strict'
import type { Claimed, ClaimedTask } from '../../engine/contract.js'
import type { LimitRecord } from '../../task/records.js'
import { type Chapter, like, refused, type Trial } from '../trial.js'

const set = (t: Trial, name: string, patch: Record<string, unknown> | null) =>
  t.engine.configure('limit', name, patch && { operator: patch }, 'tester')
const stored = async (t: Trial, name: string) =>
  (await t.engine.select('limit', { name }, null)).items[0] as unknown as LimitRecord
const ask = (t: Trial, queue = 'q', max = 100): Promise<Claimed> =>
  t.engine.claim({ worker: 'w', requestId: null, wants: [{ queue, types: null, max }] })
const fill = (t: Trial, count: number, queue = 'q') => t.add(...Array.from({ length: count }, () => ({ queue })))

/** Claims all that may be claimed now; answers how many. */
const count = async (t: Trial, queue = 'q') => (await ask(t, queue)).deliveries.length

async function fail(t: Trial, deliveries: readonly ClaimedTask[], text: string): Promise<void> {
  for (const delivery of deliveries) await t.retry(delivery, 600_000, { code: null, text })
}

const breaker = { failures: 3, distinctTasks: 3, windowMs: 10_000 }

export const limitsChapter: Chapter = {
  title: 'limits',
  tests: {
    'a queue keeps to its concurrencyMax, and an end of a delivery makes room': async (t) => {
      await fill(t, 5)
      await t.policy({ concurrencyMax: 2 })
      const { deliveries } = await ask(t)
      assert.equal(deliveries.length, 2)
      assert.deepEqual((await ask(t)).blockedBy, [{ queue: 'q', by: 'limit' }])
      await t.ack(deliveries[0] as ClaimedTask)
      assert.equal(await count(t), 1)
      await t.retry(deliveries[1] as ClaimedTask)
      assert.equal(await count(t), 1)
    },

    'queues that use one limit share it': async (t) => {
      await set(t, 'db', { concurrencyMax: 3 })
      for (const queue of ['a', 'b', 'c']) await fill(t, 5, queue)
      await t.policy({ uses: ['db'] }, 'a')
      await t.policy({ uses: ['db'] }, 'b')
      const [first] = await t.claim({ queue: 'a', max: 2 })
      assert.equal(await count(t, 'b'), 1)
      assert.equal(await count(t, 'a'), 0)
      assert.equal(await count(t, 'c'), 5)
      like(await stored(t, 'db'), { leased: 3, queues: ['a', 'b'], concurrencyMax: 3, concurrencyNow: 3, share: 1 })
      await t.ack(first as ClaimedTask)
      assert.equal(await count(t, 'b'), 1)
    },

    'two wants of one claim share it, too': async (t) => {
      await set(t, 'db', { concurrencyMax: 3 })
      for (const queue of ['a', 'b']) {
        await fill(t, 2, queue)
        await t.policy({ uses: ['db'] }, queue)
      }
      const wants = ['a', 'b'].map((queue) => ({ queue, types: null, max: 10 }))
      const { deliveries } = await t.engine.claim({ worker: 'w', requestId: null, wants })
      assert.deepEqual(
        deliveries.map(({ queue }) => queue),
        ['a', 'a', 'b'],
      )
    },

    'the tightest of several limits binds': async (t) => {
      await set(t, 'wide', { concurrencyMax: 4 })
      await set(t, 'narrow', { concurrencyMax: 2 })
      await fill(t, 5)
      await t.policy({ uses: ['wide', 'narrow'], concurrencyMax: 3 })
      assert.equal(await count(t), 2)
    },

    'a lease that ends makes room': async (t) => {
      await fill(t, 3)
      await t.policy({ concurrencyMax: 1, leaseMs: 1000 })
      assert.equal(await count(t), 1)
      await t.advance(1001)
      await t.sweep()
      assert.equal(await count(t), 1)
    },

    'a receipt that was given once is answered again, whatever the limit': async (t) => {
      await fill(t, 2)
      await t.policy({ concurrencyMax: 1 })
      const wants = [{ queue: 'q', types: null, max: 5 }]
      const first = await t.engine.claim({ worker: 'w', requestId: '1', wants })
      assert.deepEqual((await t.engine.claim({ worker: 'w', requestId: '1', wants })).deliveries, first.deliveries)
    },

    'says of each delivery whether a ceiling holds for it': async (t) => {
      await fill(t, 1, 'free')
      await fill(t, 1)
      await t.policy({ perSecondMax: 1000 })
      assert.equal((await t.take()).limited, true)
      assert.equal((await t.take({ queue: 'free' })).limited, false)
    },

    'a rate hands out so many a second, a tenth of it at once': async (t) => {
      await fill(t, 100)
      await t.policy({ perSecondMax: 20 })
      let all = await count(t)
      assert.equal(all, 2)
      const { nextDueMs, blockedBy } = await ask(t)
      assert.deepEqual(blockedBy, [{ queue: 'q', by: 'limit' }])
      assert.ok(nextDueMs !== null && nextDueMs > 0 && nextDueMs <= 50, `next in ${nextDueMs} ms`)
      for (let ms = 0; ms < 2000; ms += 25) {
        await t.advance(25)
        all += await count(t)
      }
      assert.ok(all >= 40 && all <= 42, `${all} in two seconds`)
    },

    'saves nothing beyond that while nobody claims': async (t) => {
      await fill(t, 100)
      await t.policy({ perSecondMax: 20 })
      await count(t)
      await t.advance(60_000)
      assert.equal(await count(t), 2)
    },

    'a rate below one a second hands out one at a time': async (t) => {
      await fill(t, 3)
      await t.policy({ perSecondMax: 0.5 })
      assert.equal(await count(t), 1)
      await t.advance(1990)
      assert.equal(await count(t), 0)
      await t.advance(20)
      assert.equal(await count(t), 1)
    },

    'gives back what the rate charged for deliveries nobody started': async (t) => {
      await fill(t, 4)
      await t.policy({ perSecondMax: 1 })
      const started = await t.take()
      assert.equal(await count(t), 0)
      await t.release(started, 'unstarted')
      const again = await t.take()
      await t.release(again, 'handler')
      assert.equal(await count(t), 0)
    },

    'a limit can be changed while tasks wait for it': async (t) => {
      await set(t, 'db', { concurrencyMax: 1 })
      await fill(t, 5)
      await t.policy({ uses: ['db'] })
      assert.equal(await count(t), 1)
      await set(t, 'db', { concurrencyMax: 3 })
      assert.equal(await count(t), 2)
      await set(t, 'db', { concurrencyMax: null, perSecondMax: 1000 })
      assert.equal(await count(t), 2)
      like(await stored(t, 'db'), { concurrencyMax: null, perSecondMax: 1000, adaptive: false, leased: 5 })
    },

    'lays the operator over the code': async (t) => {
      await t.engine.configure('limit', 'db', { code: { concurrencyMax: 8, perSecondMax: 100 } }, 'program')
      await set(t, 'db', { concurrencyMax: 2 })
      await t.engine.configure('limit', 'db', { code: { concurrencyMax: 9 } }, 'program')
      like(await stored(t, 'db'), { concurrencyMax: 2, perSecondMax: null })
      await t.engine.configure('limit', 'db', { operator: null }, 'tester')
      like(await stored(t, 'db'), { concurrencyMax: 9 })
    },

    'refuses what is no limit, and changes nothing then': async (t) => {
      await set(t, 'db', { concurrencyMax: 2 })
      await t.policy({ uses: ['db'], leaseMs: 5000 })
      await refused(t.policy({ uses: ['db', 'nowhere'], leaseMs: 6000 }), 'PW_LIMIT_UNKNOWN')
      like((await t.queue()).policy, { uses: ['db'], leaseMs: 5000 })
      await refused(set(t, 'nowhere', null), 'PW_LIMIT_UNKNOWN')
      await refused(set(t, 'db', null), 'PW_LIMIT_IN_USE')
      await refused(set(t, 'db', { concurencyMax: 1 }), 'PW_OPTION_UNKNOWN')
      for (const bad of [{ concurrencyMax: 0 }, { perSecondMax: -1 }, { concurrencyMax: 1.5 }, { adaptive: 1 }]) {
        await refused(set(t, 'db', bad), 'PW_OPTION_INVALID')
      }
      like(await stored(t, 'db'), { concurrencyMax: 2, perSecondMax: null, adaptive: false })
      await t.policy({ uses: [] })
      like(await set(t, 'db', null), { name: 'db' })
      assert.equal(await stored(t, 'db'), undefined)
    },

    'writes an audit row for each change of a limit': async (t) => {
      await set(t, 'db', { concurrencyMax: 2 })
      await set(t, 'db', { concurrencyMax: 2 })
      await set(t, 'db', { concurrencyMax: 4 })
      const rows = (await t.audits()).filter(({ action }) => action === 'set limit')
      assert.deepEqual(
        rows.map(({ actor, subject }) => [actor, subject]),
        [
          ['tester', 'db'],
          ['tester', 'db'],
        ],
      )
    },

    'an adaptive limit is halved by an overload, once for all that come together, and grows back': async (t) => {
      await set(t, 'api', { concurrencyMax: 20, adaptive: true })
      await fill(t, 60)
      await t.policy({ uses: ['api'] })
      await t.advance(5000)
      const { deliveries } = await ask(t)
      assert.equal(deliveries.length, 20)
      for (const delivery of deliveries.slice(0, 5)) await t.release(delivery, 'overloaded', 600_000)
      for (const delivery of deliveries.slice(5)) await t.ack(delivery)
      assert.equal(await count(t), 10)
      like(await stored(t, 'api'), { concurrencyMax: 20, concurrencyNow: 10 })
      await t.advance(15_100)
      assert.equal(await count(t), 5)
      await t.advance(60_000)
      assert.equal((await stored(t, 'api')).concurrencyNow, 20)
    },

    'run times that rise well above the usual shrink it as well': async (t) => {
      await set(t, 'api', { concurrencyMax: 20, adaptive: true })
      await t.policy({ uses: ['api'] })
      await t.advance(5000)
      const work = async (ms: number) => {
        await fill(t, 20)
        const { deliveries } = await ask(t)
        await t.advance(ms)
        for (const delivery of deliveries) await t.ack(delivery)
      }
      for (let i = 0; i < 4; i++) await work(600)
      await ask(t)
      like(await stored(t, 'api'), { share: 1 })
      for (let i = 0; i < 3; i++) await work(2000)
      await fill(t, 1)
      await ask(t)
      const { share } = await stored(t, 'api')
      assert.ok(share < 0.9, `${share} of it is in force`)
    },

    'a breaker opens when distinct tasks fail alike, and lets one probe through at a time': async (t) => {
      await fill(t, 10)
      await t.policy({ breaker })
      await fail(t, await t.claim({ max: 3 }), 'connect refused 10.0.0.7:5432')
      assert.deepEqual((await ask(t)).blockedBy, [{ queue: 'q', by: 'breaker' }])
      await t.advance(10_000)
      const { deliveries } = await ask(t)
      assert.equal(deliveries.length, 1)
      assert.equal(await count(t), 0)
      await fail(t, deliveries, 'connect refused 10.0.0.8:5432')
      assert.equal(await count(t), 0)
      await t.advance(10_000)
      await t.ack(await t.take())
      assert.equal(await count(t), 5)
      const rows = (await t.audits()).filter(({ action }) => action === 'open breaker')
      assert.equal(rows.length, 1)
    },

    'a breaker stays closed while anything succeeds or errors differ': async (t) => {
      await fill(t, 12)
      await t.policy({ breaker })
      await fail(t, await t.claim({ max: 2 }), 'no route')
      await t.ack(await t.take())
      await fail(t, await t.claim({ max: 2 }), 'no route')
      await fail(t, await t.claim({ max: 2 }), 'bad data')
      await t.advance(10_001)
      await fail(t, await t.claim({ max: 1 }), 'no route')
      assert.equal(await count(t), 4)
    },

    'a breaker stays closed when one task fails again and again': async (t) => {
      await fill(t, 1)
      await t.policy({ breaker, deliveriesMax: null })
      for (let i = 0; i < 5; i++) {
        await t.retry(await t.take(), 1, { code: null, text: 'no route' })
        await t.advance(5)
        await t.sweep()
      }
      await fill(t, 1)
      assert.equal(await count(t), 2)
    },
  },
}
