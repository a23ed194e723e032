// Takes tasks to another queue with all they have been through; a leased one goes when its delivery has ended.
import { type State, states } from '../../task/lifecycle.js'
import { moveAsked } from '../receipt.js'
import { dedupFor } from './dedup.js'
import type { HeldRow } from './rows.js'
import type { Session } from './session.js'
import { code } from './statements.js'

/** Moves it to the queue (id) now, or asks its delivery to when it ends; true when that delivery has to end first. */
export function move(s: Session, row: HeldRow, queue: number): boolean {
  const type = typeThere(s, row, queue)
  const leased = row.state === code.leased
  if (leased) s.q.askMove.run(type, row.id)
  else go(s, row, states[row.state - 1] as State, type)
  return leased
}

/** After the end of a delivery that left the task in `state`: where it was asked to go meanwhile, it goes now. */
export function moveOn(s: Session, row: HeldRow, state: State): void {
  if (!(row.flags & moveAsked)) return
  const { moveTo } = s.q.moveTo.get(row.id) as { moveTo: number }
  go(s, row, state, moveTo)
}

function go(s: Session, row: HeldRow, from: State, type: number): void {
  const queue = s.catalog.typeById(type)?.queue as number
  // Slots are of the queue it leaves: in the other one it has to get one like every task of its key.
  const to = from === 'ready' && row.key !== null ? 'waiting' : from
  let { dedupKey } = row
  if (dedupKey !== null && from !== 'dead') {
    s.q.dropDedup.run(row.queue, dedupKey, row.id)
    dedupKey = dedupFor(s, queue, dedupKey, row.id)
  }
  s.q.move.run(queue, type, code[to], dedupKey, row.id)
  if (from === 'dead') s.q.moveDead.run(type, row.id)
  if (s.catalog.typeById(row.type)?.mixed) s.catalog.mix(type)
  s.count('move', row.type, from, to, type)
  if (row.key === null) return
  s.touchLane(row.queue, row.key)
  s.touchLane(queue, row.key)
}

/** The same type in the other queue; tasks of no type of their own have none there either. */
function typeThere(s: Session, row: HeldRow, queue: number): number {
  const name = s.catalog.typeById(row.type)?.name as string
  const own = name === s.catalog.queueById(row.queue).name
  return s.catalog.ensureType(queue, own ? s.catalog.queueById(queue).name : name).id
}
