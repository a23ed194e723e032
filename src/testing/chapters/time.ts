// Conformance: jumps of the machine's wall clock move no lease and no delay, only what is due on the wall clock.
import assert from 'node:assert/strict'
import { type Chapter, idsOf, like } from '../trial.js'

const hour = 3_600_000

export const timeChapter: Chapter = {
  title: 'time',
  tests: {
    'a wall clock set back an hour ends nothing early and holds nothing up (case 22)': async (t) => {
      const [held, delayed] = await t.add({}, { delayMs: 2000 })
      const delivery = await t.take({ leaseMs: 5000 })
      t.store.jumpWall(-hour)
      await t.sweep()
      like(await t.figures(), { leased: 1, scheduled: 1 })
      const [next] = await t.add({})
      assert.ok(Number(next) > Number(delayed), 'ids go on rising')
      await t.advance(2000)
      assert.deepEqual(idsOf(await t.claim()), [next, delayed])
      assert.equal(await t.extend(delivery, 1000), 'held')
      await t.advance(1000)
      await t.sweep()
      assert.equal(await t.state(held), 'ready')
      assert.ok((await t.take()).fence > delivery.fence)
    },

    'a wall clock set ahead an hour ends nothing early either': async (t) => {
      await t.add({}, { delayMs: 2000 }, { deadlineMs: 9000, type: 'late' })
      const delivery = await t.take({ leaseMs: 5000, types: ['q'] })
      t.store.jumpWall(hour)
      await t.sweep()
      assert.deepEqual(await t.claim({ types: ['q'] }), [])
      like(await t.figures('q', 'late'), { ready: 1 })
      assert.equal(await t.ack(delivery), 'done')
      like(await t.figures(), { expiries: 0, done: 1 })
    },
  },
}

/** For engines whose own clock is another one than the wall clock. */
export const wallChapter: Chapter = {
  title: 'the wall clock',
  needs: 'wallClock',
  tests: {
    'a wall clock that goes a little faster is followed, too': async (t) => {
      const [id] = await t.add({ dueAt: (await t.wallMs()) + hour })
      await t.sweep()
      for (let n = 0; n < 10; n++) {
        t.store.jumpWall(360_000 / 10)
        await t.advance(1000)
        await t.sweep()
      }
      await t.advance(hour - 360_000 - 10_000 - 1)
      await t.sweep()
      assert.equal(await t.state(id), 'scheduled')
      await t.advance(1)
      await t.sweep()
      assert.equal(await t.state(id), 'ready')
    },

    'dueAt waits for the wall clock where it was set back, and comes with it where it was set ahead': async (t) => {
      const dueAt = (await t.wallMs()) + 10_000
      const [id] = await t.add({ dueAt })
      await t.sweep()
      t.store.jumpWall(-hour)
      await t.advance(10_000)
      await t.sweep()
      assert.equal(await t.state(id), 'scheduled')
      assert.equal((await t.task(id)).dueAt, dueAt)
      t.store.jumpWall(hour)
      await t.sweep()
      assert.equal(await t.state(id), 'ready')
    },

    'dueAt is kept by a wall clock that was wrong for less time than between two sweeps': async (t) => {
      const dueAt = (await t.wallMs()) + 10_000
      const [id] = await t.add({ dueAt })
      await t.sweep()
      t.store.jumpWall(-hour)
      const [late] = await t.add({ dueAt })
      t.store.jumpWall(hour)
      await t.advance(10_000)
      t.store.jumpWall(-hour)
      assert.deepEqual(await t.claim(), [])
      t.store.jumpWall(hour)
      await t.sweep()
      assert.deepEqual([await t.state(id), await t.state(late)], ['ready', 'ready'])
    },
  },
}
