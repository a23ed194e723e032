// Sets, removes and reads schedules, as queue.schedule(), the command line and a broker do.
import { PieceworkError } from '../ground/errors.js'
import { checkName, shown } from '../task/limits.js'
import type { ScheduleRecord } from '../task/records.js'
import type { Missed, ScheduleTask } from '../task/schedule.js'
import type { Acting } from './connection.js'
import { checkOptions, type TaskOptions, taskOf } from './options.js'

/** When a schedule fires, by exactly one of cron, everyMs and dueAt; and the options of the task of each slot. */
export interface ScheduleOptions
  extends Pick<TaskOptions, 'type' | 'key' | 'priority' | 'deadlineMs' | 'dedupKey' | 'headers'> {
  /** Five fields, or six with seconds first: `'0 3 * * *'`. */
  cron?: string | undefined
  /** The IANA zone of the expression, default UTC. */
  tz?: string | undefined
  /** Every so many ms, at least 100, from when it was first set; or from `dueAt`. */
  everyMs?: number | undefined
  /** One slot at this wall-clock instant; beside everyMs, the first of them. */
  dueAt?: Date | number | undefined
  /** Slots that nobody was there for: `latest` (default) fires the newest late, `skip` none, `all` up to 1000. */
  missed?: Missed | undefined
}

/** A schedule as it stands. */
export interface Schedule {
  queue: string
  name: string
  cron: string | null
  tz: string | null
  everyMs: number | null
  dueAt: Date | null
  missed: Missed
  /** The next slot; null when none is left. */
  nextAt: Date | null
  /** The last slot that was enqueued, or skipped. */
  lastAt: Date | null
}

const dateOrNull = (at: number | null) => (at === null ? null : new Date(at))

/** What a program sees of the record. */
export const scheduleFrom = ({ task: _, dueAt, nextAt, lastAt, ...record }: ScheduleRecord): Schedule => ({
  ...record,
  dueAt: dateOrNull(dueAt),
  nextAt: dateOrNull(nextAt),
  lastAt: dateOrNull(lastAt),
})

const isoOrNull = (at: number | null) => (at === null ? null : new Date(at).toISOString())

/** A schedule as other programs read it: instants as ISO 8601 text; without payload and headers. */
export function plainSchedule({ task, dueAt, nextAt, lastAt, ...record }: ScheduleRecord) {
  const { type = record.queue, key = null, priority = 0, deadlineMs = null, dedupKey = null } = task
  const instants = { dueAt: isoOrNull(dueAt), nextAt: isoOrNull(nextAt), lastAt: isoOrNull(lastAt) }
  return { ...record, ...instants, type, key, priority, deadlineMs, dedupKey }
}

/** The engine's words for options that were given; throws PW_OPTION_UNKNOWN and what taskOf throws. */
export function scheduleOf(queue: string, options: ScheduleOptions, payload: string) {
  checkOptions('schedule', options ?? null)
  const { cron, tz, everyMs, dueAt, missed, ...rest } = options
  const { queue: _, ...task } = taskOf(queue, payload, rest)
  const at = dueAt instanceof Date ? dueAt.getTime() : dueAt
  return { cron, tz, everyMs, dueAt: at, missed, task: task satisfies ScheduleTask }
}

/** Sets it; throws PW_SCHEDULE_INVALID, PW_SCHEDULE_NEVER, PW_ZONE_UNKNOWN, PW_NAME_INVALID and PW_OPTION_… */
export async function setSchedule(
  connection: Acting,
  queue: string,
  name: unknown,
  patch: ReturnType<typeof scheduleOf>,
): Promise<ScheduleRecord> {
  const named = `${queue}\0${checkName('schedule', name)}`
  return (await connection.engine().configure('schedule', named, patch, connection.actor)) as unknown as ScheduleRecord
}

/** Removes it; throws PW_SCHEDULE_UNKNOWN. */
export async function removeSchedule(connection: Acting, queue: string, name: unknown): Promise<ScheduleRecord> {
  const named = `${queue}\0${checkName('schedule', name)}`
  return (await connection.engine().configure('schedule', named, null, connection.actor)) as unknown as ScheduleRecord
}

/** Schedules by queue and name, of one queue or of all. */
export async function readSchedules(
  connection: Acting,
  filter: { queue?: string | undefined; name?: string | undefined } = {},
): Promise<ScheduleRecord[]> {
  return (await connection.engine().select('schedule', filter, null)).items as unknown as ScheduleRecord[]
}

/** The one of this name; throws PW_SCHEDULE_UNKNOWN, and PW_OPTION_INVALID when several queues have one. */
export function oneSchedule(found: readonly ScheduleRecord[], name: string): ScheduleRecord {
  const [schedule, another] = found
  if (!schedule) throw new PieceworkError('PW_SCHEDULE_UNKNOWN', `There is no schedule ${shown(name)}.`, { name })
  if (!another) return schedule
  const queues = found.map(({ queue }) => shown(queue)).join(', ')
  throw new PieceworkError('PW_OPTION_INVALID', `${shown(name)} is a schedule of ${queues}; say of which queue.`, {
    name,
  })
}
