// How a task ended and what its handler returned, as it is kept for a while; and the wait for it.
import type { Clock } from '../ground/clock.js'
import { PieceworkError } from '../ground/errors.js'
import type { ResultRecord, TaskRecord } from '../task/records.js'
import type { Acting, Connection } from './connection.js'
import { checkWait, type WaitOptions } from './drained.js'

const lookMsMin = 2
/** A look is two small reads; a person would not notice that it comes this late. */
const lookMsMax = 250

/** The end of a task that is kept; null when it has not ended, or nothing is kept of it any more. */
export async function readEnd(connection: Acting, id: string): Promise<ResultRecord | null> {
  const page = await connection.engine().select('result', { ids: [id] }, null)
  return (page.items[0] as ResultRecord | undefined) ?? null
}

/** What the handler returned; throws PW_RESULT_LOST where JSON could not hold that. */
export function returned({ id, result }: ResultRecord): unknown {
  if (result === null) return undefined
  if (result !== '') return JSON.parse(result) as unknown
  const text = `Task ${id} is done, but what its handler returned was no JSON and could not be kept.`
  throw new PieceworkError('PW_RESULT_LOST', text, { id })
}

/** Waits for the end of a task of this connection's making; answers what its handler returned. */
export async function resultOf(connection: Connection, id: string, options: WaitOptions): Promise<unknown> {
  checkWait('enqueueAndWait', options)
  const { clock } = connection.ports
  const endAtMs = options.waitMs === undefined ? Number.POSITIVE_INFINITY : clock.monotonicMs() + options.waitMs
  for (let lookMs = lookMsMin; ; lookMs = Math.min(lookMs * 1.5, lookMsMax)) {
    options.signal?.throwIfAborted()
    // Asked for before the look: an end between the look and the wait must not be missed.
    const woken = wakeOf(connection, id)
    try {
      const end = await readEnd(connection, id)
      if (end !== null) return await answered(connection, end)
      const [task] = (await connection.engine().select('task', { ids: [id] }, null)).items as unknown as TaskRecord[]
      if (task?.state === 'dead') throw died(id, task)
      // It may have ended between the two looks; else nothing of it is left, and nobody will ever know.
      if (task === undefined && (await readEnd(connection, id)) === null) throw unknownEnd(id)
      const leftMs = endAtMs - clock.monotonicMs()
      if (leftMs <= 0) throw late(id, options.waitMs, task)
      if (task !== undefined) await woken.within(clock, Math.min(lookMs, leftMs), options.signal)
    } finally {
      woken.drop()
    }
  }
}

async function answered(connection: Connection, end: ResultRecord): Promise<unknown> {
  // Everything seen so far is synced by this; only then may the answer leave the house.
  await connection.engine().measure([], true)
  if (end.outcome === 'done') return returned(end)
  if (end.outcome === 'dead') throw died(end.id, JSON.parse(end.result ?? '{}') as Partial<TaskRecord>)
  throw new PieceworkError('PW_CANCELLED', `Task ${end.id} was cancelled before it was done.`, { id: end.id })
}

function died(id: string, { reason, code, error }: Partial<TaskRecord>): PieceworkError {
  const first = (error ?? '').split('\n', 1)[0]
  const text = `Task ${id} is dead (${reason})${first ? `: ${first}` : '.'}`
  return new PieceworkError('PW_TASK_DEAD', text, { id, reason, code, error })
}

const unknownEnd = (id: string) =>
  new PieceworkError('PW_TASK_GONE', `Task ${id} has ended, and nothing is kept of how.`, { id })

function late(id: string, waitMs: number | undefined, task: TaskRecord | undefined): PieceworkError {
  const state = task?.state ?? 'just ending'
  return new PieceworkError('PW_WAIT_TIMEOUT', `Task ${id} was not done within ${waitMs} ms: it is ${state}.`, {
    id,
    state,
  })
}

/** Those who wait, by the id of their task; for each connection on which somebody ever waited. */
const waiting = new WeakMap<Connection, Map<string, Set<() => void>>>()

interface Woken {
  /** Resolves when a worker of this connection has ended the task, after `ms`, or when the signal aborts. */
  within(clock: Clock, ms: number, signal?: AbortSignal): Promise<void>
  drop(): void
}

function wakeOf(connection: Connection, id: string): Woken {
  const waiters = waitersOf(connection)
  const wakes = waiters.get(id) ?? new Set()
  waiters.set(id, wakes)
  let heard = false
  let end = () => {}
  const wake = () => {
    heard = true
    end()
  }
  wakes.add(wake)
  return {
    within: (clock, ms, signal) =>
      new Promise((resolve) => {
        if (heard || signal?.aborted) return resolve()
        end = () => {
          timer.cancel()
          signal?.removeEventListener('abort', end)
          resolve()
        }
        const timer = clock.after(ms, end, true)
        signal?.addEventListener('abort', end, { once: true })
      }),
    drop: () => {
      wakes.delete(wake)
      if (wakes.size === 0) waiters.delete(id)
    },
  }
}

function waitersOf(connection: Connection): Map<string, Set<() => void>> {
  const known = waiting.get(connection)
  if (known) return known
  const waiters = new Map<string, Set<() => void>>()
  waiting.set(connection, waiters)
  connection.hearEnds((id) => {
    for (const wake of waiters.get(id) ?? []) wake()
  })
  return waiters
}
