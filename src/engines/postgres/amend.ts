// Operators' acts by filter on PostgreSQL: rows are locked without a wait, changed, and written back with an audit row.
import type { Amended, Change, Filter } from '../../engine/contract.js'
import { act, amendedOf, auditOf, narrowed, redrive } from '../acts.js'
import type { HeldRow } from '../ledger.js'
import { cancelAsked } from '../receipt.js'
import { audit } from './audit.js'
import { dedupFor, moveOrAsk } from './move.js'
import { fromTasks, whereOf } from './select.js'
import type { Session } from './session.js'
import { again } from './turn.js'

/** A queue and a type that a move needs; made before the transaction runs again. */
export interface Wanted {
  queue: string
  type: string
}

export async function amend(
  s: Session,
  filter: Filter,
  change: Change,
  actor: string,
  bounds: { max: number; dryRun: boolean; wanted: Wanted[] },
): Promise<Amended | typeof again> {
  const to = change.do === 'move' ? change.to : null
  const rows = await find(s, narrowed(filter, change), to, bounds)
  const answer = amendedOf(rows)
  if (bounds.dryRun || rows.length === 0) return answer
  const types = to === null ? [] : rows.map((row) => typeThere(s, row, to, bounds.wanted))
  if (bounds.wanted.length > 0) return again
  // Each redriven task goes before the others of its key: the last one first, so that they keep their order.
  if (change.do === 'redrive') rows.reverse()
  for (const [i, row] of rows.entries()) {
    if (change.do === 'move') await moveOrAsk(s, row, types[i] as number)
    else if (change.do === 'redrive') await redriveOne(s, row)
    else act(s, row, change)
  }
  const { subject, details } = auditOf(filter, change, answer)
  audit(s, actor, change.do, subject, details)
  return answer
}

/**
 * What was done already, or asked of a leased task already, is left out, so that repeated calls come to an end. Locked,
 * unless it is only to be seen; a row that somebody else holds lets the transaction run again.
 */
async function find(
  s: Session,
  filter: Filter,
  to: string | null,
  bounds: { max: number; dryRun: boolean },
): Promise<HeldRow[]> {
  const found = await whereOf(s, filter)
  if (!found) return []
  const { schema, columns, where, params } = found
  const queue = s.catalog.queue(to ?? '')?.id ?? 0
  const cancels = `task.state = 4 and task.flags & ${cancelAsked} > 0`
  const moves = `${cancels} or task.queue = ${queue}
    or task.state = 4 and task.moveTo in (select id from ${schema}.type where queue = ${queue})`
  const text = `select ${columns} from ${fromTasks(filter, schema)}
     where ${where} and (${to === null ? cancels : moves}) is not true
     order by task.id limit $${params.length + 1} ${bounds.dryRun ? '' : 'for update of task nowait'}`
  return s.run<HeldRow>({ name: '', text }, [...params, bounds.max])
}

/** The type (id) that a task has in the other queue; one that has to be made first is noted in `wanted`. */
function typeThere(s: Session, row: HeldRow, to: string, wanted: Wanted[]): number {
  const name = s.catalog.nameThere(row.type, to)
  const type = s.catalog.type(s.catalog.queue(to)?.id ?? 0, name)
  if (!type && !wanted.some((one) => one.type === name)) wanted.push({ queue: to, type: name })
  return type?.id ?? 0
}

async function redriveOne(s: Session, row: HeldRow): Promise<void> {
  const [first] = row.key === null ? [] : await s.run<{ at: number | null }>(s.q.firstWaiting, [row.queue, row.key])
  const dedupKey = row.dedupKey === null ? null : await dedupFor(s, row.queue, row.dedupKey, row.id)
  redrive(s, row, first?.at ?? null, dedupKey)
}
