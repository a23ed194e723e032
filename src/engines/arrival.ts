// Where a new task starts: its state, its instants and its place.
import type { NewTask } from '../engine/contract.js'
import type { State } from '../task/lifecycle.js'
import { placeOf } from '../task/place.js'

/** `wallShift` is what to add to an engine instant to have it on the wall clock. */
export function arrivalOf(task: NewTask, now: number, wallShift: number, headStartMs: number) {
  const dueAt = task.dueAt === undefined ? now + (task.delayMs ?? 0) : Math.round(task.dueAt - wallShift)
  const later = dueAt > now
  const state: State = later ? 'scheduled' : task.key !== undefined ? 'waiting' : 'ready'
  const priority = task.priority ?? 0
  return {
    state,
    place: placeOf(dueAt, priority, headStartMs),
    dueAt,
    wakeAt: later ? dueAt : null,
    wallAt: later && task.dueAt !== undefined ? task.dueAt : null,
    deadlineAt: task.deadlineMs === undefined ? null : now + task.deadlineMs,
    priority,
  }
}
