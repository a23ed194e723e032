// What an enqueue under a dedup key that is taken does to the task that stands there, the same on every SQL engine.
import type { NewTask } from '../engine/contract.js'
import { PieceworkError } from '../ground/errors.js'
import { placeOf } from '../task/place.js'
import { arrivalOf } from './arrival.js'
import type { Changes, HeldRow, Ledger } from './ledger.js'
import type { TypeRow } from './names.js'
import { code, dropsAtDeadline, flagsOf, keepsResult, stateOf } from './receipt.js'

/** True when the task that stands there may have to change. */
export const revises = ({ dedupKey, onDuplicate = 'keep' }: NewTask): boolean =>
  dedupKey !== undefined && onDuplicate !== 'keep'

/**
 * Replaces or delays the task; one that is leased stays as it is, and so does one that only stands for an identity.
 * Throws PW_DUPLICATE_DIFFERS for a replacement of another type or key. `wallShift` as in arrivalOf.
 */
export function revise(s: Ledger, row: HeldRow, task: NewTask, wallShift: number): void {
  const from = stateOf(row)
  if (row.dedupKey !== task.dedupKey || from === 'leased' || from === 'dead') return
  const replaces = task.onDuplicate === 'replace'
  if (replaces) refuseOther(s, row, task)
  const priority = replaces ? (task.priority ?? 0) : row.priority
  const { headStartMs } = s.catalog.policyOf(row.queue)
  const changes: Changes = { nonce: null, worker: null }
  let to = from
  if (task.delayMs !== undefined || task.dueAt !== undefined) {
    const { state, dueAt, wakeAt, wallAt } = arrivalOf(
      { ...task, key: row.key ?? undefined },
      s.now,
      wallShift,
      headStartMs,
    )
    to = state as typeof from
    // Its key's slot is free for those that are due before it now.
    Object.assign(changes, { state: code[to], dueAt, wakeAt, slot: 0, place: placeOf(dueAt, priority, headStartMs) })
    if (wakeAt !== null) changes.wallAt = wallAt
    s.touchLane(row.queue, row.key)
  } else changes.place = row.place + (row.priority - priority) * headStartMs
  if (replaces) {
    changes.deadlineAt = task.deadlineMs === undefined ? null : s.now + task.deadlineMs
    changes.flags = (row.flags & ~dropsAtDeadline) | flagsOf(task)
    s.replace(row, { payload: task.payload, headers: task.headers ?? null, priority, weight: task.weight ?? 1 })
  } else if (task.keepsResult) changes.flags = row.flags | keepsResult
  if (priority !== 0) s.mix(row.type)
  s.change(row, changes)
  s.count(replaces ? 'replace' : 'delay', row.type, from, to)
}

/** Another key's order, or another type's handler, is nothing that a payload can be put into. */
function refuseOther(s: Ledger, row: HeldRow, task: NewTask): void {
  const type = s.catalog.typeById(row.type) as TypeRow
  const wanted = task.type ?? task.queue
  // Tasks of no type of their own have none in another queue either, where a route or a move may have led them.
  const same = type.name === wanted || (wanted === task.queue && type.name === s.catalog.queueById(type.queue).name)
  const differs = !same ? `type "${wanted}"` : (task.key ?? null) !== row.key ? `key "${task.key}"` : null
  if (differs === null) return
  const there = !same ? `type "${type.name}"` : row.key === null ? 'no key' : `key "${row.key}"`
  const text = `A task of ${differs} cannot replace task ${row.id} of dedup key "${task.dedupKey}", which has ${there}.`
  throw new PieceworkError('PW_DUPLICATE_DIFFERS', text, { id: String(row.id), dedupKey: task.dedupKey })
}
