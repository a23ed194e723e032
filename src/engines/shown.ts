// Rows as readers see them: instants on the wall clock, names for numbers, a page at a time.
import type { Filter, Page } from '../engine/contract.js'
import { PieceworkError } from '../ground/errors.js'
import { states } from '../task/lifecycle.js'
import { shown } from '../task/limits.js'
import type {
  AuditRecord,
  HistoryRecord,
  ProofRecord,
  RedeliveredRecord,
  ResultRecord,
  TaskRecord,
} from '../task/records.js'
import { followUpOf } from './followup.js'
import { cancelAsked, code, parseId, stateOf } from './receipt.js'

const pageDefault = 50
const pageMax = 1000

/** Where a page starts and how long it may be. */
export function pageOf(filter: Filter, cursor: string | null): { after: number; limit: number } {
  const after = cursor === null ? 0 : parseId(cursor)
  // The first page again would be read for ever.
  if (after === null) throw new PieceworkError('PW_OPTION_INVALID', `There is no page after ${shown(cursor)}.`)
  return { after, limit: Math.min(filter.limit ?? pageDefault, pageMax) }
}

/** All there is. */
export const whole = (items: object[]): Page => ({ items: items as Page['items'], next: null })

/** A page of rows, one more of which was asked for than fit. */
export function paged<Row extends { id: number }>(rows: Row[], limit: number, show: (row: Row) => object): Page {
  const those = rows.slice(0, limit)
  return { ...whole(those.map(show)), next: rows.length > limit ? String(those.at(-1)?.id) : null }
}

export const isNamed = (filter: Filter) => (row: { name: string }) =>
  filter.name === undefined || row.name === filter.name

/** Rows of a queue that have a name of their own in it. */
export const isOf = (filter: Filter) => (row: { queue: string; name: string }) =>
  isNamed(filter)(row) && (filter.queue === undefined || row.queue === filter.queue)

/** A task's columns, and with them those of its dead letter. */
export type TaskRow = { id: number } & Record<string, number | string | null>
const asStored = [
  ...['key', 'priority', 'dedupKey', 'number', 'spent', 'releases', 'deaths', 'fence', 'progress', 'headers'],
  ...['payload', 'reason', 'code', 'error', 'fingerprint'],
]

export function taskRecord(
  row: TaskRow,
  wallShift: number,
  names: { queue: string; type: string; batch: string | null; worker: string | null },
): TaskRecord {
  const state = stateOf(row as unknown as { state: number })
  const wall = (column: string) => (row[column] == null ? null : (row[column] as number) + wallShift)
  const leased = state === 'leased'
  return {
    ...Object.fromEntries(asStored.map((column) => [column, row[column] ?? null])),
    ...{ id: String(row.id), state, queue: names.queue, type: names.type, batch: names.batch },
    ...{ enqueuedAt: wall('enqueuedAt'), dueAt: row.wallAt ?? wall('dueAt'), deadlineAt: wall('deadlineAt') },
    ...{ place: wall('place'), deadAt: wall('deadAt'), leaseEndsAt: leased ? wall('wakeAt') : null },
    worker: leased ? names.worker : null,
    cancelAsked: ((row.flags as number) & cancelAsked) !== 0,
  } as TaskRecord
}

export type HistoryRow = Omit<HistoryRecord, 'task'> & { task: number }

export const historyRecord = (row: HistoryRow, wallShift: number): HistoryRecord => ({
  ...row,
  task: String(row.task),
  startedAt: row.startedAt === null ? null : row.startedAt + wallShift,
  endedAt: row.endedAt + wallShift,
})

export type ResultRow = Omit<ResultRecord, 'id'> & { task: number }

export const resultRecord = ({ task, queue, type, outcome, result, endedAt }: ResultRow, wallShift: number) =>
  ({ id: String(task), queue, type, outcome, result, endedAt: endedAt + wallShift }) satisfies ResultRecord

export type RedeliveredRow = Omit<RedeliveredRecord, 'id' | 'workers'> & { id: number; task: number; workers: string }

export const redeliveredRecord = (row: RedeliveredRow, wallShift: number): RedeliveredRecord => {
  const { task, workers, startedAt, ...rest } = row
  const instants = { enqueuedAt: row.enqueuedAt + wallShift, ackedAt: row.ackedAt + wallShift }
  const started = startedAt === null ? null : startedAt + wallShift
  return { ...rest, id: String(task), workers: JSON.parse(workers) as string[], ...instants, startedAt: started }
}

export type AuditRow = Omit<AuditRecord, 'details'> & { id: number; details: string }

export const auditRecord = ({ id: _, details, ...row }: AuditRow): AuditRecord => ({
  ...row,
  details: JSON.parse(details) as Record<string, unknown>,
})

export interface WorkerRow {
  id: number
  name: string
  host: string
  pid: number
  bootId: string
  proof: string | null
  queues: string
  concurrency: number
  busy: number
  prefetched: number
  aliveAt: number
}

export function workerRecord(row: WorkerRow, wallShift: number) {
  const { id: _, name, queues, aliveAt, ...rest } = row
  return { worker: name, ...rest, queues: JSON.parse(queues) as string[], aliveAt: aliveAt + wallShift }
}

/** A type or a batch with its figures. */
export type Shown = { id: number; name: string } & Record<string, unknown>

/** P12: the figures of types and batches beside `counted`: how many tasks there are `t<type> <state>`, `b<batch> …`. */
export function proofOf(types: readonly Shown[], batches: readonly Shown[], counted: { of: string; n: number }[]) {
  const count = new Map(counted.map(({ of, n }) => [of, n]))
  for (const { finishedAt, followUp } of batches) {
    const place = finishedAt === null ? followUpOf(followUp as string | null)?.place : null
    if (place != null) count.set(`b${place} open`, (count.get(`b${place} open`) ?? 0) + 1)
  }
  const ofTypes = types.map((row): ProofRecord => {
    const shown = Object.fromEntries(states.map((state) => [state, row[state] as number]))
    const full = Object.fromEntries(states.map((state) => [state, count.get(`t${row.id} ${code[state]}`) ?? 0]))
    return { kind: 'type', name: row.name, shown, counted: full }
  })
  const ofBatches = batches.map((row): ProofRecord => {
    const [total, done, dead, cancelled] = ['total', 'done', 'dead', 'cancelled'].map((column) => Number(row[column]))
    const open = (total ?? 0) - (done ?? 0) - (dead ?? 0) - (cancelled ?? 0)
    const full = { open: count.get(`b${row.id} open`) ?? 0, dead: count.get(`b${row.id} dead`) ?? 0 }
    // The dead that became tasks of another queue are rows there, if they are at all.
    const here = (dead ?? 0) - Number(row.forwarded)
    return { kind: 'batch', name: row.name, shown: { open, dead: here }, counted: full }
  })
  return [...ofTypes, ...ofBatches]
}
