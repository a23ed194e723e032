// Applies a change to all tasks that a filter matches, a page of ids and a commit at a time.
import type { Change, Filter } from '../engine/contract.js'
import { bulkTasksMax } from '../task/limits.js'
import type { Connection } from './connection.js'

/** How many tasks changed, and how many were only asked to end. */
export interface Changed {
  changed: number
  asked: number
}

/**
 * Pages rise by id, so that this ends: what is redriven and dies again meanwhile is not met twice, and neither is a
 * task that was asked to end and is still held. `dryRun` only counts.
 */
export async function amendAll(
  connection: Connection,
  filter: Filter,
  change: Change,
  dryRun: boolean,
): Promise<Changed> {
  const engine = connection.engine()
  const sum: Changed = { changed: 0, asked: 0 }
  for (let cursor: string | null = null; ; ) {
    const page = await engine.select('task', { ...filter, limit: bulkTasksMax }, cursor)
    const ids = page.items.map((row) => row.id as string)
    if (ids.length > 0) {
      const bounds = { max: ids.length, dryRun }
      const done = await engine.amend({ ...filter, ids }, change, connection.actor, bounds)
      sum.changed += done.changed
      sum.asked += done.asked
    }
    if (page.next === null) return sum
    cursor = page.next
  }
}
