// The last words of a run: what became of the items, which errors were behind it, and what to type next.
import { openIn } from '../queue/batch.js'
import type { BatchRecord, TaskRecord } from '../task/records.js'
import { quoted } from './placeholders.js'
import { counted, grouped, humanMs, oneLine } from './print.js'
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

/** This command as it was typed, for pasteable commands, and the words that name the store for others. */
export interface Again {
  /** `run` and its options. */
  options: readonly string[]
  /** COMMAND, after `--` where that was said. */
  command: readonly string[]
  url: readonly string[]
}

/** What people read at the end. */
export async function reportOf(store: Store, batch: BatchRecord, ms: number, again: Again): Promise<string> {
  const { total, done, dead, cancelled, retries, returned } = batch
  const open = openIn(batch)
  const parts = [`${grouped(done)} of ${grouped(total)} done`]
  if (dead > 0) parts.push(`${grouped(dead)} dead`)
  if (cancelled > 0) parts.push(`${grouped(cancelled)} cancelled`)
  if (open > 0) parts.push(`${grouped(open)} open`)
  if (retries > 0) parts.push(counted(retries, 'retry', 'retries'))
  if (returned > 0) parts.push(`${grouped(returned)} given back by workers that died`)
  const lines = [`piecework: ${parts.join(', ')}; ${humanMs(ms)}`]
  const next: string[][] = []
  if (dead > 0) {
    const groups = await errorGroups(store, { batch: batch.name })
    for (const group of groups.slice(0, 3)) lines.push(`  ${grouped(group.count)} x ${group.error.slice(0, 200)}`)
    next.push(['dead', 'list', batch.name, ...again.url])
  }
  if (open > 0 || dead > 0) next.push(againWith(again, open === 0))
  if (next.length > 0) lines.push('next:', ...next.map((command) => `  ${quoted(['piecework', ...command])}`))
  return lines.join('\n')
}

/** The same command once more, to go on; with what is dead, where nothing else is left to do. */
function againWith({ options, command }: Again, retryDead: boolean): string[] {
  const kept = options.filter((word) => word !== '--new' && word !== '--retry-dead')
  const at = kept.indexOf('run') + 1
  return [...kept.slice(0, at), ...(retryDead ? ['--retry-dead'] : []), ...kept.slice(at), ...command]
}
