// Applies an operator's change to all tasks that a filter matches, a chunk a commit, never to more than were there.
import type { Change, Filter } from '../engine/contract.js'
import { bulkTasksMax } from '../task/limits.js'
import type { TaskRecord } from '../task/records.js'
import type { Connection } from './connection.js'

/** How many tasks changed, and how many were only asked to end. */
export interface Changed {
  changed: number
  asked: number
}

/** Everything at once: for what is bounded anyway, or only counted. */
const unbounded = Number.MAX_SAFE_INTEGER

export async function amendAll(
  connection: Connection,
  filter: Filter,
  change: Change,
  dryRun: boolean,
): Promise<Changed> {
  const engine = connection.working()
  const amend = (max: number, dry: boolean) => engine.amend(filter, change, connection.actor, { max, dryRun: dry })
  const there = await amend(unbounded, true)
  if (dryRun) return { changed: there.changed, asked: there.asked }
  // Paced work is one plan: in chunks each would start anew.
  const max = change.do === 'redrive' && change.perSecond !== undefined ? unbounded : bulkTasksMax
  const sum: Changed = { changed: 0, asked: 0 }
  // Counted first, because what is redriven can die again while this runs.
  while (sum.changed < there.changed) {
    const done = await amend(Math.min(max, there.changed - sum.changed), false)
    sum.changed += done.changed
    sum.asked += done.asked
    if (done.changed === 0) break
  }
  return sum
}

/** The ids that are tasks of this queue: an id is looked up in the whole store, but a queue answers for its own. */
export async function ownIds(connection: Connection, queue: string, ids: readonly string[]): Promise<string[]> {
  const own: string[] = []
  for (let from = 0; from < ids.length; from += bulkTasksMax) {
    const some = ids.slice(from, from + bulkTasksMax)
    const page = await connection.reading().select('task', { ids: some, limit: bulkTasksMax }, null)
    for (const row of page.items as unknown as TaskRecord[]) if (row.queue === queue) own.push(row.id)
  }
  return own
}
