// When tasks due at an instant of the wall clock mature, although only the engine's clock wakes anybody.
import type { Session } from './session.js'

/** Jumps of the wall clock below this are left to the next look at each task that was due on it. */
const jumpNoticedMs = 500

const moved = (s: Session): boolean => s.wallSeen === null || Math.abs(s.wallShift - s.wallSeen) > jumpNoticedMs

/** True when tasks are due on the wall clock and one of them may be reckoned by another than it is now. */
export const wallMoved = (s: Session): boolean => moved(s) && s.q.wallTasks.get() !== undefined

/** After a jump of the wall clock: gives tasks with a wall-clock instant the engine instant it now means. */
export function rewall(s: Session): void {
  for (const { id, wallAt } of s.q.wallTasks.all() as { id: number; wallAt: number }[]) {
    s.q.setWake.run(Math.round(wallAt - s.wallShift), id)
  }
  s.wallSeen = s.wallShift
}

/**
 * What to take from a wall-clock instant to have it on the engine's clock, for a task that is reckoned now. By a clock
 * that moved since all were: then all are to be looked at again, also when it is set right before anybody looks.
 */
export function wallShiftNow(s: Session): number {
  if (moved(s)) s.wallSeen = null
  return s.wallShift
}
