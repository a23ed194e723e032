// The last words of a run: what became of the items, which errors were behind it, and what to type next.
import { openIn } from '../queue/batch.js'
import { errorGroups } from '../queue/groups.js'
import type { BatchRecord } from '../task/records.js'
import { quoted } from './placeholders.js'
import { counted, grouped, humanMs, oneLine } from './print.js'
import type { Store } from './store.js'

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

/** What a run knows of its input when it ends: `left` behind in a pipe, or all read; null when it is a file. */
export type StdinState = 'left' | 'read' | null

/** What people read at the end. */
export async function reportOf(
  store: Store,
  batch: BatchRecord,
  ms: number,
  again: Again,
  stdin: StdinState,
): Promise<string> {
  const { total, done, dead, cancelled, retries, returned } = batch
  const open = openIn(batch)
  const parts = [`${grouped(done)} of ${grouped(total)} done`]
  if (dead > 0) parts.push(`${grouped(dead)} dead`)
  if (cancelled > 0) parts.push(`${grouped(cancelled)} cancelled`)
  if (open > 0) parts.push(`${grouped(open)} open`)
  if (retries > 0) parts.push(counted(retries, 'retry', 'retries'))
  if (returned > 0) parts.push(`${grouped(returned)} given back by workers that died`)
  const lines = [`piecework: ${parts.join(', ')}; ${humanMs(ms)}`]
  const next: string[] = []
  if (dead > 0) {
    const groups = await errorGroups(store.connection, { batch: batch.name })
    for (const group of groups.slice(0, 3))
      lines.push(`  ${grouped(group.count)} x ${oneLine(group.error).slice(0, 200)}`)
    next.push(quoted(['piecework', 'dead', 'list', batch.name, ...again.url]))
  }
  if (open > 0 || dead > 0) {
    // What was read of a pipe is in the store; to wait for more of it would be in vain.
    const input = stdin === 'read' ? ' < /dev/null' : stdin === 'left' ? '  # with the same input again' : ''
    next.push(quoted(['piecework', ...againWith(again, open === 0)]) + input)
  }
  if (next.length > 0) lines.push('next:', ...next.map((command) => `  ${command}`))
  return lines.join('\n')
}

/** The same command once more, to go on; with what is dead, where nothing else is left to do. */
function againWith({ options, command }: Again, retryDead: boolean): string[] {
  const kept = options.filter((word) => word !== '--new' && word !== '--retry-dead')
  const at = kept.indexOf('run') + 1
  return [...kept.slice(0, at), ...(retryDead ? ['--retry-dead'] : []), ...kept.slice(at), ...command]
}
