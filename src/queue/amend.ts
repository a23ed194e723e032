// Applies a change to all tasks that a filter matches, a page of ids and a commit at a time.
import type { Change, Filter } from '../engine/contract.js'
import { PieceworkError } from '../ground/errors.js'
import { bulkTasksMax, checkName, shown } from '../task/limits.js'
import type { Connection } from './connection.js'

/** How many tasks changed, and how many were only asked to end. */
export interface Changed {
  changed: number
  asked: number
}

/** Takes what the filter picks, but the dead, to another queue. PW_OPTION_INVALID, PW_NAME_INVALID. */
export async function moveTasks(
  connection: Connection,
  queue: string,
  filter: Filter,
  to: unknown,
  dryRun: boolean,
): Promise<{ moved: number; asked: number }> {
  const other = checkName('to', to)
  if (other === queue) {
    throw new PieceworkError('PW_OPTION_INVALID', `to is ${shown(to)}, the queue that the tasks are in.`, { to })
  }
  const states = filter.states ?? ['scheduled', 'waiting', 'ready', 'leased']
  const { changed, asked } = await amendAll(connection, { ...filter, states }, { do: 'move', to: other }, dryRun)
  return { moved: changed, asked }
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
