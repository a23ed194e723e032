// What operators do to tasks by filter: cancel, purge, move, discard, redrive, edit; with an audit row for each change.
import type { Amended, Change, Filter } from '../../engine/contract.js'
import { act, amendedOf, auditOf, narrowed, redrive } from '../acts.js'
import type { HeldRow } from '../ledger.js'
import { cancelAsked } from '../receipt.js'
import { audit } from './audit.js'
import { dedupFor } from './dedup.js'
import { moveOrAsk } from './move.js'
import { fromTasks, whereOf } from './select.js'
import type { Session } from './session.js'

export function amend(
  s: Session,
  filter: Filter,
  change: Change,
  actor: string,
  bounds: { max: number; dryRun: boolean },
): Amended {
  const to = change.do === 'move' ? targetOf(s, change.to, bounds.dryRun) : null
  const rows = find(s, narrowed(filter, change), to, bounds.max)
  const answer = amendedOf(rows)
  if (bounds.dryRun || rows.length === 0) return answer
  // Each redriven task goes before the others of its key: the last one first, so that they keep their order.
  if (change.do === 'redrive') rows.reverse()
  for (const row of rows) {
    if (change.do === 'move') moveOrAsk(s, row, to as number)
    else if (change.do === 'redrive') redriveOne(s, row)
    else act(s, row, change)
  }
  s.promoteLanes()
  const { subject, details } = auditOf(filter, change, answer)
  audit(s, actor, change.do, subject, details)
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

function redriveOne(s: Session, row: HeldRow): void {
  const first = row.key === null ? null : (s.q.firstWaiting.get(row.queue, row.key) as { at: number | null }).at
  redrive(s, row, first, row.dedupKey === null ? null : dedupFor(s, row.queue, row.dedupKey, row.id))
}
