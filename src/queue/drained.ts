// Waits until a queue has nothing left to do, and says so when it never will.
import type { Figures, TypeFigures } from '../engine/contract.js'
import { pause } from '../ground/clock.js'
import { PieceworkError } from '../ground/errors.js'
import { checkWhole, shown } from '../task/limits.js'
import type { Acting, Connection } from './connection.js'
import { openOf, sum } from './figures.js'
import { checkChoice, checkOptions } from './options.js'

/** How long done() and drained() wait. */
export interface WaitOptions {
  /** Ends the wait with the signal's reason. */
  signal?: AbortSignal | undefined
  /** PW_DRAIN_TIMEOUT after so many ms; default: no ceiling. */
  waitMs?: number | undefined
}

export interface DrainOptions extends WaitOptions {
  /** `ignore`: tasks due later are not waited for; default 'wait'. */
  scheduled?: 'wait' | 'ignore' | undefined
}

/** Nothing moved for so long: somebody has to do something. */
const stuckMs = 30_000
const lookMsMin = 2
const lookMsMax = 50

/** Looks again and again, at growing distances; `look` answers what was waited for, or undefined. */
export async function waitFor<T>(
  connection: Acting,
  options: WaitOptions,
  look: () => Promise<T | undefined>,
  late: () => PieceworkError,
): Promise<T> {
  const { clock } = connection.ports
  const endAtMs = options.waitMs === undefined ? Number.POSITIVE_INFINITY : clock.monotonicMs() + options.waitMs
  for (let lookMs = lookMsMin; ; lookMs = Math.min(lookMs * 1.5, lookMsMax)) {
    options.signal?.throwIfAborted()
    const found = await look()
    if (found !== undefined) return found
    const leftMs = endAtMs - clock.monotonicMs()
    if (leftMs <= 0) throw late()
    await pause(clock, Math.min(lookMs, leftMs), options.signal)
  }
}

/** Resolves with the number of dead letters once the queue is drained, from synced state only. */
export async function drained(
  connection: Connection,
  queue: string,
  given: DrainOptions = {},
): Promise<{ dead: number }> {
  checkWait('drained', given)
  const scheduled = checkChoice('scheduled', given.scheduled ?? 'wait', ['wait', 'ignore'])
  const still = new Stillness(connection, queue, scheduled)
  let last: TypeFigures[] = []
  const read = async (durable: boolean) => {
    const figures = await connection.engine().measure([queue], durable)
    last = figures.types.filter((row) => row.queue === queue)
    return figures
  }
  const look = async () => {
    const figures = await read(false)
    if (openOf(last, scheduled) > 0) {
      still.see(figures, last)
      return undefined
    }
    // Seen empty; answered only from what a power cut cannot take back.
    await read(true)
    return openOf(last, scheduled) === 0 ? { dead: sum(last, 'dead') } : undefined
  }
  return waitFor(connection, given, look, () => {
    const message = `Queue "${queue}" was not drained within ${given.waitMs} ms: ${openTexts(last).join('; ')}.`
    return new PieceworkError('PW_DRAIN_TIMEOUT', message, { queue, types: openTypes(last) })
  })
}

/** Throws PW_OPTION_INVALID for what cannot be waited by. */
export function checkWait(call: 'drained' | 'done' | 'enqueueAndWait', given: WaitOptions): void {
  checkOptions(call, given)
  if (given.waitMs !== undefined) checkWhole('waitMs', given.waitMs, 0, Number.MAX_SAFE_INTEGER)
  if (given.signal !== undefined && !(given.signal instanceof AbortSignal)) {
    throw new PieceworkError('PW_OPTION_INVALID', `signal is ${shown(given.signal)}; it must be an AbortSignal.`)
  }
}

/** Notices that a queue has stood still: open tasks, nothing leased or due later, and no delivery for 30 s. */
class Stillness {
  readonly #connection: Connection
  readonly #queue: string
  readonly #scheduled: 'wait' | 'ignore'
  #deliveries = -1
  #sinceMs = 0

  constructor(connection: Connection, queue: string, scheduled: 'wait' | 'ignore') {
    this.#connection = connection
    this.#queue = queue
    this.#scheduled = scheduled
  }

  /** Throws PW_DRAIN_STUCK. */
  see(figures: Figures, types: readonly TypeFigures[]): void {
    const nowMs = this.#connection.ports.clock.monotonicMs()
    const deliveries = sum(types, 'deliveries')
    // Tasks due later are a way on only for a drain that waits for them.
    const moving = sum(types, 'leased') + (this.#scheduled === 'wait' ? sum(types, 'scheduled') : 0) > 0
    if (moving || deliveries !== this.#deliveries) {
      this.#deliveries = deliveries
      this.#sinceMs = nowMs
      return
    }
    if (nowMs - this.#sinceMs < stuckMs) return
    const workers = figures.workers.filter((worker) => worker.queues.includes(this.#queue)).length
    const list = openTypes(types).map((row) => ({ ...row, because: because(row) }))
    const texts = list.map((row) => `${row.ready + row.waiting} of type "${row.type}" (${row.because})`)
    throw new PieceworkError(
      'PW_DRAIN_STUCK',
      `Queue "${this.#queue}" stands still for ${stuckMs / 1000} s with open tasks: ${texts.join(', ')}.`,
      { queue: this.#queue, workers, types: list },
    )
  }
}

type OpenType = Pick<TypeFigures, 'type' | 'paused' | 'scheduled' | 'waiting' | 'ready' | 'leased'>

const because = (row: OpenType) =>
  row.paused ? 'paused' : row.ready > 0 ? 'no worker for its type' : 'held behind the first of its key'

const openTypes = (types: readonly TypeFigures[]): OpenType[] =>
  types
    .filter((row) => openOf([row], 'wait') > 0)
    .map(({ type, paused, scheduled, waiting, ready, leased }) => ({ type, paused, scheduled, waiting, ready, leased }))

const openTexts = (types: readonly TypeFigures[]) =>
  openTypes(types).map((row) => {
    const counts = (['scheduled', 'waiting', 'ready', 'leased'] as const).filter((state) => row[state] > 0)
    return `type "${row.type}" has ${counts.map((state) => `${row[state]} ${state}`).join(', ')}`
  })
