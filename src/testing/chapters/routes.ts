// Conformance: the route that a moved type leaves behind, which later enqueues and dedup keys follow until it ends.
import assert from 'node:assert/strict'
import type { RouteRecord } from '../../task/records.js'
import { type Chapter, idsOf, like, refused, type Trial } from '../trial.js'

const route = (t: Trial, type: string, to: string | null, queue = 'q') =>
  t.engine.configure('route', `${queue}\0${type}`, to === null ? null : { to }, 'tester')
const routes = async (t: Trial) => (await t.engine.select('route', {}, null)).items as unknown as RouteRecord[]
/** Where these tasks are, as queue/type. */
const places = async (t: Trial, ids: readonly string[]) =>
  Promise.all(ids.map(async (id) => t.task(id).then(({ queue, type }) => `${queue}/${type}`)))
const answered = async (t: Trial, ...tasks: Parameters<Trial['enqueue']>) =>
  (await t.enqueue(...tasks)).map(({ id, duplicate }) => [id, duplicate])
const moveBack = (t: Trial, type: string) => t.amend({ queue: 'other', type }, { do: 'move', to: 'q' })

export const routesChapter: Chapter = {
  title: 'routes',
  tests: {
    'lead what is enqueued later as this type to the other queue, with all it has': async (t) => {
      like(await route(t, 'slow', 'other'), { queue: 'q', type: 'slow', to: 'other', toType: 'slow' })
      const all = { type: 'slow', key: 'k', batch: 'b', priority: 2, headers: '{"a":"b"}' }
      const ids = await t.add(all, { type: 'quick' }, { type: 'slow', delayMs: 5000 }, {})
      assert.deepEqual(await places(t, ids), ['other/slow', 'q/quick', 'other/slow', 'q/q'])
      like(await t.task(ids[0]), { key: 'k', batch: 'b', priority: 2, headers: '{"a":"b"}', state: 'ready' })
      like(await t.batch('b'), { total: 1 })
      like(await t.figures('other', 'slow'), { enqueued: 2, ready: 1, scheduled: 1 })
      assert.equal((await t.take({ queue: 'other', types: ['slow'] })).id, ids[0])
    },

    'give the tasks of no type of their own to those of the other queue': async (t) => {
      await route(t, 'q', 'other')
      assert.deepEqual(await places(t, await t.add({}, { type: 'a' })), ['other/other', 'q/a'])
    },

    'end: later enqueues stay, and what was led away stays until it is moved': async (t) => {
      await route(t, 'a', 'other')
      const [first] = await t.add({ type: 'a' })
      like(await route(t, 'a', null), { queue: 'q', type: 'a', to: 'other' })
      const [second] = await t.add({ type: 'a' })
      assert.deepEqual(await places(t, [first ?? '', second ?? '']), ['other/a', 'q/a'])
      like(await moveBack(t, 'a'), { changed: 1, ids: [first] })
      assert.deepEqual(idsOf(await t.claim()), [first, second])
    },

    'keep the dedup keys of what was moved, of what is still held, and of what has just ended': async (t) => {
      await t.policy({ dedupWindowMs: 60_000 })
      const task = (dedupKey: string) => ({ type: 'a', dedupKey })
      const [ended] = await t.add(task('ended'))
      await t.ack(await t.take())
      const [held] = await t.add(task('held'))
      const delivery = await t.take()
      await route(t, 'a', 'other')
      const [moved] = await t.add({ queue: 'other', ...task('moved') })
      like(await t.amend({ queue: 'q', type: 'a' }, { do: 'move', to: 'other' }), { changed: 0, asked: 1 })
      assert.deepEqual(await answered(t, task('ended'), task('held'), task('moved')), [
        ...[
          [ended, true],
          [held, true],
          [moved, true],
        ],
      ])
      // Whoever enqueues into the other queue itself meets it, too.
      assert.deepEqual(await answered(t, { queue: 'other', ...task('held') }), [[held, true]])
      await t.release(delivery)
      assert.deepEqual(await places(t, [held ?? '']), ['other/a'])
      assert.deepEqual(await answered(t, task('held')), [[held, true]])
      await t.advance(60_000)
      const [[anew, duplicate] = []] = await answered(t, task('ended'))
      assert.equal(duplicate, false)
      assert.deepEqual(await places(t, [String(anew)]), ['other/a'])
    },

    'when they end, what is still held in the other queue keeps its dedup key for both': async (t) => {
      await route(t, 'a', 'other')
      const [held, ready] = await t.add({ type: 'a', dedupKey: 'held' }, { type: 'a', dedupKey: 'ready' })
      const delivery = await t.take({ queue: 'other', max: 1 })
      assert.equal(delivery.id, held)
      await route(t, 'a', null)
      like(await moveBack(t, 'a'), { changed: 1, asked: 1 })
      const both = [
        { type: 'a', dedupKey: 'held' },
        { type: 'a', dedupKey: 'ready' },
      ]
      assert.deepEqual(await answered(t, ...both), [
        [held, true],
        [ready, true],
      ])
      assert.equal(await t.ack(delivery), 'done')
      const [[, duplicate] = []] = await answered(t, { type: 'a', dedupKey: 'held' })
      const [[, there] = []] = await answered(t, { queue: 'other', type: 'a', dedupKey: 'held' })
      assert.deepEqual([duplicate, there], [false, false])
    },

    'one task of a call meets another that is led to the same place': async (t) => {
      await route(t, 'a', 'other')
      const task = { type: 'a', dedupKey: 'd' }
      const [[first, made] = [], ...more] = await answered(t, task, { queue: 'other', ...task }, task)
      assert.deepEqual(
        [made, more],
        [
          false,
          [
            [first, true],
            [first, true],
          ],
        ],
      )
    },

    'one task of a call meets another before it in the queue where the route begins, and none behind it': async (t) => {
      await route(t, 'a', 'other')
      const led = { type: 'a' }
      const tasks = [{ dedupKey: 'd' }, { ...led, dedupKey: 'd' }, { ...led, dedupKey: 'e' }, { dedupKey: 'e' }]
      const answers = await answered(t, ...tasks)
      const [[first] = []] = answers
      assert.deepEqual(
        answers.map(([, duplicate]) => duplicate),
        [false, true, false, false],
      )
      assert.deepEqual(answers[1], [first, true])
      assert.deepEqual(await answered(t, { ...led, dedupKey: 'd' }), [[first, true]])
    },

    'may follow one another, and never in a circle': async (t) => {
      await route(t, 'a', 'other')
      await route(t, 'a', 'third', 'other')
      assert.deepEqual(await places(t, await t.add({ type: 'a' })), ['third/a'])
      await refused(route(t, 'a', 'q', 'third'), 'PW_MOVE_CIRCLE')
      await refused(route(t, 'a', 'q'), 'PW_OPTION_INVALID')
      await route(t, 'a', null, 'other')
      assert.deepEqual(await places(t, await t.add({ type: 'a' })), ['other/a'])
    },

    'are listed, changed and ended by name, each with an audit row': async (t) => {
      await route(t, 'a', 'other')
      await route(t, 'a', 'other')
      await route(t, 'a', 'third')
      await route(t, 'b', 'other')
      assert.deepEqual((await t.engine.select('route', { queue: 'q', type: 'a' }, null)).items, [
        { queue: 'q', type: 'a', to: 'third', toType: 'a' },
      ])
      assert.equal((await routes(t)).length, 2)
      await route(t, 'a', null)
      await refused(route(t, 'a', null), 'PW_MOVE_UNKNOWN')
      await refused(route(t, 'none', null, 'nowhere'), 'PW_MOVE_UNKNOWN')
      const audits = (await t.audits()).map(({ action, subject, details }) => [action, subject, details.to])
      assert.deepEqual(audits, [
        ['set route', 'q/a', 'other'],
        ['set route', 'q/a', 'third'],
        ['set route', 'q/b', 'other'],
        ['end route', 'q/a', 'third'],
      ])
    },

    'are followed by schedules': async (t) => {
      const schedule = { everyMs: 1000, task: { payload: '1', type: 'a', priority: 1 } }
      await t.engine.configure('schedule', 'q\0beat', schedule, 'tester')
      await route(t, 'a', 'other')
      await t.advance(1000)
      await t.sweep()
      like(await t.figures('other', 'a'), { ready: 1 })
    },
  },
}

export const sharedRoutesChapter: Chapter = {
  title: 'routes of several handles',
  needs: 'persists',
  tests: {
    'are followed at once by every other handle': async (t) => {
      const other = await t.another()
      await other.add({ type: 'a' })
      await route(t, 'a', 'other')
      assert.deepEqual(await places(t, await other.add({ type: 'a' })), ['other/a'])
      await route(t, 'a', null)
      assert.deepEqual(await places(t, await other.add({ type: 'a' })), ['q/a'])
    },
  },
}
