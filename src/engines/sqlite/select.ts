// Reads lists of tasks, histories, queues, batches, workers and audit rows, a page at a time, in one snapshot.
import type { Filter, Kind, Page } from '../../engine/contract.js'
import { PieceworkError } from '../../ground/errors.js'
import { type State, states } from '../../task/lifecycle.js'
import type { AuditRecord, HistoryRecord, TaskRecord } from '../../task/records.js'
import { type BatchWhole, batchRecord, type QueueRow, queueRecord } from '../named.js'
import { cancelAsked, parseId } from '../receipt.js'
import { proof } from './proof.js'
import type { Session } from './session.js'
import { code } from './statements.js'
import type { WorkerRow } from './workers.js'

const pageDefault = 50
const pageMax = 1000

export function select(s: Session, kind: Kind, filter: Filter, cursor: string | null): Page {
  const limit = Math.min(filter.limit ?? pageDefault, pageMax)
  switch (kind) {
    case 'task':
      return tasks(s, filter, cursor, limit)
    case 'history':
      return histories(s, filter)
    case 'queue':
      return whole((s.q.queues.all() as QueueRow[]).filter(named(filter)).map((row) => queueRecord(row, s.wallShift)))
    case 'batch':
      return batches(s, filter, cursor, limit)
    case 'worker':
      return whole(
        (s.q.workers.all() as WorkerRow[]).filter(named(filter)).map((row) => workerRecord(row, s.wallShift)),
      )
    case 'proof':
      return whole(proof(s))
    case 'audit':
      return audits(s, filter, cursor, limit)
    default:
      throw new PieceworkError('PW_OPTION_INVALID', `This engine keeps no list of ${kind}.`, { kind })
  }
}

const whole = (items: object[]): Page => ({ items: items as Page['items'], next: null })
const named = (filter: Filter) => (row: { name: string }) => filter.name === undefined || row.name === filter.name

/** The `where` of a filter over tasks, with its parameters; null when nothing can match. */
export function whereOf(s: Session, filter: Filter): { where: string; params: unknown[] } | null {
  const parts: string[] = []
  const params: unknown[] = []
  const add = (part: string, ...values: unknown[]) => {
    parts.push(part)
    params.push(...values)
  }
  if (filter.ids) add('task.id in (select value from json_each(?))', JSON.stringify(filter.ids.map(parseId)))
  if (filter.queue !== undefined) {
    const queue = s.catalog.queue(filter.queue)
    if (!queue) return null
    if (filter.type !== undefined) {
      const type = s.catalog.type(queue.id, filter.type)
      if (!type) return null
      add('task.type = ?', type.id)
    } else add('task.queue = ?', queue.id)
  } else if (filter.type !== undefined) {
    add('task.type in (select id from piecework_type where name = ?)', filter.type)
  }
  if (filter.key !== undefined) add('task.key = ?', filter.key)
  if (filter.batch !== undefined) {
    const batch = s.q.batchByName.get(filter.batch) as { id: number } | undefined
    if (!batch) return null
    add('task.batch = ?', batch.id)
  }
  if (filter.states) add(`task.state in (${filter.states.map((state) => code[state]).join(', ') || 'null'})`)
  if (filter.fingerprint !== undefined) add('dead.fingerprint = ?', filter.fingerprint)
  if (filter.text !== undefined) add('instr(coalesce(dead.error, dead.reason), ?) > 0', filter.text)
  return { where: parts.join(' and ') || 'true', params }
}

/** Tasks with their dead letter beside them; a filter on the dead alone walks the dead, not the backlog. */
export function fromTasks(filter: Filter): string {
  const deadOnly =
    filter.states?.length === 1 && filter.states[0] === 'dead' && !filter.ids && filter.batch === undefined
  return deadOnly
    ? 'piecework_dead dead cross join piecework_task task on task.id = dead.task'
    : 'piecework_task task left join piecework_dead dead on dead.task = task.id and task.state = 5'
}

interface TaskRow {
  [column: string]: number | string | null
}

function tasks(s: Session, filter: Filter, cursor: string | null, limit: number): Page {
  const found = whereOf(s, filter)
  if (!found) return { items: [], next: null }
  const after = cursor === null ? 0 : (parseId(cursor) ?? 0)
  const rows = s.db
    .prepare(
      `select task.*, dead.reason, dead.code, dead.error, dead.fingerprint, dead.deadAt, worker.name as workerName
       from ${fromTasks(filter)} left join piecework_worker worker on worker.id = task.worker
       where ${found.where} and task.id > ? order by task.id limit ?`,
    )
    .all(...found.params, after, limit + 1) as TaskRow[]
  const items = rows.slice(0, limit).map((row) => taskRecord(s, row))
  return { items: items as unknown as Page['items'], next: rows.length > limit ? (items.at(-1)?.id ?? null) : null }
}

function taskRecord(s: Session, row: TaskRow): TaskRecord {
  const state = states[(row.state as number) - 1] as State
  const wall = (column: string) => (row[column] == null ? null : (row[column] as number) + s.wallShift)
  return {
    id: String(row.id),
    queue: s.catalog.queueById(row.queue as number).name,
    type: s.catalog.typeById(row.type as number)?.name ?? '',
    state,
    key: row.key as string | null,
    batch: s.catalog.batchName(row.batch as number | null),
    priority: row.priority as number,
    dedupKey: row.dedupKey as string | null,
    enqueuedAt: wall('enqueuedAt') ?? 0,
    dueAt: (row.wallAt as number | null) ?? wall('dueAt'),
    deadlineAt: wall('deadlineAt'),
    place: (row.place as number) + s.wallShift,
    number: row.number as number,
    spent: row.spent as number,
    releases: row.releases as number,
    deaths: row.deaths as number,
    fence: row.fence as number,
    worker: state === 'leased' ? (row.workerName as string | null) : null,
    leaseEndsAt: state === 'leased' ? wall('wakeAt') : null,
    cancelAsked: ((row.flags as number) & cancelAsked) !== 0,
    progress: row.progress as string | null,
    headers: row.headers as string | null,
    payload: row.payload as string,
    reason: row.reason as string | null,
    code: row.code as string | null,
    error: row.error as string | null,
    fingerprint: row.fingerprint as string | null,
    deadAt: wall('deadAt'),
  }
}

function histories(s: Session, filter: Filter): Page {
  const ids = JSON.stringify((filter.ids ?? []).map(parseId))
  const rows = s.db
    .prepare(
      'select * from piecework_history where task in (select value from json_each(?)) order by task, endedAt, number',
    )
    .all(ids) as (Omit<HistoryRecord, 'task'> & { task: number })[]
  return whole(
    rows.map((row) => ({
      ...row,
      task: String(row.task),
      startedAt: row.startedAt === null ? null : row.startedAt + s.wallShift,
      endedAt: row.endedAt + s.wallShift,
    })),
  )
}

function batches(s: Session, filter: Filter, cursor: string | null, limit: number): Page {
  if (filter.name !== undefined) {
    const row = s.q.batchWhole.get(filter.name) as BatchWhole | undefined
    return whole(row ? [batchRecord(row, s.wallShift)] : [])
  }
  const after = cursor === null ? 0 : (parseId(cursor) ?? 0)
  const rows = s.db.prepare('select * from piecework_batch where id > ? order by id limit ?').all(after, limit + 1)
  const page = (rows as BatchWhole[]).slice(0, limit)
  return {
    items: page.map((row) => ({ ...batchRecord(row, s.wallShift) })),
    next: rows.length > limit ? String(page.at(-1)?.id) : null,
  }
}

export function workerRecord(row: WorkerRow, wallShift: number) {
  const { id: _, name, queues, aliveAt, ...rest } = row
  return { worker: name, ...rest, queues: JSON.parse(queues) as string[], aliveAt: aliveAt + wallShift }
}

function audits(s: Session, filter: Filter, cursor: string | null, limit: number): Page {
  const after = cursor === null ? 0 : (parseId(cursor) ?? 0)
  const rows = s.db
    .prepare('select * from piecework_audit where id > ? and at >= ? order by id limit ?')
    .all(after, filter.sinceAt ?? 0, limit + 1) as (Omit<AuditRecord, 'details'> & { id: number; details: string })[]
  const page = rows.slice(0, limit)
  const items = page.map(({ id: _, details, ...row }) => ({ ...row, details: JSON.parse(details) }))
  return { items, next: rows.length > limit ? String(page.at(-1)?.id) : null }
}
