// Ends leases whose time is over, matures what is due, buries what passed its deadline, folds figures, prunes.

import type { Swept } from '../../engine/contract.js'
import { soonest } from '../../ground/soonest.js'
import { redeliveredKeepMs } from '../../task/limits.js'
import { effectsAgainMs } from '../effects.js'
import { giveUp, mature, passDeadline } from '../endings.js'
import type { HeldRow } from '../ledger.js'
import { follow } from './enqueue.js'
import { moveOn } from './move.js'
import type { Session } from './session.js'

/** What a sweep has done so far; it may take several transactions. */
export type Done = Omit<Swept, 'nextMs'>
export const nothingDone: Done = { expired: 0, died: 0, matured: 0, promoted: 0, folded: 0 }

/**
 * The first half: the dead workers (ids) and what is due. `crash` says that they died together with all others, which
 * puts no suspicion on the tasks they held.
 */
export async function sweepDead(s: Session, max: number, dead: readonly number[], crash: boolean): Promise<Done> {
  let died = 0
  for (const worker of dead) died += await bury(s, worker, crash)
  return { ...nothingDone, died, ...(await sweepDue(s, max)) }
}

/** The second half: deadlines, and what has been kept long enough. */
export async function sweepLate(s: Session, max: number): Promise<void> {
  for (const row of await s.run<HeldRow>(s.q.pastDeadline, [s.now, max])) passDeadline(s, row)
  s.send(s.q.pruneDedup, s.now)
  s.send(s.q.pruneAnswers, s.now)
  s.send(s.q.pruneResults, s.now)
  s.send(s.q.pruneEffects, s.now)
  s.send(s.q.pruneRedelivered, s.now - redeliveredKeepMs)
  s.send(s.q.keepEffects, s.now, effectsAgainMs)
  await s.flush()
}

/** Matures what is due and ends leases, at most `max` of each; a claim starts with it, so none waits for a sweep. */
export async function sweepDue(s: Session, max: number): Promise<{ matured: number; expired: number }> {
  const due = await s.run<HeldRow>(s.q.dueTasks, [s.now, max])
  for (const row of due) mature(s, row)
  const over = await s.run<HeldRow>(s.q.endedLeases, [s.now, max])
  await s.know(over)
  for (const row of over) if (giveUp(s, row, 'expire') !== 'cancelled') await moveOn(s, row)
  return { matured: due.length, expired: over.length }
}

/**
 * Ends every lease of a worker that died and forgets the worker; answers how many deliveries that ended. What somebody
 * else holds just now is left to the next sweep, and the worker with it.
 */
async function bury(s: Session, worker: number, crash: boolean): Promise<number> {
  if ((await s.run(s.q.lockWorker, [worker])).length === 0) return 0
  const rows = await s.run<HeldRow>(s.q.heldBy, [worker])
  await s.know(rows)
  for (const row of rows) if (giveUp(s, row, 'die', crash) !== 'cancelled') await moveOn(s, row)
  if ((await s.run(s.q.stillHeldBy, [worker])).length === 0) s.send(s.q.bury, worker)
  return rows.length
}

/** Folds the deltas of figures into their rows; nothing when another sweep is at it. Answers how many deltas. */
export async function fold(s: Session, max: number, lockClass: number): Promise<number> {
  const [lock] = await s.run<{ ours: boolean }>(s.q.tryFold, [lockClass])
  if (!lock?.ours) return 0
  const [tally] = await s.run<{ n: number }>(s.q.foldTally, [max])
  const [progress] = await s.run<{ n: number }>(s.q.foldProgress, [max])
  return Number(tally?.n ?? 0) + Number(progress?.n ?? 0)
}

/** Marks the batches that are over as finished, each with its follow-up; answers how many. */
export async function finishBatches(s: Session): Promise<number> {
  const over = await s.run<{ id: number }>(s.q.overBatches)
  for (const { id } of over) await finishBatch(s, id)
  return over.length
}

/** Exactly once: whoever marks the batch enqueues what follows it, in the same commit. */
async function finishBatch(s: Session, id: number): Promise<void> {
  const [row] = await s.run<{ followUp: string | null }>(s.q.finishBatch, [id])
  if (row?.followUp != null) await follow(s, id, row.followUp)
}

interface Instants {
  due: number | null
  ending: number | null
  deadline: number | null
  /** Of a schedule. */
  slot: number | null
}

/** Milliseconds until the next scheduled task is due or the next lease ends; null when there is neither. */
export async function nextDueMs(s: Session): Promise<number | null> {
  const row = await instants(s)
  return until(s.now, [row.due, row.ending])
}

export const instants = async (s: Session): Promise<Instants> =>
  (await s.run<Instants>(s.q.instants, [0, 0]))[0] as Instants

/** Milliseconds until the first of these instants. */
export function until(now: number, instants: readonly (number | null)[]): number | null {
  const next = soonest(instants)
  return next === null ? null : Math.max(0, next - now)
}
