// Applies a change to all tasks that a filter matches, a page of ids and a commit at a time.
import type { Amended, Change, Filter } from '../engine/contract.js'
import { bulkTasksMax } from '../task/limits.js'
import type { Acting } from './connection.js'

/** How many tasks changed, and how many were only asked to end. */
export interface Changed {
  changed: number
  asked: number
}

/**
 * Pages rise by id, so that this ends: what is redriven and dies again meanwhile is not met twice, and neither is a
 * task that was asked to end and is still held. `dryRun` only counts.
 */
export async function amendAll(connection: Acting, filter: Filter, change: Change, dryRun: boolean): Promise<Changed> {
  const sum: Changed = { changed: 0, asked: 0 }
  for (let cursor: string | null = null; ; ) {
    const page = await amendPage(connection, filter, change, cursor, dryRun)
    sum.changed += page.changed
    sum.asked += page.asked
    if (page.next === null) return sum
    cursor = page.next
  }
}

/** One page of it, `filter.limit` tasks at most, in one commit; `next` is where the following one begins. */
export async function amendPage(
  connection: Acting,
  { limit = bulkTasksMax, ...filter }: Filter,
  change: Change,
  cursor: string | null,
  dryRun = false,
): Promise<Amended & { next: string | null }> {
  const engine = connection.engine()
  const { items, next } = await engine.select('task', { ...filter, limit }, cursor)
  const ids = items.map((row) => row.id as string)
  if (ids.length === 0) return { changed: 0, asked: 0, ids, next }
  const bounds = { max: ids.length, dryRun }
  return { ...(await engine.amend({ ...filter, ids }, change, connection.actor, bounds)), next }
}
