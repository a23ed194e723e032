// Conformance: workers join, beat and leave; when one dies its tasks come back, and suspects go out alone.
import assert from 'node:assert/strict'
import { type Chapter, idsOf, like, type Trial } from '../trial.js'

/** A worker of its own takes the head and dies with it, beside one that lives. */
async function killer(t: Trial, name: string): Promise<string> {
  await t.worker('join', name)
  const { id } = await t.take({ worker: name })
  t.store.die(name)
  await t.sweep()
  return id
}

export const deathsChapter: Chapter = {
  title: 'workers',
  needs: 'deaths',
  tests: {
    'are known from joining to leaving, and hear what is to be cancelled': async (t) => {
      assert.deepEqual(await t.worker('join', 'ada'), { alive: true, cancelled: [] })
      assert.deepEqual(
        (await t.engine.measure(null, false)).workers.map(({ worker }) => worker),
        ['ada'],
      )
      const [id] = await t.add({})
      const { receipt } = await t.take({ worker: 'ada' })
      assert.deepEqual(await t.worker('beat', 'ada'), { alive: true, cancelled: [] })
      await t.amend({ ids: [id ?? ''] }, 'cancel')
      assert.deepEqual(await t.worker('beat', 'ada'), { alive: true, cancelled: [receipt] })
      await t.worker('leave', 'ada')
      assert.deepEqual((await t.engine.select('worker', {}, null)).items, [])
      assert.equal((await t.worker('beat', 'ada')).alive, false)
      assert.equal(await t.state(id), 'leased')
    },

    'that die give their tasks back at the next sweep, at the old place (case 8)': async (t) => {
      await t.worker('join', 'ada')
      await t.worker('join', 'bob')
      const [first, second] = await t.add({ key: 'k' }, { key: 'k' }, {})
      const mine = await t.take({ worker: 'ada', leaseMs: 4 * 3_600_000 })
      const others = await t.take({ worker: 'bob' })
      const { place } = await t.task(first)
      t.store.die('ada')
      like(await t.sweep(), { died: 1, expired: 0 })
      like(await t.task(first), { state: 'ready', place, number: 1, spent: 1, deaths: 1, worker: null })
      like((await t.history(first))[0], { outcome: 'died', worker: 'ada', code: 'PW_LEASE_LOST' })
      assert.equal((await t.worker('beat', 'ada')).alive, false)
      assert.equal(await t.ack(others), 'done')
      const again = await t.take({ worker: 'bob' })
      assert.equal(again.id, mine.id)
      await t.ack(again)
      assert.equal((await t.take()).id, second)
      like(await t.figures(), { deaths: 1, done: 2 })
    },

    'may kill twice and then succeed: done at delivery 3 (case 3)': async (t) => {
      await t.worker('join', 'survivor')
      const [id] = await t.add({})
      await killer(t, 'one')
      await killer(t, 'two')
      const third = await t.take({ worker: 'survivor' })
      like(third, { id, number: 3, deaths: 2 })
      assert.equal(await t.ack(third), 'done')
    },

    'die of a poison task no oftener than its budget allows (case 3)': async (t) => {
      await t.policy({ deliveriesMax: 3 })
      await t.worker('join', 'survivor')
      const [id] = await t.add({})
      for (const name of ['one', 'two', 'three']) await killer(t, name)
      like(await t.task(id), { state: 'dead', reason: 'spent', number: 3, deaths: 3, code: 'PW_LEASE_LOST' })
      const rows = await t.history(id)
      assert.deepEqual(
        rows.map(({ number, outcome, worker }) => [number, outcome, worker]),
        [
          [1, 'died', 'one'],
          [2, 'died', 'two'],
          [3, 'died', 'three'],
        ],
      )
      assert.deepEqual(await t.claim(), [])
    },

    'are given a task that saw two of them die alone, from the head only': async (t) => {
      await t.policy({ deliveriesMax: null })
      await t.worker('join', 'survivor')
      const [suspect, ...rest] = await t.add({}, {}, {})
      await killer(t, 'one')
      await killer(t, 'two')
      assert.deepEqual(idsOf(await t.claim()), [suspect])
      assert.deepEqual(idsOf(await t.claim()), rest)
      const [urgent] = await t.add({ priority: 100 })
      t.store.die('w')
      await t.advance(40_000)
      await t.sweep()
      assert.deepEqual(idsOf(await t.claim()), [urgent], 'what stands before it goes without it')
    },

    'put no suspicion on their tasks when all of them die at once': async (t) => {
      const ids = await t.add({}, {})
      for (const round of [1, 2, 3]) {
        for (const name of ['ada', 'bob']) {
          await t.worker('join', `${name} ${round}`)
          await t.take({ worker: `${name} ${round}` })
        }
        for (const name of ['ada', 'bob']) t.store.die(`${name} ${round}`)
        assert.equal((await t.sweep()).died, 2)
      }
      for (const id of ids) like(await t.task(id), { number: 3, spent: 3, deaths: 0 })
      assert.equal((await t.claim()).length, 2)
    },

    'that a dead name joins again under start anew': async (t) => {
      await t.worker('join', 'other')
      const [id] = await t.add({})
      await killer(t, 'ada')
      like(await t.task(id), { state: 'ready' })
      assert.equal((await t.worker('beat', 'other')).alive, true)
      assert.deepEqual(
        (await t.engine.measure(null, false)).workers.map(({ worker }) => worker),
        ['other'],
      )
    },
  },
}
