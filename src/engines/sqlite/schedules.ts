// Schedules on SQLite: set and removed with their audit rows; a slot advances in the commit that enqueues its task.
import type { Patch } from '../../engine/contract.js'
import type { ScheduleRecord } from '../../task/records.js'
import {
  bounded,
  firingOf,
  patchedSchedule,
  type ScheduleRow,
  scheduleNamed,
  scheduleRecord,
  scheduleUnknown,
  timingOf,
} from '../schedules.js'
import { audit } from './audit.js'
import { enqueue } from './enqueue.js'
import type { Session } from './session.js'

/** The wall clock, by which slots are reckoned. */
export const wallNow = (s: Session): number => Math.floor(s.clock.wallMs())

/** Enqueues what is due, about `max` tasks at most. */
export function fireDue(s: Session, max: number): void {
  fire(s, s.q.dueSchedules.all(wallNow(s), max) as ScheduleRow[], max)
}

function fire(s: Session, rows: readonly ScheduleRow[], max: number): void {
  const now = wallNow(s)
  const firings = bounded(rows, max, (row) => firingOf(row, s.catalog.queueById(row.queue).name, now))
  for (const { row, tasks, nextAt, lastAt } of firings) {
    if (tasks.length > 0) enqueue(s, tasks)
    s.q.setSlot.run(nextAt, lastAt, row.queue, row.name)
  }
}

/** Sets a schedule or, with null, removes it; answers its record. */
export function configureSchedule(s: Session, text: string, patch: Patch | null, actor: string): ScheduleRecord {
  const { queueName, name } = scheduleNamed(text)
  const subject = `${queueName}/${name}`
  const known = s.catalog.queue(queueName)
  const find = () => known && (s.q.scheduleOf.get(known.id, name) as ScheduleRow | undefined)
  if (patch === null) {
    const row = find()
    if (!row) throw scheduleUnknown(queueName, name)
    s.q.dropSchedule.run(row.queue, name)
    audit(s, actor, 'remove schedule', subject, timingOf(row.settings))
    return scheduleRecord(row, queueName)
  }
  const now = wallNow(s)
  const before = find()
  // What was due under the old timing is not lost to the new one.
  if (before && before.nextAt !== null && before.nextAt <= now) fire(s, [before], Number.POSITIVE_INFINITY)
  const { row, changed } = patchedSchedule(find() ?? null, patch, now)
  const queue = s.catalog.ensureQueue(queueName, s.now).id
  if (changed) {
    s.q.putSchedule.run(queue, name, row.settings, row.nextAt, row.lastAt)
    audit(s, actor, 'set schedule', subject, timingOf(row.settings))
  }
  return scheduleRecord({ queue, name, ...row }, queueName)
}

export const schedules = (s: Session): ScheduleRecord[] =>
  (s.q.schedules.all() as ScheduleRow[]).map((row) => scheduleRecord(row, s.catalog.queueById(row.queue).name))
