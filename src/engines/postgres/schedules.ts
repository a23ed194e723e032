// Schedules on PostgreSQL: set and removed with their audit rows; a slot advances in the commit that enqueues its task.
import type { NewTask, Patch } from '../../engine/contract.js'
import type { ScheduleRecord } from '../../task/records.js'
import { checkTiming, type ScheduleTask } from '../../task/schedule.js'
import {
  bounded,
  type Firing,
  firingOf,
  patchedSchedule,
  type ScheduleRow,
  scheduleNamed,
  scheduleRecord,
  scheduleUnknown,
  timingOf,
} from '../schedules.js'
import { audit } from './audit.js'
import { enqueue, unprepared } from './enqueue.js'
import { asWas, clean, type Session } from './session.js'
import { again } from './turn.js'

/** Tasks whose names have to be made before the transaction runs again. */
export type Unnamed = NewTask[]

/** Enqueues what is due, about `max` tasks at most. Two sweeps share the schedules: neither waits for the other. */
export async function fireDue(s: Session, max: number, unnamed: Unnamed): Promise<undefined | typeof again> {
  return fire(s, await read(s, s.q.dueSchedules, [s.now, max]), max, unnamed)
}

async function fire(s: Session, rows: readonly ScheduleRow[], max: number, unnamed: Unnamed) {
  const firings = bounded(rows, max, (row) => firingOf(row, s.catalog.queueById(row.queue).name, s.now))
  const tasks = firings.flatMap((firing: Firing) => firing.tasks)
  unnamed.push(...unprepared(s.catalog, tasks))
  if (unnamed.length > 0) return again
  if (tasks.length > 0) await enqueue(s, tasks)
  for (const { row, nextAt, lastAt } of firings) s.add(s.q.setSlots, row.queue, clean(row.name), nextAt, lastAt)
  return undefined
}

const read = async (s: Session, statement: Parameters<Session['run']>[0], values: readonly unknown[]) =>
  (await s.run<ScheduleRow>(statement, values)).map((row) => ({
    ...row,
    name: asWas(row.name),
    settings: asWas(row.settings),
  }))

/** Sets a schedule or, with null, removes it; answers its record. */
export async function configureSchedule(
  s: Session,
  text: string,
  patch: Patch | null,
  by: { actor: string; unnamed: Unnamed },
): Promise<ScheduleRecord | typeof again> {
  const { queueName, name } = scheduleNamed(text)
  const subject = `${queueName}/${name}`
  if (patch === null) return remove(s, queueName, name, by.actor)
  checkTiming(patch)
  by.unnamed.push(...unprepared(s.catalog, [{ ...(patch.task as ScheduleTask), queue: queueName }]))
  if (by.unnamed.length > 0) return again
  const queue = s.catalog.queue(queueName)?.id as number
  const before = await lock(s, queue, name)
  // What was due under the old timing is not lost to the new one.
  if (before && before.nextAt !== null && before.nextAt <= s.now) {
    if ((await fire(s, [before], Number.POSITIVE_INFINITY, by.unnamed)) === again) return again
  }
  const { row, changed } = patchedSchedule(before && ((await lock(s, queue, name)) ?? null), patch, s.now)
  if (changed) {
    const { settings, nextAt, lastAt } = row
    const made = await s.run(s.q.putSchedule, [queue, clean(name), clean(settings), nextAt, lastAt, before === null])
    // Somebody else made it since we looked: what it is now decides.
    if (made.length === 0) return again
    audit(s, by.actor, 'set schedule', subject, timingOf(settings))
  }
  return scheduleRecord({ queue, name, ...row }, queueName)
}

async function remove(s: Session, queueName: string, name: string, actor: string): Promise<ScheduleRecord> {
  const queue = s.catalog.queue(queueName)
  const row = queue ? await lock(s, queue.id, name) : null
  if (!row) throw scheduleUnknown(queueName, name)
  await s.run(s.q.dropSchedule, [row.queue, clean(name)])
  audit(s, actor, 'remove schedule', `${queueName}/${name}`, timingOf(row.settings))
  return scheduleRecord(row, queueName)
}

const lock = async (s: Session, queue: number, name: string): Promise<ScheduleRow | null> =>
  (await read(s, s.q.lockSchedule, [queue, clean(name)]))[0] ?? null

export const schedules = async (s: Session): Promise<ScheduleRecord[]> =>
  (await read(s, s.q.schedules, [])).map((row) => scheduleRecord(row, s.catalog.queueById(row.queue).name))
