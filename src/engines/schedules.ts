// Schedules as both SQL engines keep and show them: how a row is set, and what its due slots put into its queue.
import type { NewTask, Patch } from '../engine/contract.js'
import { PieceworkError } from '../ground/errors.js'
import { warn } from '../ground/warn.js'
import { checkName } from '../task/limits.js'
import type { ScheduleRecord } from '../task/records.js'
import {
  type Begun,
  checkTiming,
  dueAtInstant,
  never,
  type ScheduleTask,
  sameTiming,
  slotAfter,
} from '../task/schedule.js'

export interface ScheduleRow {
  queue: number
  name: string
  settings: string
  nextAt: number | null
  lastAt: number | null
}

interface Settings extends Begun {
  task: ScheduleTask
}

/** The queue and the schedule that `configure('schedule', …)` names: the queue, a NUL and the name; PW_NAME_INVALID. */
export function scheduleNamed(text: string): { queueName: string; name: string } {
  const [queue, name] = text.split('\0', 2)
  return { queueName: checkName('queue name', queue), name: checkName('schedule', name) }
}

export const scheduleUnknown = (queue: string, name: string) =>
  new PieceworkError(
    'PW_SCHEDULE_UNKNOWN',
    `There is no schedule ${JSON.stringify(name)} in ${JSON.stringify(queue)}.`,
    {
      queue,
      name,
    },
  )

/**
 * The row as a patch leaves it, and whether that changed anything. The same timing goes on where it was; another one
 * begins now, and after the last slot. Throws what checkTiming throws.
 */
export function patchedSchedule(before: ScheduleRow | null, patch: Patch, now: number) {
  const timing = checkTiming(patch)
  const old = before && (JSON.parse(before.settings) as Settings)
  const lastAt = before?.lastAt ?? null
  const same = old !== null && sameTiming(old, timing)
  // Set under a clock that was ahead, and not fired yet: nobody has to wait until that comes true.
  const since = !same ? now : lastAt === null ? Math.min(old.since, now) : old.since
  const settings: Settings = { ...timing, since, task: patch.task as ScheduleTask }
  const nextAt = slotAfter(settings, lastAt ?? Number.NEGATIVE_INFINITY)
  if (nextAt === null && !same) {
    throw never(lastAt === null ? 'It has no slot.' : 'It has no slot after the last one.', { lastAt })
  }
  const row = { settings: JSON.stringify(settings), nextAt, lastAt }
  return { row, changed: before?.settings !== row.settings }
}

/** What an audit row keeps of a schedule that was set: when it fires, not what it carries. */
export function timingOf(settings: string): Patch {
  const { task: _, ...timing } = JSON.parse(settings) as Settings
  return timing
}

export interface Firing {
  row: ScheduleRow
  tasks: NewTask[]
  lastAt: number | null
  nextAt: number | null
}

/** After this long a schedule is looked at again that this process cannot read. */
const unreadableMs = 60_000

/** What a schedule puts into its queue at `now`. Never throws: one bad row must not hold the sweep of all others up. */
export function firingOf(row: ScheduleRow, queue: string, now: number): Firing {
  try {
    const { task, ...begun } = JSON.parse(row.settings) as Settings
    const { slots, lastAt, nextAt } = dueAtInstant(begun, row.lastAt, now)
    return { row, tasks: slots.map((slot) => slotTask(task, queue, row.name, slot)), lastAt, nextAt }
  } catch (cause) {
    // Another Node.js on the same store may know the zone that this one does not: the slots stay where they are.
    const message = `The schedule ${JSON.stringify(row.name)} of ${JSON.stringify(queue)} cannot be reckoned here.`
    warn(new PieceworkError('PW_SCHEDULE_INVALID', message, { queue, name: row.name }, { cause }))
    return { row, tasks: [], lastAt: row.lastAt, nextAt: now + unreadableMs }
  }
}

/** The first of these firings that together make no more than about `max` tasks; one at least. */
export function bounded(rows: readonly ScheduleRow[], max: number, fire: (row: ScheduleRow) => Firing): Firing[] {
  const firings: Firing[] = []
  let tasks = 0
  for (const row of rows) {
    if (tasks >= max) break
    const firing = fire(row)
    tasks += firing.tasks.length
    firings.push(firing)
  }
  return firings
}

function slotTask(task: ScheduleTask, queue: string, name: string, slot: number): NewTask {
  const own = { 'piecework-schedule': name, 'piecework-slot': new Date(slot).toISOString() }
  const headers = JSON.stringify({ ...(JSON.parse(task.headers ?? '{}') as object), ...own })
  return { ...task, queue, headers }
}

export function scheduleRecord(row: ScheduleRow, queue: string): ScheduleRecord {
  const { since: _, ...settings } = JSON.parse(row.settings) as Settings
  const { name, nextAt, lastAt } = row
  return { queue, name, ...settings, nextAt, lastAt }
}
