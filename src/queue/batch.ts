// Counts, seals, cancels and awaits one named set of tasks, and says what follows it, as pw.batch() does.
import { PieceworkError } from '../ground/errors.js'
import { bulkTasksMax, checkName } from '../task/limits.js'
import type { BatchRecord } from '../task/records.js'
import { amendAll } from './amend.js'
import type { Acting, Connection } from './connection.js'
import { followUpTask } from './draft.js'
import { checkWait, type WaitOptions, waitFor } from './drained.js'
import type { Batch, BatchOptions, BatchStats } from './face.js'
import { checkOptions } from './options.js'

/** Tasks of it that are neither done, dead nor cancelled. */
export const openIn = ({ total, done, dead, cancelled }: BatchRecord): number => total - done - dead - cancelled

export class BatchClient implements Batch {
  /** As given; checked at the first call. */
  readonly name: string
  readonly #connection: Connection
  readonly #options: BatchOptions | undefined
  #followed: Promise<void> | null
  /** Nothing is left to be stored. */
  #stored: boolean
  /** An earlier look, by which the rate is reckoned. */
  #before: { atMs: number; ended: number } | null = null

  /** `options` are checked at the first call, like the name. */
  constructor(connection: Connection, name: string, options: BatchOptions | undefined) {
    this.#connection = connection
    this.#options = options
    this.name = name
    this.#stored = options?.onDone === undefined
    this.#followed = this.#stored ? Promise.resolve() : null
    if (!this.#stored) connection.prepares(`batch ${JSON.stringify(name)}`, () => this.prepare())
  }

  /** Stores what follows it, before its first task is; null when that has been done. */
  static preparing(batch: unknown): Promise<void> | null {
    return batch instanceof BatchClient && !batch.#stored ? batch.prepare() : null
  }

  async stats(): Promise<BatchStats | null> {
    await this.prepare()
    const record = await this.#read()
    if (record === null) return null
    const { info: _, createdAt, finishedAt, ...counts } = record
    const open = openIn(record)
    return {
      ...counts,
      open,
      progress: record.total === 0 ? null : (record.total - open) / record.total,
      etaMs: this.#etaMs(record.total - open, open),
      createdAt: new Date(createdAt),
      finishedAt: finishedAt === null ? null : new Date(finishedAt),
    }
  }

  async seal(): Promise<void> {
    await this.prepare()
    await this.#connection.engine().configure('batch', this.#named(), { sealed: true }, this.#connection.actor)
  }

  async cancel(): Promise<{ cancelled: number; asked: number }> {
    await this.prepare()
    return cancelBatch(this.#connection, this.#named())
  }

  async done(options: WaitOptions = {}): ReturnType<Batch['done']> {
    checkWait('done', options)
    await this.prepare()
    let last: BatchRecord | null = null
    const finished = async () => {
      const engine = this.#connection.engine()
      last = await this.#read()
      const over = last?.sealed && last.finishedAt === null && openIn(last) === 0
      // An engine whose settles don't know that they are the last leaves the end to a sweep: this is one.
      if (over && engine.traits.sweeps === 'clients') {
        await engine.sweep(bulkTasksMax)
        last = await this.#read()
      }
      return last !== null && last.finishedAt !== null ? last : undefined
    }
    const look = async () => {
      if (!(await finished())) return undefined
      // Everything seen so far is synced by this; only then may the answer leave the house.
      await this.#connection.engine().measure([], true)
      const record = await finished()
      return record && { total: record.total, done: record.done, dead: record.dead, cancelled: record.cancelled }
    }
    return waitFor(this.#connection, options, look, () => this.#late(options.waitMs, last))
  }

  /** Checks the name and, once, stores what follows the batch. */
  prepare(): Promise<void> {
    this.#followed ??= this.#follow().catch((error) => {
      this.#followed = null
      throw error
    })
    return this.#followed.then(() => void this.#named())
  }

  async #follow(): Promise<void> {
    const name = this.#named()
    const followUp = await followUpTask(this.#options?.onDone)
    await this.#connection.engine().configure('batch', name, { followUp }, this.#connection.actor)
    this.#stored = true
  }

  /** By what ended since an earlier look through this object; null until there is one, and while nothing ends. */
  #etaMs(ended: number, open: number): number | null {
    if (open === 0) return 0
    const atMs = this.#connection.ports.clock.monotonicMs()
    const before = this.#before ?? { atMs, ended }
    // The rate of the last minute or more: an old one says little, one of a few tasks jumps.
    if (this.#before === null || atMs - before.atMs > 60_000) this.#before = { atMs, ended }
    const perMs = (ended - before.ended) / (atMs - before.atMs)
    return perMs > 0 ? Math.round(open / perMs) : null
  }

  #late(waitMs: number | undefined, last: BatchRecord | null): PieceworkError {
    const state = last?.sealed ? `${openIn(last)} of its tasks are still open` : 'it is not sealed'
    const message = `Batch "${this.name}" was not done within ${waitMs} ms: ${state}.`
    return new PieceworkError('PW_DRAIN_TIMEOUT', message, { batch: this.name, sealed: last?.sealed ?? false })
  }

  async #read(): Promise<BatchRecord | null> {
    const name = this.#named()
    const page = await this.#connection.engine().select('batch', { name }, null)
    return (page.items[0] as BatchRecord | undefined) ?? null
  }

  #named(): string {
    checkOptions('batch', this.#options)
    return checkName('batch', this.name)
  }
}

/**
 * Seals it, so that nothing joins any more, and cancels what is open; who holds the rest is asked. It finishes when the
 * last of them has ended, and what follows it comes.
 */
export async function cancelBatch(connection: Acting, name: string): Promise<{ cancelled: number; asked: number }> {
  const engine = connection.engine()
  const [record] = (await engine.select('batch', { name }, null)).items as unknown as BatchRecord[]
  if (!record) throw new PieceworkError('PW_BATCH_UNKNOWN', `There is no batch ${JSON.stringify(name)}.`, { name })
  if (!record.sealed) await engine.configure('batch', name, { sealed: true }, connection.actor).catch(unlessSealed)
  const states = ['scheduled', 'waiting', 'ready', 'leased'] as const
  const { changed, asked } = await amendAll(connection, { batch: name, states }, { do: 'cancel' }, false)
  return { cancelled: changed, asked }
}

/** Somebody else sealed it in between: that is all that was wanted. */
function unlessSealed(error: unknown): void {
  if (!(error instanceof PieceworkError && error.code === 'PW_BATCH_SEALED')) throw error
}
