// What operators do to tasks by filter: cancel, purge, move, discard, redrive, edit; with an audit row for each change.
import type { Amended, Change, Filter } from '../../engine/contract.js'
import { type State, states } from '../../task/lifecycle.js'
import { cancelAsked } from '../receipt.js'
import { audit } from './configure.js'
import { dedupFor } from './dedup.js'
import { move } from './move.js'
import type { HeldRow } from './rows.js'
import { fromTasks, whereOf } from './select.js'
import type { Session } from './session.js'
import { ended } from './settle.js'
import { code } from './statements.js'

const open: readonly State[] = ['scheduled', 'waiting', 'ready']
const touches: Record<Change['do'], readonly State[]> = {
  cancel: [...open, 'leased'],
  purge: open,
  move: [...open, 'leased'],
  discard: ['dead'],
  redrive: ['dead'],
  edit: ['dead'],
}

export function amend(
  s: Session,
  filter: Filter,
  change: Change,
  actor: string,
  bounds: { max: number; dryRun: boolean },
): Amended {
  const allowed = touches[change.do].filter((state) => filter.states?.includes(state) ?? true)
  const to = change.do === 'move' ? targetOf(s, change.to, bounds.dryRun) : null
  const rows = find(s, { ...filter, states: allowed }, to, bounds.max)
  const answer: Amended = { changed: 0, asked: 0, ids: rows.map((row) => String(row.id)) }
  // Each redriven task goes before the others of its key: the last one first, so that they keep their order.
  if (change.do === 'redrive') rows.reverse()
  for (const row of rows) {
    const asked = row.state === code.leased
    if (asked) answer.asked++
    else answer.changed++
    if (!bounds.dryRun) apply(s, row, change, to)
  }
  if (bounds.dryRun || rows.length === 0) return answer
  s.promoteLanes()
  const ids = answer.ids.slice(0, 100)
  const where = change.do === 'move' ? { to: change.to } : {}
  audit(s, actor, change.do, filter.queue ?? ids[0] ?? '', { filter, ...where, ...answer, ids })
  return answer
}

/** The queue (id) to move to, made when it is new; 0, which no queue has, when a dry run may not make it. */
function targetOf(s: Session, name: string, dryRun: boolean): number {
  return (dryRun ? s.catalog.queue(name) : s.catalog.ensureQueue(name, s.now))?.id ?? 0
}

/** What was done already, or asked of a leased task already, is left out, so that repeated calls come to an end. */
function find(s: Session, filter: Filter, to: number | null, max: number): HeldRow[] {
  const found = whereOf(s, filter)
  if (!found) return []
  const cancels = `task.state = 4 and task.flags & ${cancelAsked}`
  const moves = `${cancels} or task.queue = ?
    or task.state = 4 and task.moveTo in (select id from piecework_type where queue = ?)`
  const statement = s.db.prepare(
    `select task.* from ${fromTasks(filter)}
     where ${found.where} and (${to === null ? cancels : moves}) is not true order by task.id limit ?`,
  )
  return statement.all(...found.params, ...(to === null ? [] : [to, to]), max) as HeldRow[]
}

function apply(s: Session, row: HeldRow, change: Change, to: number | null): void {
  const from = states[row.state - 1] as State
  switch (change.do) {
    case 'cancel':
    case 'purge':
      if (from === 'leased') return void s.q.askCancel.run(row.id)
      s.q.remove.run(row.id)
      s.count(change.do, row.type, from, null)
      s.countBatch(row.batch, 'cancelled')
      return ended(s, row, true)
    case 'discard':
      s.q.remove.run(row.id)
      s.q.dropDead.run(row.id)
      s.count('discard', row.type, 'dead', null)
      s.countBatch(row.batch, 'dead', -1)
      s.countBatch(row.batch, 'cancelled')
      return ended(s, row, true)
    case 'edit':
      s.q.edit.run(change.payload, row.id)
      return s.count('edit', row.type, 'dead', 'dead')
    case 'redrive':
      return redrive(s, row)
    case 'move':
      move(s, row, to as number)
  }
}

/** Back among the claimable with a fresh budget and a new place; before the other tasks of its key. */
function redrive(s: Session, row: HeldRow): void {
  const { headStartMs } = s.catalog.policyOf(row.queue)
  const to = row.key === null ? 'ready' : 'waiting'
  const first = row.key === null ? null : (s.q.firstWaiting.get(row.queue, row.key) as { at: number | null }).at
  const dueAt = first === null ? s.now : Math.min(s.now, first - 1)
  const dedupKey = row.dedupKey === null ? null : dedupFor(s, row.queue, row.dedupKey, row.id)
  s.q.dropDead.run(row.id)
  s.q.redrive.run(code[to], s.now - row.priority * headStartMs, dueAt, dedupKey, row.id)
  if (dueAt !== s.now) s.catalog.mix(row.type)
  s.count('redrive', row.type, 'dead', to)
  s.countBatch(row.batch, 'dead', -1)
  if (row.key !== null) s.touchLane(row.queue, row.key)
}
