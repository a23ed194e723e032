// Prints the tasks that a filter picks: rows for people, a line of JSON each for programs, all of them unless told.
import type { Command } from 'commander'
import type { Filter } from '../engine/contract.js'
import type { TaskRecord } from '../task/records.js'
import { limitOf } from './filters.js'
import { tasksOf } from './names.js'
import { counted, type Output, table } from './print.js'
import type { Store } from './store.js'

/** How one kind of list looks. */
export interface Looks {
  head: readonly string[]
  cells(row: TaskRecord): unknown[]
  /** A line of --json. */
  line(row: TaskRecord): string
}

export const limited = (command: Command): Command => command.option('--limit <n>', 'so many at most (default: all)')

/** Rows that are set into columns together: the whole of a long list would have to be held to be measured. */
const rowsMax = 1000

/** Prints the tasks, the oldest first; people hear of it when --limit left some out. */
export async function listTasks(
  store: Store,
  filter: Filter,
  options: Record<string, unknown>,
  output: Output,
  { head, cells, line }: Looks,
): Promise<void> {
  const limit = limitOf(options)
  const rows: unknown[][] = []
  let listed = 0
  // One more than wanted tells whether it was all.
  for await (const row of tasksOf(store, filter, limit + 1)) {
    if (listed === limit) {
      if (!output.json) output.say(`There are more than ${counted(limit, 'task')}; without --limit all are listed.`)
      break
    }
    listed++
    if (output.json) await output.result(line(row))
    else rows.push(cells(row))
    if (rows.length >= rowsMax) await output.result(table(head, rows.splice(0)))
  }
  if (!output.json && (rows.length > 0 || listed === 0)) await output.result(table(head, rows))
}
