// The few kinds of errors behind many dead letters.
import type { Filter } from '../engine/contract.js'
import { bulkTasksMax } from '../task/limits.js'
import type { TaskRecord } from '../task/records.js'
import type { Acting } from './connection.js'

/** One kind of error among dead letters. */
export interface ErrorGroup {
  /** Picks them again: dead.list({ fingerprint }), dead.redrive({ fingerprint }). */
  fingerprint: string
  count: number
  /** The first line of one of them. */
  error: string
  /** A task that has it. */
  example: string
}

/** Kinds kept at once; a store with more has errors that differ in everything. */
export const groupsMax = 10_000

/** The kinds of errors among the dead letters that the filter picks, the most frequent first; groupsMax at most. */
export async function errorGroups(connection: Pick<Acting, 'engine'>, filter: Filter): Promise<ErrorGroup[]> {
  const groups = new Map<string, ErrorGroup>()
  for (let cursor: string | null = null; ; ) {
    const wanted: Filter = { ...filter, states: ['dead'], limit: bulkTasksMax }
    const page = await connection.engine().select('task', wanted, cursor)
    for (const row of page.items as unknown as TaskRecord[]) {
      const fingerprint = row.fingerprint ?? ''
      const group = groups.get(fingerprint)
      if (group) group.count++
      else if (groups.size < groupsMax) {
        const error = (row.error ?? row.reason ?? '').split('\n', 1)[0] ?? ''
        groups.set(fingerprint, { fingerprint, count: 1, error, example: row.id })
      }
    }
    if (page.next === null) break
    cursor = page.next
  }
  return [...groups.values()].sort((a, b) => b.count - a.count)
}
