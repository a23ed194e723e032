// Reads lists of tasks, histories, queues, batches, workers, tokens and audit rows, a page at a time, in one snapshot.
import type { Filter, Kind, Page } from '../../engine/contract.js'
import type { ProofRecord } from '../../task/records.js'
import { type BatchWhole, batchRecord, noListOf, type QueueRow, queueRecord } from '../named.js'
import { code, parseId } from '../receipt.js'
import { routeRecords } from '../routes.js'
import {
  type AuditRow,
  auditRecord,
  type HistoryRow,
  historyRecord,
  isNamed,
  isOf,
  paged,
  pageOf,
  proofOf,
  type RedeliveredRow,
  type ResultRow,
  redeliveredRecord,
  resultRecord,
  type Shown,
  type TaskRow,
  taskRecord,
  type WorkerRow,
  whole,
  workerRecord,
} from '../shown.js'
import { tokens } from './configure.js'
import { limits } from './limits.js'
import { schedules } from './schedules.js'
import type { Session } from './session.js'

export function select(s: Session, kind: Kind, filter: Filter, cursor: string | null): Page {
  switch (kind) {
    case 'task':
      return tasks(s, filter, cursor)
    case 'result':
      return results(s, filter)
    case 'history':
      return histories(s, filter)
    case 'queue':
      return whole((s.q.queues.all() as QueueRow[]).filter(isNamed(filter)).map((row) => queueRecord(row, s.wallShift)))
    case 'batch':
      return batches(s, filter, cursor)
    case 'worker':
      return whole(
        (s.q.workers.all() as WorkerRow[]).filter(isNamed(filter)).map((row) => workerRecord(row, s.wallShift)),
      )
    case 'limit':
      return whole(limits(s).filter(isNamed(filter)))
    case 'token':
      return whole(tokens(s).filter(isNamed(filter)))
    case 'route':
      return whole(routeRecords(s.catalog, filter))
    case 'schedule':
      return whole(schedules(s).filter(isOf(filter)))
    case 'proof':
      return whole(proof(s))
    case 'redelivered':
      return redelivered(s, filter, cursor)
    case 'audit':
      return audits(s, filter, cursor)
    default:
      throw noListOf(kind)
  }
}

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

function tasks(s: Session, filter: Filter, cursor: string | null): Page {
  const found = whereOf(s, filter)
  if (!found) return whole([])
  const { after, limit } = pageOf(filter, cursor)
  const rows = s.db
    .prepare(
      `select task.*, dead.reason, dead.code, dead.error, dead.fingerprint, dead.deadAt, worker.name as workerName
       from ${fromTasks(filter)} left join piecework_worker worker on worker.id = task.worker
       where ${found.where} and task.id > ? order by task.id limit ?`,
    )
    .all(...found.params, after, limit + 1) as TaskRow[]
  return paged(rows, limit, (row) =>
    taskRecord(row, s.wallShift, {
      queue: s.catalog.queueById(row.queue as number).name,
      type: s.catalog.typeById(row.type as number)?.name ?? '',
      batch: s.catalog.batchName(row.batch as number | null),
      worker: row.workerName as string | null,
    }),
  )
}

function histories(s: Session, filter: Filter): Page {
  const ids = JSON.stringify((filter.ids ?? []).map(parseId))
  const rows = s.db
    .prepare(
      'select * from piecework_history where task in (select value from json_each(?)) order by task, endedAt, number',
    )
    .all(ids) as HistoryRow[]
  return whole(rows.map((row) => historyRecord(row, s.wallShift)))
}

function batches(s: Session, filter: Filter, cursor: string | null): Page {
  const { after, limit } = pageOf(filter, cursor)
  const rows = s.db
    .prepare('select * from piecework_batch where id > ? and (? is null or name = ?) order by id limit ?')
    .all(after, filter.name ?? null, filter.name ?? null, limit + 1) as BatchWhole[]
  return paged(rows, limit, (row) => batchRecord(row, s.wallShift))
}

function results(s: Session, filter: Filter): Page {
  const rows = s.db
    .prepare(
      `select result.*, queue.name as queue, type.name as type from piecework_result result
       join piecework_type type on type.id = result.type join piecework_queue queue on queue.id = type.queue
       where result.task in (select value from json_each(?)) and endsAt > ? order by task`,
    )
    .all(JSON.stringify((filter.ids ?? []).map(parseId)), s.now) as ResultRow[]
  return whole(rows.map((row) => resultRecord(row, s.wallShift)))
}

function redelivered(s: Session, filter: Filter, cursor: string | null): Page {
  const { after, limit } = pageOf(filter, cursor)
  const text = `select redelivered.*, queue.name as queue, type.name as type from piecework_redelivered redelivered
    join piecework_type type on type.id = redelivered.type join piecework_queue queue on queue.id = type.queue
    where redelivered.id > ? and ackedAt >= ? order by redelivered.id limit ?`
  const rows = s.db.prepare(text).all(after, (filter.sinceAt ?? 0) - s.wallShift, limit + 1) as RedeliveredRow[]
  return paged(rows, limit, (row) => redeliveredRecord(row, s.wallShift))
}

function audits(s: Session, filter: Filter, cursor: string | null): Page {
  const { after, limit } = pageOf(filter, cursor)
  const rows = s.db
    .prepare('select * from piecework_audit where id > ? and at >= ? order by id limit ?')
    .all(after, filter.sinceAt ?? 0, limit + 1) as AuditRow[]
  return paged(rows, limit, auditRecord)
}

/** Slow on purpose: it reads every task. */
function proof(s: Session): ProofRecord[] {
  const types = s.db.prepare(
    `select type.*, queue.name || '/' || type.name as name
     from piecework_type type join piecework_queue queue on queue.id = type.queue order by type.queue, type.name`,
  )
  const batches = s.db.prepare('select * from piecework_batch order by name')
  const counts = s.db.prepare(
    `select 't' || type || ' ' || state as "of", count(*) as n from piecework_task group by 1 union all
     select 'b' || batch || iif(state = 5, ' dead', ' open'), count(*)
     from piecework_task where batch is not null group by 1`,
  )
  return proofOf(types.all() as Shown[], batches.all() as Shown[], counts.all() as { of: string; n: number }[])
}
