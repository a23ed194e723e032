// The last words of a run: what became of the items, which errors were behind it, and what to type next.
import type { BatchRecord, TaskRecord } from '../task/records.js'
import { openIn } from './batch.js'
import { quoted } from './placeholders.js'
import { grouped, humanMs, oneLine } from './print.js'
import type { Store } from './store.js'

/** One kind of error among dead letters. */
export interface ErrorGroup {
  fingerprint: string
  count: number
  /** The first line of one of them. */
  error: string
  /** A task that has it. */
  example: string
}

/** Kinds kept at once; a store with more has errors that differ in everything. */
const groupsMax = 10_000

/** The kinds of errors among the dead letters of a queue or batch, the most frequent first. */
export async function errorGroups(store: Store, filter: { queue?: string; batch?: string }): Promise<ErrorGroup[]> {
  const groups = new Map<string, ErrorGroup>()
  for (let cursor: string | null = null; ; ) {
    const page = await store.engine.select('task', { ...filter, states: ['dead'], limit: 1000 }, cursor)
    for (const row of page.items as unknown as TaskRecord[]) {
      const fingerprint = row.fingerprint ?? ''
      const group = groups.get(fingerprint)
      if (group) group.count++
      else if (groups.size < groupsMax) {
        const error = oneLine((row.error ?? row.reason ?? '').split('\n', 1)[0] ?? '')
        groups.set(fingerprint, { fingerprint, count: 1, error, example: row.id })
      }
    }
    if (page.next === null) break
    cursor = page.next
  }
  return [...groups.values()].sort((a, b) => b.count - a.count)
}

/** The summary of --json. */
export function summaryOf(batch: BatchRecord, ms: number): Record<string, unknown> {
  const { name, total, done, dead, cancelled, retries } = batch
  return { batch: name, total, done, dead, cancelled, retries, ms: Math.round(ms) }
}

/** What people read at the end; `endedHere` tasks ended while this process ran. */
export async function reportOf(
  store: Store,
  batch: BatchRecord,
  ms: number,
  again: readonly string[],
): Promise<string> {
  const { total, done, dead, cancelled, retries, returned } = batch
  const open = openIn(batch)
  const counts = [`${grouped(done)} of ${grouped(total)} done`]
  if (dead > 0) counts.push(`${grouped(dead)} dead`)
  if (cancelled > 0) counts.push(`${grouped(cancelled)} cancelled`)
  if (open > 0) counts.push(`${grouped(open)} open`)
  if (retries > 0) counts.push(`${grouped(retries)} retries`)
  if (returned > 0) counts.push(`${grouped(returned)} given back by workers that died`)
  const lines = [`piecework: ${counts.join(', ')}; ${humanMs(ms)}`]
  if (dead > 0) {
    const groups = await errorGroups(store, { batch: batch.name })
    for (const group of groups.slice(0, 3)) lines.push(`  ${grouped(group.count)} x ${group.error.slice(0, 200)}`)
  }
  const url = again[0] === undefined ? [] : again
  if (dead > 0) {
    lines.push('next:')
    lines.push(`  ${quoted(['piecework', 'dead', 'list', batch.name, ...url])}`)
    lines.push(`  ${quoted(['piecework', 'dead', 'redrive', batch.name, '--all', ...url])}`)
  }
  if (open > 0) lines.push('The same command goes on where this one stopped.')
  return lines.join('\n')
}
