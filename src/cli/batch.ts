// Finds or makes the batch of a run: its name, whether it may go on under this COMMAND, and what it remembers.
import { createHash } from 'node:crypto'
import { basename, extname } from 'node:path'
import { PieceworkError } from '../ground/errors.js'
import { openIn } from '../queue/batch.js'
import { bulkTasksMax, checkName, type PolicyPatch } from '../task/limits.js'
import type { BatchRecord } from '../task/records.js'
import type { Format } from './items.js'
import { quoted } from './placeholders.js'
import type { Store } from './store.js'

/** What names a run and tells it from others. */
export interface RunOf {
  /** COMMAND's words as typed. */
  words: readonly string[]
  /** The absolute path, or `-` for stdin. */
  input: string
  format: Format
  /** --batch; null: the default name. */
  name: string | null
  /** --new: this COMMAND's own batch is forgotten with its tasks; those of others are left alone. */
  anew: boolean
  keepOrder: boolean
  /** With --keep-order: how many tasks, the first included, may be ready, leased or between two deliveries. */
  ahead: number
  policy: PolicyPatch
}

/** What a batch remembers of its runs. */
export interface RunInfo {
  command?: readonly string[]
  input?: string
  format?: Format
  /** The highest item number given out, where that is more than the number of items. */
  numbered?: number
  /** True when its tasks share a key: then outputs can be kept in order, and stay so until the batch is forgotten. */
  ordered?: boolean
}

/** A readable prefix, and a hash of COMMAND's words and the input's path. */
function defaultName(words: readonly string[], input: string): string {
  const source = input === '-' ? 'stdin' : basename(input, extname(input))
  const readable = `${basename(words[0] ?? '')}-${source}`.replace(/[^\p{L}\p{N}._-]+/gu, '-').slice(0, 48)
  const hash = createHash('sha256')
    .update(JSON.stringify([...words, input]))
    .digest('hex')
  return `${readable.toWellFormed()}-${hash.slice(0, 10)}`
}

export async function readBatch(store: Store, name: string): Promise<BatchRecord | null> {
  const page = await store.engine.select('batch', { name }, null)
  return (page.items[0] as BatchRecord | undefined) ?? null
}

/** The ids of open tasks of a batch above `after`, the lowest first, a few at a time: they come with their payloads. */
export async function openIdsOf({ engine }: Store, batch: string, after: string | null): Promise<string[]> {
  const states = ['scheduled', 'waiting', 'ready', 'leased'] as const
  return (await engine.select('task', { batch, states, limit: 8 }, after)).items.map((row) => row.id as string)
}

/** All batches of the store, the oldest first. */
export async function* batchesOf(store: Store): AsyncGenerator<BatchRecord> {
  for (let cursor: string | null = null; ; ) {
    const page = await store.engine.select('batch', { limit: 1000 }, cursor)
    yield* page.items as unknown as BatchRecord[]
    if (page.next === null) return
    cursor = page.next
  }
}

/** Makes the batch ready to be run. Throws PW_BATCH_OTHER_COMMAND, PW_BATCH_BUSY, PW_NAME_INVALID. */
export async function prepareBatch(store: Store, run: RunOf): Promise<BatchRecord> {
  const { engine, connection } = store
  const name = checkName('batch', run.name ?? defaultName(run.words, run.input))
  const there = await readBatch(store, name)
  if (run.anew) {
    if (there !== null) await forget(store, name)
  } else if (there === null && run.name === null && run.input !== '-') await refuseOther(store, run)
  const ordered = isOrdered(run.anew ? null : there, run)
  const policy = ordered ? { ...run.policy, perKey: { width: run.ahead } } : run.policy
  // Declared past the library: a run with other options is meant, and no reason for a warning.
  await connection.engine().configure('queue', name, { code: policy }, connection.actor)
  const info: RunInfo = { command: run.words, input: run.input, format: run.format, ordered }
  return (await engine.configure('batch', name, { info }, connection.actor)) as unknown as BatchRecord
}

/** Whether the batch is one that keeps its order; throws PW_BATCH_UNORDERED where tasks are left that cannot. */
function isOrdered(there: BatchRecord | null, { keepOrder }: RunOf): boolean {
  if (there === null) return keepOrder
  if ((there.info as RunInfo).ordered === true) return true
  const left = openIn(there) + there.dead
  if (!keepOrder || left === 0) return keepOrder
  throw new PieceworkError(
    'PW_BATCH_UNORDERED',
    `Batch ${there.name} was begun without --keep-order and has ${left} open and dead items. ` +
      `Without -k it goes on; to be rid of it: ${removalOf(there).join(', ')}.`,
    { batch: there.name, left },
  )
}

/** The same file with work left under other words, and no batch of these: beginning one could do everything twice. */
async function refuseOther(store: Store, { input }: RunOf): Promise<void> {
  for await (const batch of batchesOf(store)) {
    const open = openIn(batch)
    if ((batch.info as RunInfo).input !== input || (open === 0 && batch.dead === 0)) continue
    const name = quoted([batch.name])
    throw new PieceworkError(
      'PW_BATCH_OTHER_COMMAND',
      `${input} has ${open} open and ${batch.dead} dead items in batch ${batch.name}, not this COMMAND's own. ` +
        `--batch ${name} goes on with them under this COMMAND, --new starts a batch of its own beside it. ` +
        `To be rid of it: ${removalOf(batch).join(', ')}.`,
      { batch: batch.name, open, dead: batch.dead },
    )
  }
}

/** What takes a run's batch and all that is left of it out of the store. */
const removalOf = (batch: BatchRecord): string[] => [
  `piecework batch forget ${quoted([batch.name])}`,
  ...leftovers(batch),
]

/** What takes the tasks that a forgotten run leaves behind out of the store. */
export function leftovers(batch: BatchRecord): string[] {
  const name = quoted([batch.name])
  const purge = openIn(batch) > 0 ? [`piecework queue purge ${name} --all`] : []
  return batch.dead > 0 ? [...purge, `piecework dead discard ${name} --all`] : purge
}

/** Throws PW_BATCH_BUSY while somebody works on the batch, who would lose count of it. */
export async function refuseBusy({ engine }: Store, name: string): Promise<void> {
  // A run that was killed a moment ago no longer holds anything.
  await engine.sweep(bulkTasksMax)
  const held = await engine.select('task', { batch: name, states: ['leased'], limit: 1 }, null)
  const { workers } = await engine.measure([name], false)
  if (held.items.length === 0 && workers.every((worker) => !worker.queues.includes(name))) return
  throw new PieceworkError('PW_BATCH_BUSY', `A run or a worker is at work on batch "${name}".`, { batch: name })
}

/** Takes a batch out of the store with all that is left of it, by our name in the audit. */
async function forget(store: Store, name: string): Promise<void> {
  const { engine, connection } = store
  await refuseBusy(store, name)
  for (const change of ['purge', 'discard'] as const) {
    for (let left = 1; left > 0; ) {
      const amended = await engine.amend({ batch: name }, { do: change }, connection.actor, {
        max: bulkTasksMax,
        dryRun: false,
      })
      left = amended.changed
    }
  }
  await engine.configure('batch', name, null, connection.actor)
}
