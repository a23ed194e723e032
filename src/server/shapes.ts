// Tasks, dead letters and batches as HTTP shows them: instants as ISO 8601 text, payloads as they were stored.
import * as v from 'valibot'
import { PieceworkError } from '../ground/errors.js'
import { deadLetterFrom, taskFrom } from '../queue/tasks.js'
import { type State, states } from '../task/lifecycle.js'
import { isoInstant, shown } from '../task/limits.js'
import type { BatchRecord, ResultRecord, TaskRecord } from '../task/records.js'
import type { Caller } from './auth.js'
import { s } from './check.js'
import { isJson, withRaw } from './raw.js'

const mayBeText = v.nullable(s.text)
const payloads = {
  /** Left out, like headers and progress, for who may not read payloads. */
  payload: v.optional(v.unknown()),
  headers: v.optional(v.record(s.text, s.text)),
}

export const taskShape = v.strictObject({
  ...{ id: s.text, queue: s.text, type: s.text, state: v.picklist(states), key: mayBeText, batch: mayBeText },
  ...{ priority: v.number(), dedupKey: mayBeText, enqueuedAt: s.text, dueAt: s.instant, deadlineAt: s.instant },
  ...{ number: v.number(), spent: v.number(), releases: v.number(), deaths: v.number(), fence: v.number() },
  ...{ worker: mayBeText, leaseEndsAt: s.instant, cancelAsked: v.boolean(), progress: v.optional(v.unknown()) },
  ...payloads,
})

export const deadShape = v.strictObject({
  ...{ id: s.text, queue: s.text, type: s.text, key: mayBeText, batch: mayBeText, deliveries: v.number() },
  ...{ reason: mayBeText, code: mayBeText, error: mayBeText, fingerprint: mayBeText, enqueuedAt: s.text },
  ...{ deadAt: s.instant, history: v.optional(v.array(v.record(s.text, v.unknown()))) },
  ...payloads,
})

export const batchShape = v.strictObject({
  ...{ batch: s.text, sealed: v.boolean(), total: v.number(), done: v.number(), dead: v.number() },
  ...{ cancelled: v.number(), retries: v.number(), returned: v.number(), createdAt: s.text, finishedAt: s.instant },
  followUp: v.nullable(v.strictObject({ queue: s.text, type: s.text, id: mayBeText })),
})

export const doneShape = v.strictObject({ id: s.text, state: v.literal('done'), result: v.optional(v.unknown()) })

/** A task that is done; what its handler returned is for those who may read payloads. */
export function doneText({ id, result }: ResultRecord, who: Caller): string {
  const open = { id, state: 'done' }
  return result && who.may('read-payload') ? withRaw(open, 'result', result) : JSON.stringify(open)
}

/** A page of a list. */
export const pageOf = <T extends v.GenericSchema>(item: T) =>
  v.strictObject({ items: v.array(item), next: v.nullable(s.text) })

export const pageQuery = { limit: v.optional(s.queryWhole(1, 1000)), cursor: v.optional(s.text) }

/** The fields by which a body picks tasks. */
export const filterBody = {
  ids: v.optional(v.array(s.text)),
  type: v.optional(s.name),
  key: v.optional(s.name),
  batch: v.optional(s.name),
  all: v.optional(v.literal(true)),
}
export const stateBody = v.optional(v.union([v.picklist(states), v.array(v.picklist(states))]))

/** What a body says of an instant; throws PW_OPTION_INVALID for text that is none. */
export function instantOf(dueAt: string | number | undefined): Date | number | undefined {
  if (typeof dueAt !== 'string') return dueAt
  const at = isoInstant(dueAt)
  if (at !== null) return new Date(at)
  const text = `dueAt is ${shown(dueAt)}; it must be an instant such as 2030-01-31T08:00:00Z.`
  throw new PieceworkError('PW_OPTION_INVALID', text, { field: 'dueAt' })
}

/** One task as JSON text. */
export function taskText(row: TaskRecord, who: Caller): string {
  const { payload: _, headers, progress, ...rest } = taskFrom(row)
  return guardedText(rest, { headers, progress }, row.payload, who)
}

export function deadText(row: TaskRecord, who: Caller, more: object = {}): string {
  const { payload: _, headers, ...rest } = deadLetterFrom(row)
  return guardedText({ ...rest, ...more }, { headers }, row.payload, who)
}

/** JSON of what everybody may see, and of what needs read-payload. */
export function guardedText(open: object, guarded: object, payload: string, who: Caller): string {
  if (!who.may('read-payload')) return JSON.stringify(open)
  return withRaw({ ...open, ...guarded }, 'payload', isJson(payload) ? payload : JSON.stringify(payload))
}

/** A page of texts that are JSON already. */
export const pageText = (items: readonly string[], next: string | null): string =>
  `{"items":[${items.join(',')}],"next":${JSON.stringify(next)}}`

export const stateOf = (query: Readonly<Record<string, unknown>>): State[] | undefined =>
  query.state === undefined ? undefined : [query.state as State]

export function batchOf({ name, createdAt, finishedAt, info: _, ...counts }: BatchRecord) {
  return { batch: name, ...counts, createdAt: isoOf(createdAt), finishedAt: isoOf(finishedAt) }
}

export const isoOf = (at: number | null): string | null => (at === null ? null : new Date(at).toISOString())
