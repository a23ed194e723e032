// Looks at, redrives and discards the dead letters of one queue, as queue.dead does.
import { checkName, checkWhole } from '../task/limits.js'
import type { HistoryRecord, TaskRecord } from '../task/records.js'
import { amendAll, ownIds } from './amend.js'
import type { Connection } from './connection.js'
import type { DeadFilter, DeadLetters } from './face.js'
import { checkOptions } from './options.js'
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
  readonly #queue: () => string

  /** Made by queue.dead. `queue` throws what the queue's name or options were refused for. */
  constructor(connection: Connection, queue: () => string) {
    this.#connection = connection
    this.#queue = queue
  }

  async list(filter: Parameters<DeadLetters['list']>[0] = {}): Promise<Listing<DeadLetter>> {
    checkOptions('dead.list', filter)
    const { cursor, ...rest } = filter
    const wanted = { ...filterFor(this.#queue(), rest), states: ['dead'] as const }
    const page = await this.#connection.reading().select('task', wanted, cursor ?? null)
    return { items: (page.items as unknown as TaskRecord[]).map(deadLetterFrom), next: page.next }
  }

  async get(id: string): Promise<(DeadLetter & { history: PastDelivery[] }) | null> {
    const ids = [checkName('id', id)]
    const queue = this.#queue()
    const engine = this.#connection.reading()
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

  async redrive(
    filter: DeadFilter | { all: true },
    options: { perSecond?: number | undefined; dryRun?: boolean | undefined } = {},
  ): Promise<{ redriven: number }> {
    checkOptions('redrive', options)
    const { perSecond, dryRun } = options
    if (perSecond !== undefined) checkWhole('perSecond', perSecond, 1, 1_000_000)
    const change = perSecond === undefined ? ({ do: 'redrive' } as const) : ({ do: 'redrive', perSecond } as const)
    return { redriven: await this.#amend('dead.redrive', filter, change, dryRun === true) }
  }

  async discard(filter: DeadFilter | { all: true }): Promise<{ discarded: number }> {
    return { discarded: await this.#amend('dead.discard', filter, { do: 'discard' }, false) }
  }

  async #amend(call: string, given: DeadFilter | { all: true }, change: Parameters<typeof amendAll>[2], dryRun: boolean): Promise<number> {
    checkOptions('dead letters', given)
    const fields: Record<string, unknown> = { ...given }
    checkMeant(call, fields)
    const queue = this.#queue()
    const { limit: _, ...filter } = filterFor(queue, fields)
    if (filter.ids) filter.ids = await ownIds(this.#connection, queue, filter.ids)
    if (filter.ids?.length === 0) return 0
    return (await amendAll(this.#connection, { ...filter, states: ['dead'] }, change, dryRun)).changed
  }
}
