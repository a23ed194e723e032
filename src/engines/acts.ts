// What operators' acts do to a task, the same on every SQL engine: cancel, purge, move, discard, redrive, edit.
import type { Amended, Change, Filter, Patch } from '../engine/contract.js'
import type { State } from '../task/lifecycle.js'
import { placeOf } from '../task/place.js'
import { gone } from './endings.js'
import type { HeldRow, Ledger } from './ledger.js'
import { cancelAsked, code, moveAsked, stateOf } from './receipt.js'

const open: readonly State[] = ['scheduled', 'waiting', 'ready']
const touches: Record<Change['do'], readonly State[]> = {
  cancel: [...open, 'leased'],
  purge: open,
  move: [...open, 'leased'],
  discard: ['dead'],
  redrive: ['dead'],
  edit: ['dead'],
}

/** The filter, narrowed to the states in which the act may find a task. */
export function narrowed(filter: Filter, change: Change): Filter {
  return { ...filter, states: touches[change.do].filter((state) => filter.states?.includes(state) ?? true) }
}

/** The answer for these rows, before any of them is changed. */
export function amendedOf(rows: readonly HeldRow[]): Amended {
  const asked = rows.filter((row) => row.state === code.leased).length
  return { changed: rows.length - asked, asked, ids: rows.map((row) => String(row.id)) }
}

/** Whom and what the audit row of an act is about. */
export function auditOf(filter: Filter, change: Change, answer: Amended): { subject: string; details: Patch } {
  const ids = answer.ids.slice(0, 100)
  const where = change.do === 'move' ? { to: change.to } : {}
  return { subject: filter.queue ?? ids[0] ?? '', details: { filter, ...where, ...answer, ids } }
}

/** Does it to one task; a leased one is asked. */
export function act(s: Ledger, row: HeldRow, change: Exclude<Change, { do: 'redrive' | 'move' }>): void {
  const from = stateOf(row)
  switch (change.do) {
    case 'cancel':
    case 'purge':
      if (from === 'leased') return s.change(row, { flags: row.flags | cancelAsked })
      s.count(change.do, row.type, from, null)
      s.countBatch(row.batch, 'cancelled')
      return gone(s, row)
    case 'discard':
      s.count('discard', row.type, 'dead', null)
      s.countBatch(row.batch, 'dead', -1)
      s.countBatch(row.batch, 'cancelled')
      return gone(s, row)
    case 'edit':
      s.setPayload(row, change.payload)
      return s.count('edit', row.type, 'dead', 'dead')
  }
}

/**
 * Back among the claimable with a fresh budget and a new place; before the other tasks of its key, the first of which
 * is due at `firstAt`. `dedupKey` is its own if it could take it back.
 */
export function redrive(s: Ledger, row: HeldRow, firstAt: number | null, dedupKey: string | null): void {
  const to = row.key === null ? 'ready' : 'waiting'
  const dueAt = firstAt === null ? s.now : Math.min(s.now, firstAt - 1)
  const place = placeOf(s.now, row.priority, s.catalog.policyOf(row.queue).headStartMs)
  s.dropDead(row)
  s.change(row, { state: code[to], place, dueAt, spent: 0, releases: 0, deaths: 0, slot: 0, dedupKey })
  if (dueAt !== s.now) s.mix(row.type)
  s.count('redrive', row.type, 'dead', to)
  s.countBatch(row.batch, 'dead', -1)
  s.touchLane(row.queue, row.key)
}

/** Asks a delivery that its task goes to this type when it ends. */
export function askMove(s: Ledger, row: HeldRow, type: number): void {
  s.change(row, { flags: row.flags | moveAsked, moveTo: type })
}

/** Takes a task to this type, of another queue; `dedupKey` is its own if nobody holds it there. */
export function move(s: Ledger, row: HeldRow, type: number, dedupKey: string | null): void {
  const from = stateOf(row)
  const queue = s.catalog.typeById(type)?.queue as number
  // Slots are of the queue it leaves: in the other one it has to get one like every task of its key.
  const to = from === 'ready' && row.key !== null ? 'waiting' : from
  if (from === 'dead') s.moveDead(row, type)
  if (s.catalog.typeById(row.type)?.mixed) s.mix(type)
  s.count('move', row.type, from, to, type)
  s.touchLane(row.queue, row.key)
  s.touchLane(queue, row.key)
  const flags = row.flags & ~moveAsked
  s.change(row, { queue, type, state: code[to], dedupKey, slot: 0, nonce: null, worker: null, flags, moveTo: null })
}
