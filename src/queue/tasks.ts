// Tasks and dead letters as a program reads them: payloads parsed, instants as Dates, pages with a cursor.
import type { Filter } from '../engine/contract.js'
import { PieceworkError } from '../ground/errors.js'
import { type State, states } from '../task/lifecycle.js'
import { checkName, checkWhole, shown } from '../task/limits.js'
import type { HistoryRecord, TaskRecord } from '../task/records.js'
import { checkChoice } from './options.js'

type Instants = 'enqueuedAt' | 'dueAt' | 'deadlineAt' | 'leaseEndsAt' | 'deadAt'

/** One task as get() and list() answer it; `Payload` is what its queue says that it holds. */
export interface Task<Payload = unknown>
  extends Omit<
    TaskRecord,
    Instants | 'payload' | 'headers' | 'progress' | 'place' | 'reason' | 'code' | 'error' | 'fingerprint'
  > {
  enqueuedAt: Date
  /** When it is or was due; null when it never had to wait for an instant. */
  dueAt: Date | null
  deadlineAt: Date | null
  leaseEndsAt: Date | null
  /** The last value given to delivery.progress(). */
  progress: unknown
  headers: Readonly<Record<string, string>>
  /** The value as enqueued; undefined when the stored text is not JSON any more. */
  payload: Payload | undefined
}

/** One task in the dead letters; `Payload` is what its queue says that it holds. */
export interface DeadLetter<Payload = unknown> {
  id: string
  queue: string
  type: string
  key: string | null
  batch: string | null
  /** Deliveries it had, ever. */
  deliveries: number
  /** Why it died: `spent`, `buried`, `deadline`. */
  reason: string | null
  /** The code of the last error, where it had one. */
  code: string | null
  /** The last error's text. */
  error: string | null
  /** The same for errors that differ only in numbers and names. */
  fingerprint: string | null
  enqueuedAt: Date
  deadAt: Date | null
  headers: Readonly<Record<string, string>>
  /** The value as enqueued or edited; undefined when the stored text is not JSON any more. */
  payload: Payload | undefined
}

/** One ended delivery that did not finish its task. */
export interface PastDelivery extends Omit<HistoryRecord, 'task' | 'startedAt' | 'endedAt'> {
  startedAt: Date | null
  endedAt: Date
}

/** One page of a listing; give `next` back as `cursor` for the page after it, null at the end. */
export interface Listing<T> {
  items: T[]
  next: string | null
}

const dateOrNull = (at: number | null) => (at === null ? null : new Date(at))
const headersOf = (text: string | null) => (parsed(text) ?? {}) as Readonly<Record<string, string>>

function parsed(text: string | null): unknown {
  if (text === null) return null
  try {
    return JSON.parse(text)
  } catch {
    // One damaged row must not hide the others of its page.
    return undefined
  }
}

export function taskFrom(row: TaskRecord): Task {
  const { place: _, reason: _r, code: _c, error: _e, fingerprint: _f, deadAt: _d, ...rest } = row
  return {
    ...rest,
    enqueuedAt: new Date(row.enqueuedAt),
    dueAt: dateOrNull(row.dueAt),
    deadlineAt: dateOrNull(row.deadlineAt),
    leaseEndsAt: dateOrNull(row.leaseEndsAt),
    progress: parsed(row.progress),
    headers: headersOf(row.headers),
    payload: parsed(row.payload),
  }
}

export function deadLetterFrom(row: TaskRecord): DeadLetter {
  const { id, queue, type, key, batch, number, reason, code, error, fingerprint } = row
  return {
    id,
    queue,
    type,
    key,
    batch,
    deliveries: number,
    reason,
    code,
    error,
    fingerprint,
    enqueuedAt: new Date(row.enqueuedAt),
    deadAt: dateOrNull(row.deadAt),
    headers: headersOf(row.headers),
    payload: parsed(row.payload),
  }
}

export function pastDeliveryFrom(row: HistoryRecord): PastDelivery {
  const { task: _, startedAt, endedAt, ...rest } = row
  return { ...rest, startedAt: dateOrNull(startedAt), endedAt: new Date(endedAt) }
}

/** Checks the fields of a filter and binds it to the queue; throws PW_OPTION_INVALID or PW_NAME_INVALID. */
export function filterFor(queue: string, given: Record<string, unknown>): Filter {
  const filter: Filter = { queue }
  for (const field of ['type', 'key', 'batch', 'fingerprint', 'text'] as const) {
    const value = given[field]
    if (value !== undefined) filter[field] = checkName(field, value)
  }
  const { ids, state, limit } = given
  if (ids !== undefined) filter.ids = checkIds(ids)
  if (state !== undefined) filter.states = checkStates(state)
  filter.limit = limit === undefined ? 100 : checkWhole('limit', limit, 1, 1000)
  return filter
}

/** Throws PW_FILTER_MISSING when the filter matches everything and does not say `all: true`. */
export function checkMeant(call: string, given: Record<string, unknown>): void {
  const { all, ...rest } = given
  if (all !== undefined && all !== true && all !== false) {
    throw new PieceworkError('PW_OPTION_INVALID', `all is ${shown(all)}; it must be true.`)
  }
  const named = Object.values(rest).some((value) => value !== undefined)
  if (all === true && named) {
    throw new PieceworkError('PW_OPTION_INVALID', `${call} got all: true and a filter; give one of them.`)
  }
  if (all !== true && !named) {
    throw new PieceworkError('PW_FILTER_MISSING', `${call} got no filter, which would match every task of the queue.`)
  }
}

function checkIds(ids: unknown): string[] {
  if (Array.isArray(ids) && ids.every((id) => typeof id === 'string')) return ids
  throw new PieceworkError('PW_OPTION_INVALID', `ids is ${shown(ids)}; it must be an array of ids.`)
}

function checkStates(given: unknown): State[] {
  const list = Array.isArray(given) ? given : [given]
  return list.map((state) => checkChoice('state', state, states))
}
