// Enqueues any stream of items in constant memory: chunks of at most 1000 tasks or about 1 MiB, one in flight.
import type { NewTask } from '../engine/contract.js'
import { PieceworkError } from '../ground/errors.js'
import { bulkTasksMax, shown } from '../task/limits.js'
import type { Connection, EnqueuedTask } from './connection.js'

/** What enqueueMany answers. */
export interface EnqueuedMany {
  /** Tasks made by this call. */
  enqueued: number
  /** Items whose task was there already. */
  duplicates: number
}

/** Text of one chunk, in UTF-16 units: as much as the largest single payload. */
const chunkTextMax = 1_048_576

/** One task and the transaction it belongs to. */
export interface BulkTask {
  task: NewTask
  tx?: unknown
}

/**
 * Enqueues what `make` answers for each item. An error of an item names its index, is thrown after everything before it
 * was enqueued, and says so in its details; an error of the source itself is thrown as it is, after the same.
 */
export async function enqueueAll<T>(
  connection: Connection,
  items: Iterable<T> | AsyncIterable<T>,
  make: (item: T, index: number) => BulkTask | Promise<BulkTask>,
): Promise<EnqueuedMany> {
  const sender = new Sender(connection)
  let index = 0
  const take = (item: T): Promise<void> | undefined => {
    let made: BulkTask | Promise<BulkTask>
    try {
      made = make(item, index)
    } catch (error) {
      return sender.refuse(error, index)
    }
    if (made instanceof Promise) {
      return made.then(
        (task) => sender.add(task, index++),
        (error) => sender.refuse(error, index),
      )
    }
    return sender.add(made, index++)
  }
  try {
    if (isAsync(items)) for await (const item of items) await take(item)
    else
      for (const item of checkIterable(items)) {
        const wait = take(item)
        // Most items only join the chunk: a promise for each would cost more than the rest.
        if (wait !== undefined) await wait
      }
  } catch (error) {
    await sender.finish()
    throw error
  }
  return sender.finish()
}

class Sender {
  readonly #connection: Connection
  #chunk: NewTask[] = []
  #chunkFrom = 0
  #chunkText = 0
  #tx: unknown
  #flight: Promise<void> = Promise.resolve()
  #failed: unknown
  readonly #sum: EnqueuedMany = { enqueued: 0, duplicates: 0 }

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /** Joins the chunk; a promise when the chunk is full and has to be sent first. */
  add({ task, tx }: BulkTask, index: number): Promise<void> | undefined {
    const full = this.#chunk.length >= bulkTasksMax || this.#chunkText + task.payload.length > chunkTextMax
    const sent = this.#chunk.length > 0 && (full || tx !== this.#tx) ? this.#send() : undefined
    if (this.#chunk.length === 0) this.#chunkFrom = index
    this.#tx = tx
    this.#chunk.push(task)
    this.#chunkText += task.payload.length
    return sent
  }

  async refuse(error: unknown, index: number): Promise<never> {
    const sum = await this.finish()
    throw withIndex(error, `Item ${index}`, index, sum)
  }

  /** Sends the rest; answers the sums once everything is accepted. */
  async finish(): Promise<EnqueuedMany> {
    if (this.#failed === undefined) {
      if (this.#chunk.length > 0) await this.#send()
      await this.#flight
    }
    if (this.#failed !== undefined) throw this.#failed
    return this.#sum
  }

  /** Puts the chunk in flight once the one before it has landed: the next is read meanwhile. */
  #send(): Promise<void> {
    const before = this.#flight
    const [tasks, from, tx] = [this.#chunk, this.#chunkFrom, this.#tx]
    this.#chunk = []
    this.#chunkText = 0
    return before.then(() => {
      if (this.#failed !== undefined) throw this.#failed
      this.#flight = this.#connection.enqueueAll(tasks, tx).then(
        (answers) => this.#count(answers),
        (error) => {
          this.#failed = withIndex(error, `Items from ${from} on`, from, this.#sum)
        },
      )
    })
  }

  #count(answers: readonly EnqueuedTask[]): void {
    const duplicates = answers.filter((answer) => answer.duplicate).length
    this.#sum.duplicates += duplicates
    this.#sum.enqueued += answers.length - duplicates
  }
}

/** The same error with the item's index and what was enqueued before it; errors of the caller stay themselves. */
function withIndex(error: unknown, what: string, index: number, sum: EnqueuedMany): unknown {
  if (!(error instanceof PieceworkError)) return error
  return new PieceworkError(
    error.code,
    `${what}: ${error.message}`,
    { ...error.details, index, ...sum },
    { cause: error },
  )
}

const isAsync = <T>(items: Iterable<T> | AsyncIterable<T>): items is AsyncIterable<T> =>
  typeof (items as Partial<AsyncIterable<T>> | null | undefined)?.[Symbol.asyncIterator] === 'function'

function checkIterable<T>(items: Iterable<T>): Iterable<T> {
  // A string can be iterated, but nobody means its characters.
  if (typeof items === 'object' && typeof items?.[Symbol.iterator] === 'function') return items
  throw new PieceworkError('PW_OPTION_INVALID', `The items are ${shown(items)}; they must be an iterable of payloads.`)
}
