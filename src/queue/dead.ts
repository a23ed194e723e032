// Looks at, redrives and discards the dead letters of one queue, as queue.dead does.
import type { Filter } from '../engine/contract.js'
import { checkName } from '../task/limits.js'
import type { HistoryRecord, TaskRecord } from '../task/records.js'
import { amendAll } from './amend.js'
import type { Connection } from './connection.js'
import type { DeadFilter, DeadLetters } from './face.js'
import { checkOptions } from './options.js'
import { checkRedrive, type Redriven, type RedriveOptions, redrive } from './redrive.js'
import {
  checkMeant,
  type DeadLetter,
  deadLetterFrom,
  filterFor,
  type Listing,
  type PastDelivery,
  pastDeliveryFrom,
} from './tasks.js'

export class DeadLettersClient implements DeadLetters {
  readonly #connection: Connection
  readonly #queue: () => Promise<string>

  /** `queue` answers the queue's name, or rejects with what the queue was refused for. */
  constructor(connection: Connection, queue: () => Promise<string>) {
    this.#connection = connection
    this.#queue = queue
  }

  async list(filter: Parameters<DeadLetters['list']>[0] = {}): Promise<Listing<DeadLetter>> {
    checkOptions('dead.list', filter)
    const { cursor, ...rest } = filter
    const wanted = { ...filterFor(await this.#queue(), rest), states: ['dead'] as const }
    const page = await this.#connection.engine().select('task', wanted, cursor ?? null)
    return { items: (page.items as unknown as TaskRecord[]).map(deadLetterFrom), next: page.next }
  }

  async get(id: string): Promise<(DeadLetter & { history: PastDelivery[] }) | null> {
    const ids = [checkName('id', id)]
    const queue = await this.#queue()
    const engine = this.#connection.engine()
    const row = (await engine.select('task', { ids }, null)).items[0] as TaskRecord | undefined
    if (row === undefined || row.state !== 'dead' || row.queue !== queue) return null
    const history: PastDelivery[] = []
    for (let cursor: string | null = null; ; ) {
      const page = await engine.select('history', { ids }, cursor)
      history.push(...(page.items as unknown as HistoryRecord[]).map(pastDeliveryFrom))
      if (page.next === null) break
      cursor = page.next
    }
    return { ...deadLetterFrom(row), history }
  }

  async redrive(filter: DeadFilter | { all: true }, options: RedriveOptions = {}): Promise<Redriven> {
    checkOptions('redrive', options)
    checkRedrive(options)
    return redrive(this.#connection, await this.#meant('dead.redrive', filter), options)
  }

  async discard(filter: DeadFilter | { all: true }): Promise<{ discarded: number }> {
    const meant = await this.#meant('dead.discard', filter)
    return { discarded: (await amendAll(this.#connection, meant, { do: 'discard' }, false)).changed }
  }

  async #meant(call: string, given: DeadFilter | { all: true }): Promise<Filter> {
    checkOptions('dead letters', given)
    const fields: Record<string, unknown> = { ...given }
    checkMeant(call, fields)
    return { ...filterFor(await this.#queue(), fields), states: ['dead'] }
  }
}
