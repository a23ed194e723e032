// Ends leases whose time is over, matures what is due, buries what passed its deadline, prunes what is old.

import type { Swept } from '../../engine/contract.js'
import { soonest } from '../../ground/soonest.js'
import { redeliveredKeepMs } from '../../task/limits.js'
import { effectsAgainMs } from '../effects.js'
import { giveUp, mature, passDeadline } from '../endings.js'
import type { HeldRow } from '../ledger.js'
import { moveOn } from './move.js'
import { fireDue, wallNow } from './schedules.js'
import type { Session } from './session.js'
import { wallShiftNow } from './wall.js'

/** Whoever was not heard of for so long, holds nothing and has no lock to show its death is gone: a worker that never
 *  joined, or whose lock file somebody removed. Should it live, its next beat tells it to join again. */
const silentMs = 86_400_000

/** What a sweep is told; `full` says that there is no room for the tasks of schedules. */
interface Circumstances {
  dead: readonly number[]
  crash: boolean
  /** The look before it saw that a slot of a schedule is due. */
  slots: boolean
  full: boolean
}

/**
 * The whole sweep. `dead` are the workers (ids) found dead before this transaction; `crash` says that they died
 * together with all others, which puts no suspicion on the tasks they held.
 */
export function sweep(s: Session, max: number, { dead, crash, slots, full }: Circumstances): Swept {
  if (slots && !full) fireDue(s, max)
  let died = 0
  for (const worker of dead) died += bury(s, worker, crash)
  const { matured, expired, promoted } = sweepDue(s, max)
  const late = s.q.pastDeadline.all(s.now, max) as HeldRow[]
  for (const row of late) passDeadline(s, row)
  const promotedLate = s.promoteLanes().size
  s.q.pruneDedup.run(s.now)
  s.q.pruneAnswers.run(s.now)
  s.q.pruneResults.run(s.now)
  s.q.pruneEffects.run(s.now)
  s.q.keepEffects.run(s.now + effectsAgainMs, s.now)
  s.q.pruneRedelivered.run(s.now - redeliveredKeepMs)
  s.q.pruneWorkers.run(s.now - silentMs)
  const end = nextLate(s)
  const deadlineMs = end.at === null ? null : Math.max(0, end.at - s.now)
  const nextMs = soonest([nextDueMs(s), deadlineMs, full ? null : slotInMs(s, end)])
  return { expired, died, matured, promoted: promoted + promotedLate, folded: 0, nextMs }
}

interface Late {
  /** The next deadline, by the engine's clock. */
  at: number | null
  /** The next slot of a schedule, by the wall clock. */
  slotAt: number | null
}

const nextLate = (s: Session) => s.q.nextDeadline.get() as Late

const slotInMs = (s: Session, { slotAt }: Late) => (slotAt === null ? null : Math.max(0, slotAt - wallNow(s)))

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
  const next = soonest([due, end])
  return next === null ? null : Math.max(0, next - s.now)
}

export interface Outlook {
  /** A sweep would find nothing to do. */
  quiet: boolean
  nextMs: number | null
  /** A slot of a schedule is due. */
  slots: boolean
}

/** What a sweep would find, without taking the write lock. `full`: schedules have to wait. */
export function outlook(s: Session, full: boolean): Outlook {
  const late = nextLate(s)
  const slotMs = full ? null : slotInMs(s, late)
  const [due, end] = [s.q.nextDue, s.q.nextEnd].map((q) => (q.get() as { at: number | null }).at)
  const instants = [due, end, late.at].map((at) => (at == null ? null : at - s.now))
  const nextMs = soonest([...instants, slotMs])
  const quiet =
    (nextMs === null || nextMs > 0) &&
    !s.slept &&
    s.q.prunable.get(s.now, s.now, s.now, s.now, s.now - redeliveredKeepMs) === undefined
  return { quiet, nextMs, slots: slotMs === 0 }
}
