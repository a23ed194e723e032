// Ends leases whose time is over, matures what is due, buries what passed its deadline, prunes what is old.
import type { Swept } from '../../engine/contract.js'
import { giveUp, mature, passDeadline } from '../endings.js'
import type { HeldRow } from '../ledger.js'
import { moveOn } from './move.js'
import type { Session } from './session.js'
import { wallShiftNow } from './wall.js'

/**
 * The whole sweep. `dead` are the workers (ids) found dead before this transaction; `crash` says that they died
 * together with all others, which puts no suspicion on the tasks they held.
 */
export function sweep(s: Session, max: number, dead: readonly number[], crash: boolean): Swept {
  let died = 0
  for (const worker of dead) died += bury(s, worker, crash)
  const { matured, expired, promoted } = sweepDue(s, max)
  const late = s.q.pastDeadline.all(s.now, max) as HeldRow[]
  for (const row of late) passDeadline(s, row)
  const promotedLate = s.promoteLanes().size
  s.q.pruneDedup.run(s.now)
  s.q.pruneAnswers.run(s.now)
  s.q.pruneResults.run(s.now)
  const next = nextDueMs(s)
  const deadline = (s.q.nextDeadline.get() as { at: number | null }).at
  const nextMs = deadline === null ? next : Math.min(next ?? Number.POSITIVE_INFINITY, Math.max(0, deadline - s.now))
  return { expired, died, matured, promoted: promoted + promotedLate, folded: 0, nextMs }
}

/** Matures what is due and ends leases, at most `max` of each; a claim starts with it, so none waits for a sweep. */
export function sweepDue(s: Session, max: number): { matured: number; expired: number; promoted: number } {
  const due = s.q.dueTasks.all(s.now, max) as HeldRow[]
  let matured = 0
  for (const row of due) if (ripe(s, row)) matured++
  const over = s.q.endedLeases.all(s.now, max) as HeldRow[]
  for (const row of over) if (giveUp(s, row, 'expire') !== 'cancelled') moveOn(s, row)
  const promoted = due.length + over.length > 0 ? s.promoteLanes().size : 0
  return { matured, expired: over.length, promoted }
}

function ripe(s: Session, row: HeldRow): boolean {
  const { wallAt } = s.q.wallOf.get(row.id) as { wallAt: number | null }
  const early = wallAt === null ? 0 : wallAt - wallShiftNow(s) - s.now
  // The wall clock was set back: it decides for an instant that was given on it.
  if (early > 0) s.q.setWake.run(s.now + Math.ceil(early), row.id)
  else mature(s, row)
  return early <= 0
}

/** Ends every lease of a worker that died and forgets the worker; answers how many deliveries that ended. */
function bury(s: Session, worker: number, crash: boolean): number {
  const rows = s.q.heldBy.all(worker) as HeldRow[]
  for (const row of rows) if (giveUp(s, row, 'die', crash) !== 'cancelled') moveOn(s, row)
  s.q.leave.run(worker)
  return rows.length
}

/** Milliseconds until the next scheduled task is due or the next lease ends; null when there is neither. */
export function nextDueMs(s: Session): number | null {
  const due = (s.q.nextDue.get() as { at: number | null }).at
  const end = (s.q.nextEnd.get() as { at: number | null }).at
  const next = due === null ? end : end === null ? due : Math.min(due, end)
  return next === null ? null : Math.max(0, next - s.now)
}

/** What a sweep would find to do, without taking the write lock; false when there is something. */
export function nothingDue(s: Session): { nextMs: number | null } | false {
  const instants = [s.q.nextDue, s.q.nextEnd, s.q.nextDeadline].map((q) => (q.get() as { at: number | null }).at)
  if (s.slept || s.q.prunable.get(s.now, s.now, s.now)) return false
  const next = Math.min(...instants.map((at) => at ?? Number.POSITIVE_INFINITY))
  if (next <= s.now) return false
  return { nextMs: next === Number.POSITIVE_INFINITY ? null : next - s.now }
}
