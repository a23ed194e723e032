// Lists on PostgreSQL: tasks, histories, queues, batches, workers, tokens, audit rows; by the page, in one snapshot.
import type { Filter, Kind, Page } from '../../engine/contract.js'
import { type BatchWhole, noListOf, type QueueRow, queueRecord } from '../named.js'
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
  type RedeliveredRow,
  type ResultRow,
  redeliveredRecord,
  resultRecord,
  type TaskRow,
  taskRecord,
  type WorkerRow,
  whole,
  workerRecord,
} from '../shown.js'
import { batchOf, tokens } from './configure.js'
import { limits } from './limits.js'
import { proof } from './measure.js'
import { schedules } from './schedules.js'
import { asWas, clean, type Session } from './session.js'
import { heldText } from './statements.js'

export async function select(s: Session, kind: Kind, filter: Filter, cursor: string | null): Promise<Page> {
  switch (kind) {
    case 'task':
      return tasks(s, filter, cursor)
    case 'result':
      return results(s, filter)
    case 'history':
      return histories(s, filter)
    case 'queue':
      return whole((await s.run<QueueRow>(s.q.queues)).filter(isNamed(filter)).map((row) => queueRecord(row, 0)))
    case 'batch': {
      const { after, limit } = pageOf(filter, cursor)
      return paged(await s.run<BatchWhole>(s.q.batches, [filter.name ?? null, after, limit + 1]), limit, batchOf)
    }
    case 'worker':
      return whole((await s.run<WorkerRow>(s.q.workers)).filter(isNamed(filter)).map((row) => workerRecord(row, 0)))
    case 'route':
      return whole(routeRecords(s.catalog, filter))
    case 'schedule':
      return whole((await schedules(s)).filter(isOf(filter)))
    case 'limit':
      return whole((await limits(s)).filter(isNamed(filter)))
    case 'token':
      return whole((await tokens(s)).filter(isNamed(filter)))
    case 'proof':
      return whole(await proof(s))
    case 'redelivered':
      return redelivered(s, filter, cursor)
    case 'audit':
      return audits(s, filter, cursor)
    default:
      throw noListOf(kind)
  }
}

interface Where {
  schema: string
  /** The columns of a HeldRow. */
  columns: string
  where: string
  params: unknown[]
}

/** The `where` of a filter over tasks, with its parameters; null when nothing can match. */
export async function whereOf(s: Session, filter: Filter): Promise<Where | null> {
  const parts: string[] = []
  const params: unknown[] = []
  const add = (part: (n: string) => string, value: unknown) => {
    params.push(value)
    parts.push(part(`$${params.length}`))
  }
  if (filter.ids) add((n) => `task.id = any(${n}::bigint[])`, filter.ids.map(parseId))
  if (filter.queue !== undefined) {
    const queue = s.catalog.queue(filter.queue)
    const type = queue && filter.type !== undefined ? s.catalog.type(queue.id, filter.type) : undefined
    if (!queue || (filter.type !== undefined && !type)) return null
    if (type) add((n) => `task.type = ${n}`, type.id)
    else add((n) => `task.queue = ${n}`, queue.id)
  } else if (filter.type !== undefined) {
    add((n) => `task.type in (select id from ${s.schema}.type where name = ${n})`, filter.type)
  }
  if (filter.key !== undefined) add((n) => `task.key = ${n}`, filter.key)
  if (filter.batch !== undefined) {
    const [batch] = await s.run<{ id: number }>(s.q.batchesByName, [[filter.batch]])
    if (!batch) return null
    add((n) => `task.batch = ${n}`, batch.id)
  }
  if (filter.states) parts.push(`task.state in (${filter.states.map((state) => code[state]).join(', ') || 'null'})`)
  if (filter.fingerprint !== undefined) add((n) => `dead.fingerprint = ${n}`, filter.fingerprint)
  if (filter.text !== undefined) add((n) => `strpos(coalesce(dead.error, dead.reason), ${n}) > 0`, clean(filter.text))
  return { schema: s.schema, columns: heldText, where: parts.join(' and ') || 'true', params }
}

/** Tasks with their dead letter beside them; a filter on the dead alone walks the dead, not the backlog. */
export function fromTasks(filter: Filter, schema: string): string {
  const deadOnly =
    filter.states?.length === 1 && filter.states[0] === 'dead' && !filter.ids && filter.batch === undefined
  return deadOnly
    ? `${schema}.dead dead join ${schema}.task task on task.id = dead.task`
    : `${schema}.task task left join ${schema}.dead dead on dead.task = task.id and task.state = 5`
}

async function tasks(s: Session, filter: Filter, cursor: string | null): Promise<Page> {
  const found = await whereOf(s, filter)
  if (!found) return whole([])
  const { schema, columns, where, params } = found
  const { after, limit } = pageOf(filter, cursor)
  const n = params.length
  const text = `select ${columns}, task.enqueuedAt as "enqueuedAt", task.headers, task.payload,
      dead.reason, dead.code, dead.error, dead.fingerprint, dead.deadAt as "deadAt", worker.name as "workerName",
      type.name as "typeName", queue.name as "queueName", batch.name as "batchName"
    from ${fromTasks(filter, schema)} join ${schema}.type type on type.id = task.type
    join ${schema}.queue queue on queue.id = task.queue left join ${schema}.batch batch on batch.id = task.batch
    left join ${schema}.worker worker on worker.id = task.worker
    where ${where} and task.id > $${n + 1} order by task.id limit $${n + 2}`
  type Row = TaskRow & Named
  const rows = await s.run<Row>({ name: '', text }, [...params, after, limit + 1])
  return paged(rows, limit, (row) => {
    for (const column of texts) row[column] = asWas(row[column] as string | null)
    const { queueName: queue, typeName: type, batchName: batch, workerName: worker } = row
    return taskRecord(row, 0, { queue, type, batch, worker })
  })
}

interface Named {
  queueName: string
  typeName: string
  batchName: string | null
  workerName: string | null
}
const texts = ['progress', 'headers', 'payload', 'code', 'error']

async function histories(s: Session, filter: Filter): Promise<Page> {
  const text = `select task, number, fence, outcome, code, error, worker, startedAt as "startedAt", endedAt as "endedAt"
    from ${s.schema}.history where task = any($1::bigint[]) order by task, endedAt, number`
  const rows = await s.run<HistoryRow>({ name: '', text }, [(filter.ids ?? []).map(parseId)])
  return whole(rows.map((row) => historyRecord({ ...row, code: asWas(row.code), error: asWas(row.error) }, 0)))
}

async function results(s: Session, filter: Filter): Promise<Page> {
  const text = `select task, queue.name as queue, type.name as type, outcome, result, endedAt as "endedAt"
    from ${s.schema}.result result join ${s.schema}.type type on type.id = result.type
    join ${s.schema}.queue queue on queue.id = type.queue
    where task = any($1::bigint[]) and endsAt > $2 order by task`
  const rows = await s.run<ResultRow>({ name: '', text }, [(filter.ids ?? []).map(parseId), s.now])
  return whole(rows.map((row) => resultRecord({ ...row, result: asWas(row.result) }, 0)))
}

async function redelivered(s: Session, filter: Filter, cursor: string | null): Promise<Page> {
  const { after, limit } = pageOf(filter, cursor)
  const text = `select redelivered.id, task, queue.name as queue, type.name as type, key,
      redelivered.deliveries, workers, redelivered.enqueuedAt as "enqueuedAt", startedAt as "startedAt",
      ackedAt as "ackedAt" from ${s.schema}.redelivered redelivered
    join ${s.schema}.type type on type.id = redelivered.type
    join ${s.schema}.queue queue on queue.id = type.queue
    where redelivered.id > $1 and ackedAt >= $2 order by redelivered.id limit $3`
  const rows = await s.run<RedeliveredRow>({ name: '', text }, [after, Math.round(filter.sinceAt ?? 0), limit + 1])
  return paged(rows, limit, (row) => redeliveredRecord(row, 0))
}

async function audits(s: Session, filter: Filter, cursor: string | null): Promise<Page> {
  const { after, limit } = pageOf(filter, cursor)
  const text = `select * from ${s.schema}.audit where id > $1 and at >= $2 order by id limit $3`
  const rows = await s.run<AuditRow>({ name: '', text }, [after, filter.sinceAt ?? 0, limit + 1])
  return paged(rows, limit, (row) => auditRecord({ ...row, actor: asWas(row.actor), subject: asWas(row.subject) }))
}
