// One delivery of a run: makes the words, starts COMMAND, passes on what it wrote, and reads its end as a verdict.

import { PieceworkError } from '../ground/errors.js'
import { policyInForce } from '../queue/policy.js'
import type { Parked, Worker, WorkerOptions } from '../queue/seam.js'
import { Bury, type Delivery, type Handler, Release } from '../task/handler.js'
import { errorBytesMax } from '../task/limits.js'
import type { Ended, Running } from './child.js'
import { numberHeader, orderKey, refusedHeader } from './feed.js'
import { itemText } from './fields.js'
import type { Gate } from './gate.js'
import type { Failure } from './halt.js'
import type { Format } from './items.js'
import type { Launch } from './launch.js'
import { escaped, type Template } from './placeholders.js'
import type { Results, Told } from './results.js'
import type { Store } from './store.js'

/** How items reach COMMAND. */
export interface Manner {
  template: Template
  format: Format
  /** `place`: by placeholders alone. `arg`: as the last argument. `stdin`: written to it. */
  by: 'place' | 'arg' | 'stdin'
  /** Where COMMAND was found; null when its first word holds a placeholder. */
  file: string | null
  /** The longest run of one COMMAND; null for none, or when the queue's policy has it. */
  timeoutMs: number | null
}

/** Starts a worker whose handler is COMMAND; it gets the text as it was enqueued: parsing rounds large numbers. */
export function workWith(store: Store, queue: string, caller: Caller, options: WorkerOptions, parked?: Parked): Worker {
  const { connection } = store
  const handler: Handler<unknown> = (payload, delivery) => caller.handle(payload as string, delivery)
  const worker = connection.startWorker({
    ports: connection.ports,
    queue,
    handlers: new Map([['*', handler]]),
    types: options.types ?? null,
    decode: (_type, text) => text,
    prepared: policyInForce(connection, queue),
    options,
    parked,
    stopped: () => connection.dismiss(worker),
  })
  connection.employ(worker)
  return worker
}

/** How long a COMMAND that was told to end has until it is killed. */
const killMs = 5000
/** After the KILL of all COMMANDs, how long it may take until they are known to have ended. */
const lastAnswerMs = 500

/** An error that is kept as its text alone: where in our code it was made helps nobody. */
function plain<E extends Error>(error: E, code: string | null): E {
  error.stack = error.message
  return code === null ? error : Object.assign(error, { code })
}

export class Caller {
  readonly #running = new Set<Running>()
  /** Signals that this process was sent: a terminal sends them to its whole foreground group. */
  readonly #struck = new Set<NodeJS.Signals>()
  #stopping = false

  constructor(
    private readonly launch: Launch,
    private readonly manner: Manner,
    private readonly gate: Gate,
    private readonly results: Results,
    private readonly hears: {
      /** COMMAND itself is the trouble, or the output: no other task would fare better. */
      hopeless(error: PieceworkError): void
      /** A delivery ended by ack (null), or by a failure. */
      ended(failure: Failure | null): void
    },
  ) {}

  /** COMMANDs that run now. */
  get running(): number {
    return this.#running.size
  }

  /**
   * This process was sent a signal. A COMMAND that was just being started was in its process group still, and may have
   * been ended by it: that is no failure of its own.
   */
  struck(signal: NodeJS.Signals): void {
    this.#struck.add(signal)
  }

  /** Ends every running COMMAND: TERM, then KILL; their tasks are released. */
  stopAll(): void {
    this.#stopping = true
    for (const running of this.#running) running.stop(killMs)
    this.launch.endWithin(killMs + lastAnswerMs)
  }

  /** Resolves when no COMMAND runs any more and none can be started. */
  async close(): Promise<void> {
    await Promise.allSettled([...this.#running].map((running) => running.ended))
    this.launch.close()
  }

  /** The handler: returns to ack, throws otherwise. */
  async handle(payload: string, delivery: Delivery): Promise<void> {
    const { order } = this.results
    const number = Number(delivery.headers[numberHeader] ?? 0)
    order.begin(delivery.id)
    if (!(await this.gate.enter())) {
      order.away(delivery.id)
      throw new Release()
    }
    let told: Told
    let written: boolean
    try {
      told = await this.#call(payload, delivery, number)
    } finally {
      this.gate.leave()
    }
    const { verdict, error, item } = told
    if (verdict !== 'ack') order.away(delivery.id)
    // Before anything else is awaited: the next COMMAND may be the one too many.
    if (verdict === 'retry' || verdict === 'bury') {
      this.hears.ended({ error: error ?? '', alike: withoutItem(error ?? '', item) })
    }
    try {
      written = await this.results.tell(told, delivery.signal)
      if (verdict === 'ack') this.hears.ended(null)
    } catch (error) {
      this.hears.hopeless(error as PieceworkError)
      throw new Release({ cause: error })
    } finally {
      told.ended?.stdout.drop()
    }
    if (delivery.signal.aborted) throw delivery.signal.reason
    if (!written) throw new Release()
    decide(told)
  }

  async #call(payload: string, delivery: Delivery, number: number): Promise<Told> {
    const { format, by, file } = this.manner
    const structured = format !== 'lines' && format !== 'null'
    const item = itemText(payload)
    const told = {
      id: delivery.id,
      number,
      delivery: delivery.number,
      item,
      words: [] as string[],
      sent: 0,
      ended: null,
    }
    const input = by === 'stdin' ? `${structured ? payload : item}\n` : null
    try {
      told.words = this.#words(item, structured ? payload : null, number, delivery.headers[refusedHeader])
      const running = await this.launch.start({ words: told.words, file, input, env: environmentOf(delivery) })
      const { ended, late } = await this.#watched(running, delivery.signal)
      if (input !== null) told.sent = Buffer.byteLength(input)
      return { ...told, ended, ...(late ? this.#late : verdictOf(ended, delivery.signal, this.#struck)) }
    } catch (error) {
      if (!(error instanceof PieceworkError)) throw error
      const { code, message } = error
      const bad = code === 'PW_ARGUMENT_INVALID' || code === 'PW_FIELD_MISSING' || code === 'PW_ITEM_REFUSED'
      // COMMAND cannot be started at all, unless the system is only short of something.
      if (!bad && code !== 'PW_SPAWN_FAILED') this.hears.hopeless(error)
      return { ...told, verdict: bad ? 'bury' : 'release', error: message, code }
    }
  }

  #words(item: string, json: string | null, number: number, refused: string | undefined): string[] {
    if (refused !== undefined) throw new PieceworkError('PW_ITEM_REFUSED', refused)
    const words = this.manner.template.fill({ text: item, json, number })
    return this.manner.by === 'arg' ? [...words, item] : words
  }

  /** How a delivery ends whose COMMAND ran too long, whatever that said when it was told to end. */
  get #late(): Pick<Told, 'verdict' | 'error' | 'code'> {
    const error = `COMMAND ran longer than --timeout (${this.manner.timeoutMs} ms).`
    return { verdict: 'retry', error, code: 'PW_TIMEOUT' }
  }

  /** Its end; `late`: because its time was over. Waiting, for a turn or for --per-second, is not part of that time. */
  async #watched(running: Running, signal: AbortSignal): Promise<{ ended: Ended; late: boolean }> {
    const { timeoutMs } = this.manner
    const end = () => running.stop(killMs)
    let late = false
    const timer =
      timeoutMs === null
        ? null
        : this.launch.clock.after(timeoutMs, () => {
            late = !signal.aborted && !this.#stopping
            end()
          })
    this.#running.add(running)
    signal.addEventListener('abort', end, { once: true })
    if (signal.aborted || this.#stopping) end()
    try {
      const ended = await running.ended
      return { ended, late: late && ended.stopped }
    } finally {
      timer?.cancel()
      this.#running.delete(running)
      signal.removeEventListener('abort', end)
    }
  }
}

/** What COMMAND can ask about its task. */
function environmentOf(delivery: Delivery): Record<string, string> {
  return {
    PIECEWORK_ID: delivery.id,
    PIECEWORK_QUEUE: delivery.queue,
    PIECEWORK_TYPE: delivery.type,
    PIECEWORK_BATCH: delivery.batch ?? '',
    PIECEWORK_DELIVERY: String(delivery.number),
    PIECEWORK_DELIVERIES_MAX: delivery.deliveriesMax === null ? '' : String(delivery.deliveriesMax),
    PIECEWORK_FENCE: String(delivery.fence),
    PIECEWORK_KEY: delivery.key === orderKey ? '' : (delivery.key ?? ''),
  }
}

function decide({ verdict, error, code, delivery, ended }: Told): void {
  const text = error ?? ''
  switch (verdict) {
    case 'ack':
    case 'cancelled':
      return
    case 'bury':
      throw plain(new Bury(text), code)
    case 'retry':
      throw plain(new Error(text), code)
    case 'release':
      throw plain(
        new Release({ delayMs: ended !== null && ended.exit !== 75 ? undefined : laterMs(delivery), cause: text }),
        code,
      )
  }
}

/** The error as it would read for any other item: the item's place is taken by a number, which no comparison minds. */
function withoutItem(error: string, item: string): string {
  if (item === '' || item.length > 1000) return error
  return error.replace(new RegExp(`(?<![\\p{L}\\p{N}])${escaped(item)}(?![\\p{L}\\p{N}])`, 'gu'), '0')
}

/** Exit 75 says "not now": half a second at first, doubling to a minute. */
const laterMs = (delivery: number) => Math.min(60_000, 500 * 2 ** Math.min(delivery - 1, 7))

function verdictOf(
  ended: Ended,
  { aborted, reason }: AbortSignal,
  struck: ReadonlySet<string>,
): Pick<Told, 'verdict' | 'error' | 'code'> {
  const { exit, signal, stopped, stderr } = ended
  // Whatever it said after it was told to end: nobody knows whether its work is whole.
  if (stopped && aborted) {
    const verdict = reason.code === 'PW_CANCELLED' ? 'cancelled' : 'retry'
    return { verdict, error: reason.message, code: reason.code }
  }
  const withUs = signal !== null && struck.has(signal)
  if (stopped || withUs) return { verdict: 'release', error: 'ended by the run', code: null }
  if (exit === 0) return { verdict: 'ack', error: null, code: null }
  const how = signal === null ? `exit ${exit}` : `killed by ${signal}`
  const said = lastText(stderr, errorBytesMax - how.length - 2).trim()
  const error = said === '' ? how : `${how}: ${said}`
  return { verdict: exit === 65 ? 'bury' : exit === 75 ? 'release' : 'retry', error, code: null }
}

/** The end of what may be text, in at most so many bytes of UTF-8. */
function lastText(bytes: Buffer, bytesMax: number): string {
  let text = bytes.subarray(-bytesMax)
  // Bytes that are no UTF-8 grow when they become U+FFFD.
  for (let round = 0; round < 2; round++) {
    let from = Math.max(0, text.length - bytesMax)
    while (from < text.length && from < bytes.length && ((text[from] ?? 0) & 0xc0) === 0x80) from++
    text = Buffer.from(text.subarray(from).toString('utf8'))
  }
  const from = Math.max(0, text.length - bytesMax)
  return text.subarray(from).toString('utf8')
}
