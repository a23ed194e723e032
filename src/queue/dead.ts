// Looks at, redrives and discards the dead letters of one queue, as queue.dead does.
import type { Filter } from '../engine/contract.js'
import { PieceworkError } from '../ground/errors.js'
import { checkName } from '../task/limits.js'
import { encodePayload } from '../task/payload.js'
import type { HistoryRecord, TaskRecord } from '../task/records.js'
import { amendAll } from './amend.js'
import type { Connection } from './connection.js'
import type { Definition } from './define.js'
import type { DeadFilter, DeadLetters } from './face.js'
import { type ErrorGroup, errorGroups } from './groups.js'
import { checkOptions } from './options.js'
import { checkRedrive, type Redriven, type RedriveOptions, redrive, refuseLiving } from './redrive.js'
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
  readonly #definition: () => Definition

  /** `queue` answers the queue's name, or rejects with what it was refused for; then ask for its `definition`. */
  constructor(connection: Connection, queue: () => Promise<string>, definition: () => Definition) {
    this.#connection = connection
    this.#queue = queue
    this.#definition = definition
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

  async groups(filter: Parameters<DeadLetters['groups']>[0] = {}): Promise<ErrorGroup[]> {
    checkOptions('dead.groups', filter)
    const { limit: _, ...wanted } = filterFor(await this.#queue(), { ...filter })
    return errorGroups(this.#connection, wanted)
  }

  async edit(id: string, payload: unknown): Promise<void> {
    const ids = [checkName('id', id)]
    const queue = await this.#queue()
    const engine = this.#connection.engine()
    const row = (await engine.select('task', { ids, queue }, null)).items[0] as TaskRecord | undefined
    if (row === undefined)
      throw new PieceworkError('PW_TASK_GONE', `There is no task ${id} in queue "${queue}".`, { id })
    await refuseLiving(this.#connection, { ids, queue })
    const definition = this.#definition()
    // What a claim would bury again is refused here; a type that this program does not know has no schema to ask.
    const known = definition.types?.includes(row.type) ?? true
    const text = known ? await definition.encode(row.type, payload) : encodePayload(payload)
    const change = { do: 'edit', payload: text } as const
    const { changed } = await engine.amend({ ids, queue }, change, this.#connection.actor, { max: 1, dryRun: false })
    if (changed === 0) throw new PieceworkError('PW_TASK_NOT_DEAD', `Task ${id} is no dead letter any more.`, { id })
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
