// `piecework schedule`: lists schedules, sets and removes one, and prints the next instants of one or of an expression.
import type { Command } from 'commander'
import { systemClock } from '../../ground/clock.js'
import { PieceworkError } from '../../ground/errors.js'
import {
  oneSchedule,
  plainSchedule,
  readSchedules,
  removeSchedule,
  type ScheduleOptions,
  scheduleOf,
  setSchedule,
} from '../../queue/schedules.js'
import { checkName, shown } from '../../task/limits.js'
import { checkPayloadText, encodePayload } from '../../task/payload.js'
import type { ScheduleRecord } from '../../task/records.js'
import { checkTiming, missedChoices, nextSlots, type Timing } from '../../task/schedule.js'
import { queueNamed } from '../names.js'
import { humanMs, isoOf, table } from '../print.js'
import { type Act, acts, type Context } from '../program.js'
import { jsonWith } from '../raw.js'
import { withStore } from '../store.js'
import { choice, collected, duration, instant, pair, whole } from '../values.js'

export function scheduleCommand(program: Command): void {
  const schedule = program.command('schedule').description('list schedules, set or remove one, see when one fires')
  acts(schedule.command('list').description('list the schedules of a queue, or of all').argument('[queue]'), list)
  const set = schedule.command('set').description('put a task into a queue at each slot; set again, it goes on')
  set.argument('<queue>').argument('<name>').argument('[json]', 'the payload, one JSON value (default: null)')
  timed(set)
    .option('--text', 'the payload is plain text, not JSON')
    .option('--missed <what>', `of slots nobody was there for: ${missedChoices.join(', ')} (default: latest)`)
    .option('--type <type>', "the tasks' type (default: the queue's name)")
    .option('--priority <n>', '-100 to 100')
    .option('--key <key>', 'tasks of one key run one after the other, in order')
    .option('--dedup-key <key>', 'no second task while one with this key lives')
    .option('--deadline <duration>', 'dead when it was not started within so long')
    .option('--header <name=value>', 'a text beside the payload; may be repeated', collected)
  acts(set, setAct)
  const remove = schedule.command('remove').description('end a schedule; its tasks stay')
  acts(remove.argument('<queue>').argument('<name>'), removeAct)
  const next = schedule
    .command('next')
    .description('print the next slots of a schedule, or of the options: needs no store')
  next.argument('[queue]').argument('[name]')
  acts(timed(next).option('-n, --limit <n>', 'how many (default: 5)'), nextAct)
}

/** The options that say when. */
const timed = (command: Command): Command =>
  command
    .option('--cron <expression>', 'five fields, or six with seconds first')
    .option('--tz <zone>', 'the time zone of the expression (default: UTC)')
    .option('--every <duration>', 'an interval')
    .option('--due-at <instant>', 'once, at an instant such as 2030-01-31T08:00:00Z; with --every the first slot')

interface Given {
  cron?: string
  tz?: string
  every?: string
  dueAt?: string
  missed?: string
  text?: boolean
  type?: string
  priority?: string
  key?: string
  dedupKey?: string
  deadline?: string
  header?: string[]
  limit?: string
}

const timingOf = ({ cron, tz, every, dueAt, missed }: Given): ScheduleOptions => ({
  ...{ cron, tz },
  everyMs: every === undefined ? undefined : duration('--every', every),
  dueAt: dueAt === undefined ? undefined : instant('--due-at', dueAt),
  missed: missed === undefined ? undefined : choice('--missed', missed, missedChoices),
})

function optionsOf(given: Given): ScheduleOptions {
  const { type, key, dedupKey, priority, deadline, header } = given
  const options: ScheduleOptions = { ...timingOf(given), type, key, dedupKey }
  if (priority !== undefined) options.priority = whole('--priority', priority, -100, 100)
  if (deadline !== undefined) options.deadlineMs = duration('--deadline', deadline)
  if (header !== undefined) options.headers = Object.fromEntries(header.map((text) => pair('--header', text)))
  return options
}

/** A schedule as programs read it, with the payload as it stands. */
const lineOf = (record: ScheduleRecord) => {
  const { headers, payload } = record.task
  return jsonWith({ ...plainSchedule(record), headers: JSON.parse(headers ?? '{}') }, 'payload', payload)
}

const whenOf = ({ cron, tz, everyMs, dueAt }: Timing): string => {
  if (cron !== null) return `${cron} ${tz}`
  return everyMs === null ? `once at ${isoOf(dueAt)}` : `every ${humanMs(everyMs)}`
}

const list: Act = ({ url, output }, [queue]) =>
  withStore(url, { create: false }, async (store) => {
    const named = queue === undefined ? undefined : (await queueNamed(store, queue)).name
    const found = await readSchedules(store.connection, { queue: named })
    if (output.json) for (const record of found) await output.result(lineOf(record))
    else {
      const rows = found.map((record) => {
        const { queue, name, missed, nextAt, lastAt } = record
        return [queue, name, whenOf(record), missed, isoOf(nextAt), isoOf(lastAt)]
      })
      await output.result(table(['queue', 'schedule', 'when', 'missed', 'next', 'last'], rows))
    }
    return 0
  })

const setAct: Act = async ({ url, output }, [queueName, name, text], options) => {
  const given = options as Given
  const queue = checkName('queue name', queueName)
  const payload = given.text === true ? encodePayload(text ?? '') : checkPayloadText(String(text ?? 'null'))
  const patch = scheduleOf(queue, optionsOf(given), payload)
  // Checked before a store is opened for a mistyped option.
  checkTiming(patch)
  return withStore(url, { create: false }, async ({ connection }) => {
    const record = await setSchedule(connection, queue, name, patch)
    if (output.json) await output.result(lineOf(record))
    else await output.result(`${record.name}: next ${isoOf(record.nextAt) ?? 'never, it has fired'}`)
    return 0
  })
}

const removeAct: Act = ({ url, output }, [queueName, name]) =>
  withStore(url, { create: false }, async (store) => {
    const { name: queue } = await queueNamed(store, queueName)
    const record = await removeSchedule(store.connection, queue, name)
    if (output.json) await output.value({ queue, name: record.name, removed: true })
    else await output.result(`${record.name} removed`)
    return 0
  })

const nextAct: Act = async (context, [queue, name], options) => {
  const given = options as Given
  const count = given.limit === undefined ? 5 : whole('--limit', given.limit, 1, 1000)
  const now = Math.floor(systemClock.wallMs())
  if (name !== undefined) {
    refuseBoth(given)
    return nextOf(context, checkName('queue name', queue), checkName('schedule', name), { now, count })
  }
  if (queue !== undefined)
    throw new PieceworkError('PW_USAGE', `Of which schedule of ${shown(queue)}? Give its name, too.`)
  const { dueAt, ...timing } = timingOf(given)
  const begun = { ...checkTiming({ ...timing, dueAt: dueAt?.valueOf() }), since: now }
  return told(context, nextSlots(begun, now, count))
}

function refuseBoth({ cron, tz, every, dueAt }: Given): void {
  if ([cron, tz, every, dueAt].every((value) => value === undefined)) return
  throw new PieceworkError('PW_USAGE', 'Give a schedule by its queue and name, or the options that say when; not both.')
}

const nextOf = ({ url, ...context }: Context, queue: string, name: string, ask: { now: number; count: number }) =>
  withStore(url, { create: false }, async (store) => {
    const record = oneSchedule(await readSchedules(store.connection, { queue, name }), name)
    // The first one is what the store waits for, also when it is late.
    const { nextAt } = record
    const slots = nextAt === null ? [] : [nextAt, ...nextSlots({ ...record, since: nextAt }, nextAt, ask.count - 1)]
    return told({ url, ...context }, slots)
  })

async function told({ output }: Context, slots: readonly number[]): Promise<number> {
  for (const slot of slots)
    await (output.json ? output.value({ slotAt: isoOf(slot) }) : output.result(String(isoOf(slot))))
  return 0
}
