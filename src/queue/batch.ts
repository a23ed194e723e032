// Counts, seals and awaits one named set of tasks, as pw.batch() does.
import { PieceworkError } from '../ground/errors.js'
import { checkName } from '../task/limits.js'
import type { BatchRecord } from '../task/records.js'
import type { Connection } from './connection.js'
import { checkWait, type WaitOptions, waitFor } from './drained.js'
import type { Batch, BatchStats } from './face.js'
import { checkOptions } from './options.js'

export class BatchClient implements Batch {
  /** As given; checked at the first call. */
  readonly name: string
  readonly #connection: Connection
  readonly #given: unknown

  /** `given` is checked at the first call, like the name. */
  constructor(connection: Connection, name: string, given: unknown) {
    this.#connection = connection
    this.#given = given
    this.name = name
  }

  async stats(): Promise<BatchStats | null> {
    const record = await this.#read()
    if (record === null) return null
    const { info: _, createdAt, finishedAt, ...counts } = record
    return {
      ...counts,
      createdAt: new Date(createdAt),
      finishedAt: finishedAt === null ? null : new Date(finishedAt),
    }
  }

  async seal(): Promise<void> {
    const name = this.#named()
    await this.#connection.engine().configure('batch', name, { sealed: true }, this.#connection.actor)
  }

  async done(options: WaitOptions = {}): ReturnType<Batch['done']> {
    checkWait('done', options)
    let last: BatchRecord | null = null
    const ended = async () => {
      last = await this.#read()
      return last?.sealed && last.total === last.done + last.dead + last.cancelled ? last : undefined
    }
    const look = async () => {
      if (!(await ended())) return undefined
      // Everything seen so far is synced by this; only then may the answer leave the house.
      await this.#connection.engine().measure(null, true)
      const record = await ended()
      return record && { total: record.total, done: record.done, dead: record.dead, cancelled: record.cancelled }
    }
    return waitFor(this.#connection, options, look, () => this.#late(options.waitMs, last))
  }

  #late(waitMs: number | undefined, last: BatchRecord | null): PieceworkError {
    const state = last?.sealed
      ? `${last.total - last.done - last.dead - last.cancelled} of its tasks are still open`
      : 'it is not sealed'
    const message = `Batch "${this.name}" was not done within ${waitMs} ms: ${state}.`
    return new PieceworkError('PW_DRAIN_TIMEOUT', message, { batch: this.name, sealed: last?.sealed ?? false })
  }

  async #read(): Promise<BatchRecord | null> {
    const name = this.#named()
    const page = await this.#connection.engine().select('batch', { name }, null)
    return (page.items[0] as BatchRecord | undefined) ?? null
  }

  #named(): string {
    checkOptions('batch', this.#given)
    return checkName('batch', this.name)
  }
}
