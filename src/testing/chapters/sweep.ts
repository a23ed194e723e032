// Conformance: what happens when time has passed: leases end, tasks come due, deadlines go by.
import assert from 'node:assert/strict'
import { type Chapter, like } from '../trial.js'

export const sweepChapter: Chapter = {
  title: 'sweep',
  tests: {
    'does nothing where nothing is due, and says when something will be': async (t) => {
      const nothing = { expired: 0, died: 0, matured: 0, promoted: 0 }
      like(await t.sweep(), { ...nothing, nextMs: null })
      await t.add({ delayMs: 9000 }, { deadlineMs: 7000 })
      like(await t.sweep(), { ...nothing, nextMs: 7000 })
      await t.take({ leaseMs: 3000 })
      like(await t.sweep(), { ...nothing, nextMs: 3000 })
    },

    'gives a task whose lease ended back at its old place, counted': async (t) => {
      const [first] = await t.add({})
      const { place } = await t.task(first)
      await t.advance(10)
      await t.add({})
      await t.take({ leaseMs: 1000 })
      await t.advance(999)
      assert.equal((await t.sweep()).expired, 0)
      await t.advance(1)
      assert.equal((await t.sweep()).expired, 1)
      like(await t.task(first), { state: 'ready', place, number: 1, spent: 1, worker: null })
      like((await t.history(first))[0], { number: 1, outcome: 'expired', worker: 'w', code: 'PW_LEASE_LOST' })
      like(await t.figures(), { expiries: 1, ready: 2, leased: 0 })
      assert.equal((await t.take()).id, first)
    },

    'buries what lost its last lease': async (t) => {
      await t.policy({ deliveriesMax: 1 })
      const [id] = await t.add({})
      await t.take({ leaseMs: 1000 })
      await t.advance(1000)
      await t.sweep()
      like(await t.task(id), { state: 'dead', reason: 'spent', code: 'PW_LEASE_LOST' })
    },

    'does at most as much as it is told': async (t) => {
      await t.add(...Array.from({ length: 5 }, () => ({ delayMs: 1000 })))
      await t.advance(1000)
      for (const matured of [2, 2, 1, 0]) assert.equal((await t.engine.sweep(2)).matured, matured)
    },

    'lets the first of each key out when it comes due': async (t) => {
      await t.add(...['k', 'k', 'l'].map((key) => ({ key, delayMs: 1000 })))
      await t.advance(1000)
      like(await t.sweep(), { matured: 3, promoted: 2 })
      like(await t.figures(), { ready: 2, waiting: 1 })
    },

    'buries what missed its deadline, wherever it waited, and leaves who is at work': async (t) => {
      const late = { deadlineMs: 1000 }
      const [running] = await t.add(late)
      const delivery = await t.take()
      const ids = await t.add({ ...late, delayMs: 9000 }, { ...late, key: 'k' }, { ...late, key: 'k' }, late)
      await t.advance(999)
      await t.sweep()
      assert.equal((await t.figures()).dead, 0)
      await t.advance(1)
      await t.sweep()
      for (const id of ids) like(await t.task(id), { state: 'dead', reason: 'deadline', number: 0 })
      assert.equal(await t.state(running), 'leased')
      assert.equal(await t.ack(delivery), 'done')
      await t.amend({ states: ['dead'] }, 'redrive')
      await t.sweep()
      assert.equal((await t.figures()).dead, 0, 'a redriven task has no deadline any more')
    },

    'drops what asked to be dropped at its deadline': async (t) => {
      const [id] = await t.add({ deadlineMs: 1000, onDeadline: 'drop', batch: 'b' })
      await t.advance(1000)
      await t.sweep()
      assert.equal(await t.state(id), 'gone')
      like(await t.figures(), { cancelled: 1, dead: 0 })
      like(await t.batch('b'), { total: 1, cancelled: 1 })
    },

    'matures a dead and redriven task by its retry, not by the dueAt it once had': async (t) => {
      const [id] = await t.add({ dueAt: (await t.wallMs()) + 3_600_000, deadlineMs: 1000 })
      await t.advance(1000)
      await t.sweep()
      await t.amend({ ids: [id ?? ''] }, 'redrive')
      await t.retry(await t.take(), 1000)
      await t.advance(1000)
      assert.equal((await t.take()).id, id)
    },
  },
}
