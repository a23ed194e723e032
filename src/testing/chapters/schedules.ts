// Conformance: one task for each slot of a schedule, whatever happens to those who sweep and to the clocks.
import assert from 'node:assert/strict'
import type { Patch } from '../../engine/contract.js'
import type { ScheduleRecord, TaskRecord } from '../../task/records.js'
import { type Chapter, like, refused, type Trial } from '../trial.js'

const minute = 60_000
const hour = 3_600_000
const task = { payload: '{"report":1}' }

const set = async (t: Trial, timing: Patch, name = 'nightly', queue = 'q') =>
  (await t.engine.configure(
    'schedule',
    `${queue}\0${name}`,
    { task, ...timing },
    'tester',
  )) as unknown as ScheduleRecord
const remove = (t: Trial, name = 'nightly') => t.engine.configure('schedule', `q\0${name}`, null, 'tester')

const all = async (t: Trial) => (await t.engine.select('schedule', {}, null)).items as unknown as ScheduleRecord[]
const only = async (t: Trial) => (await all(t))[0] as ScheduleRecord

/** The instants of the slots whose tasks are there, in the order of the tasks. */
async function slots(t: Trial, queue = 'q'): Promise<number[]> {
  const headers = ({ headers }: TaskRecord) => JSON.parse(headers ?? '{}') as Record<string, string>
  return (await t.tasks({ queue })).map((row) => Date.parse(headers(row)['piecework-slot'] ?? ''))
}

/** Sweeps now and after each of these times. */
async function sweepAfter(t: Trial, ...each: number[]): Promise<void> {
  for (const ms of each) {
    await t.advance(ms)
    await t.sweep()
  }
}

export const schedulesChapter: Chapter = {
  title: 'schedules',
  tests: {
    'put one task for each slot into their queue, which says of which schedule and slot it is': async (t) => {
      const headers = '{"tenant":"ada"}'
      const whole = { payload: '[1, 2.0]', type: 'report', key: 'k', priority: 3, headers }
      const from = await t.wallMs()
      like(await set(t, { everyMs: minute, task: whole }), { nextAt: from + minute, lastAt: null, task: whole })
      await sweepAfter(t, minute - 1)
      assert.deepEqual(await slots(t), [])
      await sweepAfter(t, 1, 0, 1)
      const [made, ...more] = await t.tasks()
      assert.deepEqual(more, [])
      like(made, { type: 'report', key: 'k', priority: 3, payload: '[1, 2.0]', state: 'ready', dueAt: from + minute })
      assert.deepEqual(JSON.parse(made?.headers ?? ''), {
        tenant: 'ada',
        'piecework-schedule': 'nightly',
        'piecework-slot': new Date(from + minute).toISOString(),
      })
      like(await only(t), { queue: 'q', name: 'nightly', nextAt: from + 2 * minute, lastAt: from + minute })
      like(await t.figures('q', 'report'), { enqueued: 1, ready: 1 })
    },

    'tell a sweep when the next slot is': async (t) => {
      await t.sweep()
      assert.equal((await t.sweep()).nextMs, null)
      await set(t, { everyMs: hour })
      assert.equal((await t.sweep()).nextMs, hour)
      await set(t, { everyMs: minute }, 'other')
      await t.advance(1000)
      assert.equal((await t.sweep()).nextMs, minute - 1000)
      await t.advance(minute - 1000)
      assert.equal((await t.sweep()).nextMs, minute)
    },

    'go by the cron expression of their time zone': async (t) => {
      // 2033-05-18T03:33:20Z, 05:33:20 in Berlin.
      const from = await t.wallMs()
      like(await set(t, { cron: '*/10 * * * * *' }, 'seconds'), { nextAt: from + 10_000, tz: 'UTC', missed: 'latest' })
      like(await set(t, { cron: '0 6 * * *', tz: 'Europe/Berlin' }), { nextAt: from + 1_600_000 })
      await sweepAfter(t, 10_000)
      assert.deepEqual(await slots(t), [from + 10_000])
    },

    'keep the beat of an interval, whenever somebody looks': async (t) => {
      const from = await t.wallMs()
      await set(t, { everyMs: 1000, missed: 'all' })
      await set(t, { everyMs: 1000, dueAt: from + 250, missed: 'all' }, 'anchored', 'p')
      await sweepAfter(t, 1700, 999, 600, 701)
      assert.deepEqual(await slots(t), [from + 1000, from + 2000, from + 3000, from + 4000])
      assert.deepEqual(await slots(t, 'p'), [from + 250, from + 1250, from + 2250, from + 3250])
    },

    'set again go on where they were; another timing begins anew, and loses nothing that was due': async (t) => {
      const from = await t.wallMs()
      await set(t, { everyMs: minute })
      await sweepAfter(t, 1.5 * minute)
      like(await set(t, { everyMs: minute, task: { payload: '2' } }), {
        ...{ lastAt: from + minute, nextAt: from + 2 * minute },
      })
      await sweepAfter(t, 0)
      assert.deepEqual(await slots(t), [from + minute])
      await t.advance(minute)
      // Due a minute ago: nobody has swept since.
      like(await set(t, { everyMs: hour }), { lastAt: from + 2 * minute, nextAt: from + 2.5 * minute + hour })
      assert.deepEqual(await slots(t), [from + minute, from + 2 * minute])
      const [, second] = await t.tasks()
      assert.equal(second?.payload, '2')
    },

    'give what was missed in five minutes as one task, none, or all of them (case 13)': async (t) => {
      const from = await t.wallMs()
      for (const missed of ['latest', 'skip', 'all']) await set(t, { everyMs: minute, missed }, missed, missed)
      await sweepAfter(t, 5 * minute + 20_000, 0)
      assert.deepEqual(await slots(t, 'latest'), [from + 5 * minute])
      assert.deepEqual(await slots(t, 'skip'), [])
      assert.deepEqual(
        await slots(t, 'all'),
        [1, 2, 3, 4, 5].map((n) => from + n * minute),
      )
      await sweepAfter(t, 40_000, 0)
      for (const missed of ['latest', 'skip', 'all']) {
        assert.equal((await slots(t, missed)).at(-1), from + 6 * minute, `${missed} goes on`)
      }
    },

    'give at most the newest 1000 of all that was missed': async (t) => {
      const from = await t.wallMs()
      await set(t, { everyMs: 1000, missed: 'all' })
      await set(t, { cron: '* * * * * *', missed: 'all' }, 'cron', 'p')
      await sweepAfter(t, 1_200_500, 0)
      for (const queue of ['q', 'p']) {
        const found = await slots(t, queue)
        assert.deepEqual([found.length, found[0], found.at(-1)], [1000, from + 201_000, from + 1_200_000])
      }
    },

    'fire once at one instant, also one that is past, and are not set off by being set again': async (t) => {
      const from = await t.wallMs()
      await set(t, { dueAt: from + minute })
      await set(t, { dueAt: from - hour }, 'past')
      like(await set(t, { dueAt: from - hour, missed: 'skip' }, 'missed'), { nextAt: from - hour })
      await sweepAfter(t, 0, minute, hour)
      like(await set(t, { dueAt: from + minute }), { nextAt: null, lastAt: from + minute })
      await sweepAfter(t, hour)
      assert.deepEqual(await slots(t), [from - hour, from + minute])
      assert.equal((await t.sweep()).nextMs, null)
      await refused(set(t, { dueAt: from }), 'PW_SCHEDULE_NEVER')
      like(await set(t, { dueAt: from + 5 * hour }), { nextAt: from + 5 * hour })
    },

    'are refused when they say nothing, too much, or never, and nothing is changed': async (t) => {
      const invalid = [{}, { cron: '* * * * *', everyMs: minute }, { cron: '61 * * * *' }, { cron: '* * * *' }]
      const more = [{ cron: '2033-06-01T00:00:00' }, { everyMs: minute, tz: 'UTC' }, { cron: '@hourly', missed: 'no' }]
      const never = [{ cron: '0 0 30 2 *' }, { cron: '0 0 0 31 4,6 *', tz: 'Europe/Berlin' }]
      const zones = ['', 'Mars/Olympus', '+02:00', 7]
      await set(t, { everyMs: minute })
      const before = await all(t)
      for (const timing of [...invalid, ...more]) await refused(set(t, timing), 'PW_SCHEDULE_INVALID')
      for (const timing of never) await refused(set(t, timing), 'PW_SCHEDULE_NEVER')
      for (const tz of zones) await refused(set(t, { cron: '0 3 * * *', tz }), 'PW_ZONE_UNKNOWN')
      for (const everyMs of [0, 99, 1.5, '60000']) await refused(set(t, { everyMs }), 'PW_OPTION_INVALID')
      await refused(remove(t, 'other'), 'PW_SCHEDULE_UNKNOWN')
      await refused(set(t, { everyMs: minute }, ''), 'PW_NAME_INVALID')
      assert.deepEqual(await all(t), before)
      assert.equal((await t.audits()).length, 1)
    },

    'fill a paused queue, too': async (t) => {
      await set(t, { everyMs: minute })
      await t.engine.configure('queue', 'q', { paused: true }, 'tester')
      await sweepAfter(t, minute)
      assert.equal((await slots(t)).length, 1)
      assert.deepEqual(await t.claim(), [])
    },

    'make no second task while one with their dedup key lives': async (t) => {
      const from = await t.wallMs()
      await set(t, { everyMs: minute, task: { ...task, dedupKey: 'report' } })
      await sweepAfter(t, minute, minute, minute)
      assert.deepEqual(await slots(t), [from + minute])
      await t.ack(await t.take())
      await sweepAfter(t, minute)
      assert.deepEqual(await slots(t), [from + 4 * minute])
    },

    'fire again although the task of the slot before is still held by the dead (case 17)': async (t) => {
      await set(t, { everyMs: minute })
      await sweepAfter(t, minute)
      await t.take({ leaseMs: hour })
      await sweepAfter(t, minute)
      assert.equal((await t.claim()).length, 1)
    },

    'end when they are removed, and leave an audit row for each change': async (t) => {
      await set(t, { everyMs: minute })
      await set(t, { everyMs: minute })
      like(await remove(t), { queue: 'q', name: 'nightly', everyMs: minute })
      await sweepAfter(t, hour)
      assert.deepEqual([await slots(t), await all(t)], [[], []])
      const audits = (await t.audits()).map(({ actor, action, subject }) => [actor, action, subject])
      assert.deepEqual(audits, [
        ['tester', 'set schedule', 'q/nightly'],
        ['tester', 'remove schedule', 'q/nightly'],
      ])
    },

    'are listed by queue and name': async (t) => {
      for (const name of ['b', 'a']) for (const queue of ['q', 'p']) await set(t, { everyMs: minute }, name, queue)
      const named = async (filter: { queue?: string; name?: string }) =>
        (await t.engine.select('schedule', filter, null)).items.map(({ queue, name }) => `${queue}/${name}`)
      assert.deepEqual(await named({}), ['p/a', 'p/b', 'q/a', 'q/b'])
      assert.deepEqual(await named({ queue: 'q', name: 'b' }), ['q/b'])
    },
  },
}

export const sharedSchedulesChapter: Chapter = {
  title: 'schedules of several handles',
  needs: 'persists',
  tests: {
    'fire once for all who sweep at the same time and set them again meanwhile (case 12)': async (t) => {
      const others = [await t.another(), await t.another(), await t.another()]
      const from = await t.wallMs()
      await Promise.all([t, ...others].map((each) => set(each, { everyMs: 1000, missed: 'all' })))
      for (let n = 0; n < 12; n++) {
        await t.advance(700)
        await Promise.all([t, ...others].flatMap((each) => [each.sweep(), set(each, { everyMs: 1000, missed: 'all' })]))
      }
      assert.deepEqual(
        await slots(t),
        [1, 2, 3, 4, 5, 6, 7, 8].map((n) => from + n * 1000),
      )
    },
  },
}

/** For engines whose own clock is another one than the wall clock. */
export const wallSchedulesChapter: Chapter = {
  title: 'schedules and the wall clock',
  needs: 'wallClock',
  tests: {
    'never fire a slot twice when the clock is set back, and go on when it is there again': async (t) => {
      const from = await t.wallMs()
      await set(t, { everyMs: minute })
      await sweepAfter(t, minute)
      t.store.jumpWall(-hour)
      like(await set(t, { everyMs: minute }), { nextAt: from + 2 * minute, lastAt: from + minute })
      like(await set(t, { cron: '* * * * *' }), { lastAt: from + minute })
      assert.ok(((await only(t)).nextAt ?? 0) > from + minute)
      await set(t, { everyMs: minute, dueAt: from })
      await sweepAfter(t, 0, 30 * minute)
      assert.deepEqual(await slots(t), [from + minute])
      t.store.jumpWall(hour)
      await sweepAfter(t, 0)
      assert.deepEqual(await slots(t), [from + minute, from + 31 * minute])
    },

    'take a clock that was set ahead as slots that were missed, each of them once': async (t) => {
      const from = await t.wallMs()
      await set(t, { everyMs: minute, missed: 'all' })
      t.store.jumpWall(3 * minute)
      await sweepAfter(t, 0)
      t.store.jumpWall(-3 * minute)
      await sweepAfter(t, minute, minute, minute, minute)
      assert.deepEqual(
        await slots(t),
        [1, 2, 3, 4].map((n) => from + n * minute),
      )
    },

    'set under a clock that was ahead begin when it was put right': async (t) => {
      const from = await t.wallMs()
      t.store.jumpWall(1000 * hour)
      await set(t, { cron: '0 0 * * * *' })
      t.store.jumpWall(-1000 * hour)
      like(await set(t, { cron: '0 0 * * * *' }), { nextAt: Math.ceil(from / hour) * hour })
    },
  },
}
