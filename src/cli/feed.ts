// Enqueues the items of an input into a batch while they are read, each item once for ever.
import type { NewTask } from '../engine/contract.js'
import { bulkTasksMax } from '../task/limits.js'
import type { BatchRecord } from '../task/records.js'
import type { RunInfo } from './batch.js'
import { Identities } from './identity.js'
import type { Input } from './input.js'
import type { Item } from './items.js'
import type { Store } from './store.js'

/** What a run notes beside a payload: the item's number, and why it cannot run. */
export const numberHeader = 'piecework-number'
export const refusedHeader = 'piecework-refused'
/** The key that the tasks of an ordered batch share, so that the width of a key bounds what runs ahead of the first. */
export const orderKey = 'piecework-order'

/** Text of one chunk, in UTF-16 units. */
const chunkTextMax = 1_048_576

export class Feed {
  /** Items read so far, and those among them that were new to the batch. */
  read = 0
  fresh = 0
  ended = false
  readonly #store: Store
  readonly #batch: string
  readonly #identities = new Identities()
  /** Items that earlier runs numbered 1 … mark. */
  readonly #mark: number
  /** True once this input turned out to differ from theirs, so that places in it are no numbers any more. */
  #shifted: boolean
  readonly #key: string | undefined
  #chunk: NewTask[] = []
  #chunkFrom = 1
  #chunkText = 0

  constructor(store: Store, batch: BatchRecord) {
    this.#store = store
    this.#batch = batch.name
    const { numbered = 0, ordered } = batch.info as RunInfo
    this.#key = ordered === true ? orderKey : undefined
    this.#mark = Math.max(numbered, batch.total)
    this.#shifted = numbered > 0
  }

  /** Reads to the end, or until `going` says no; `arrived` hears of each commit that brought new tasks. */
  async run(input: Input, going: () => boolean, arrived: () => void): Promise<void> {
    let failure: unknown
    try {
      for await (const items of input.items()) {
        for (const item of items) {
          if (!going()) return
          if (this.#full(item)) await this.#send(arrived)
          this.#add(item)
        }
        // What came so far shall run now, not only when a thousand are there.
        await this.#send(arrived)
      }
    } catch (error) {
      failure = error
    }
    if (going()) await this.#send(arrived)
    if (failure !== undefined) throw failure
    this.ended = true
  }

  #full(next: Item): boolean {
    const full = this.#chunk.length >= bulkTasksMax || this.#chunkText + next.payload.length > chunkTextMax
    // Numbers change their rule behind the mark, and a chunk has one rule.
    return this.#chunk.length > 0 && (full || this.read === this.#mark)
  }

  #add({ payload, refused }: Item): void {
    if (this.#chunk.length === 0) this.#chunkFrom = this.read + 1
    const place = ++this.read
    const number = this.#shifted || place <= this.#mark ? this.#mark + place : place
    const headers: Record<string, string> = { [numberHeader]: String(number) }
    if (refused !== null) headers[refusedHeader] = refused
    const identity = this.#identities.of(payload)
    const [queue, batch, key] = [this.#batch, this.#batch, this.#key]
    this.#chunk.push({ queue, payload, headers: JSON.stringify(headers), batch, identity, key })
    this.#chunkText += payload.length
  }

  async #send(arrived: () => void): Promise<void> {
    if (this.#chunk.length === 0) return
    const tasks = this.#chunk
    this.#chunk = []
    this.#chunkText = 0
    const answers = await this.#store.connection.enqueueAll(tasks)
    const fresh = answers.reduce((sum, answer) => sum + (answer.duplicate ? 0 : 1), 0)
    this.fresh += fresh
    if (fresh === 0) return
    if (this.#chunkFrom <= this.#mark) this.#shifted = true
    if (this.#shifted) await this.#remember()
    arrived()
  }

  async #remember(): Promise<void> {
    const { engine, connection } = this.#store
    const info: RunInfo = { numbered: this.#mark + this.read }
    await engine.configure('batch', this.#batch, { info }, connection.actor)
  }
}
