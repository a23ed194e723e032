// The same handler without a queue: called at once in this process, at most so many at a time.
import { setMaxListeners } from 'node:events'
import type { Engine } from '../engine/contract.js'
import { PieceworkError } from '../ground/errors.js'
import type { Delivery, Handler } from '../task/handler.js'
import { checkWhole } from '../task/limits.js'
import type { Definition } from './define.js'
import type { TaskOptions } from './options.js'
import { checkOptions, taskOf } from './options.js'
import type { Ports } from './seam.js'
import { asyncOf, effectOf, syncOf, transact } from './transactions.js'

export interface InlineOptions {
  /** Calls that run at once; the others wait in their order. Default 10. */
  concurrency?: number | undefined
}

/** What one call says of its task; the rest of an enqueue's options means nothing without a queue. */
export interface InlineCall extends Pick<TaskOptions, 'type' | 'key' | 'headers'> {
  signal?: AbortSignal | undefined
}

export type Inline<In> = (payload: In, call?: InlineCall) => Promise<unknown>

/** `handlers` are those of work(), `'*'` for types of no handler of their own. Throws PW_OPTION_INVALID at once. */
export function inlineOf(
  { clock, engine }: Pick<Ports, 'clock' | 'engine'>,
  terms: () => { name: string; definition: Definition },
  handlers: ReadonlyMap<string, Handler<unknown>>,
  options: InlineOptions = {},
): Inline<unknown> {
  checkOptions('inline', options)
  const slots = new Slots(checkWhole('concurrency', options.concurrency ?? 10, 1, 10_000))
  let calls = 0
  return async (payload, call = {}) => {
    checkOptions('inline call', call)
    const { name, definition } = terms()
    const { signal, ...given } = call
    definition.checkType(given.type)
    // As it would arrive: through JSON and, at the other end, through the schema.
    const task = taskOf(name, await definition.encode(given.type, payload), given)
    const type = task.type ?? name
    const handler = handlers.get(type) ?? handlers.get('*')
    if (!handler) throw new PieceworkError('PW_HANDLER_INVALID', `There is no handler for ${JSON.stringify(type)}.`)
    const input = await definition.decode(type, task.payload)
    const id = `inline-${++calls}`
    return slots.run(async () => {
      signal?.throwIfAborted()
      const { key = null, headers } = task
      return handler(input, deliveryOf({ id, queue: name, type, key, headers, wallMs: clock.wallMs() }, engine, signal))
    })
  }
}

interface Direct {
  id: string
  queue: string
  type: string
  key: string | null
  headers: string | undefined
  wallMs: number
}

/** What a handler is given beside the payload: one delivery that nobody repeats, under a lease that nobody ends. */
function deliveryOf(
  { headers, wallMs, ...task }: Direct,
  engine: Engine,
  signal = new AbortController().signal,
): Delivery {
  const effect = (effectKey: string) => effectOf(task.queue, effectKey, null)
  setMaxListeners(0, signal)
  return {
    ...task,
    ...{ number: 1, fence: 1, deliveriesMax: 1, batch: null, signal },
    enqueuedAt: new Date(wallMs),
    leaseEndsAt: new Date(8.64e15),
    headers: headers === undefined ? {} : (JSON.parse(headers) as Record<string, string>),
    extend: async () => {},
    progress: async () => {},
    // There is nothing to ack: the effects are what is left of a transaction.
    transaction: (fn) => transact(engine, fn, null, () => {}),
    ack: async () => {},
    ackSync: () => {},
    once: async (effectKey, { tx }) => asyncOf(engine, 'once').once(effect(effectKey), tx),
    onceSync: (effectKey, { tx }) => syncOf(engine, 'onceSync').onceSync(effect(effectKey), tx),
  }
}

class Slots {
  #free: number
  readonly #waiting: (() => void)[] = []

  constructor(count: number) {
    this.#free = count
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      if (next) next()
      else this.#free++
    }
  }
}
