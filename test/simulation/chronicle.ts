// Has SQLite tell every change of a task's row as it happens, by triggers that live in the engine's own connection.
import type { Database } from 'better-sqlite3'
import { states } from '../../dist/task/lifecycle.js'
import type { BatchRow, Row } from './events.js'

const plain = ['id', 'state', 'place', 'dueAt', 'wakeAt', 'number', 'spent', 'releases', 'deaths', 'fence', 'nonce']
const columns = [
  ...plain,
  ...['key', 'priority', 'dedupKey', 'flags', 'headers', 'type', 'holder', 'worker', 'batch', 'item', 'queue'],
]

const readOf = (row: 'old' | 'new', column: string) => {
  if (column === 'item') return `json_extract(${row}.payload, '$.item')`
  if (column === 'batch') return `(select name from piecework_batch where id = ${row}.batch)`
  if (column === 'queue') return `(select name from piecework_queue where id = ${row}.queue)`
  if (column === 'type') return `(select name from piecework_type where id = ${row}.type)`
  if (column === 'worker') return `(select name from piecework_worker where id = ${row}.worker)`
  return `${row}.${column === 'holder' ? 'worker' : column}`
}
const rowOf = (row: 'old' | 'new') => columns.map((column) => readOf(row, column)).join(', ')
const nothing = columns.map(() => 'null').join(', ')

const figures = ['name', 'sealedAt', 'finishedAt', 'total', 'done', 'dead', 'cancelled']
const batchOf = (row: 'old' | 'new') =>
  [
    ...figures.map((column) => `${row}.${column}`),
    `json_extract(${row}.followUp, '$.task.payload')`,
    `(select name from piecework_batch where id = json_extract(${row}.followUp, '$.place'))`,
    `json_extract(${row}.followUp, '$.id')`,
  ].join(', ')
const batchColumns = [...figures, 'follows', 'place', 'followId']
const noBatch = batchColumns.map(() => 'null').join(', ')

interface Listener {
  task(before: Row | null, after: Row | null): void
  batch(before: BatchRow | null, after: BatchRow): void
}

/** From now on `tell` hears of each change in the moment of it; the transaction may still be undone. */
export function keepChronicle(db: Database, tell: Listener): void {
  db.function('told', { varargs: true }, (...values: unknown[]) => {
    tell.task(readRow(values.slice(0, columns.length)), readRow(values.slice(columns.length)))
    return null
  })
  db.function('toldBatch', { varargs: true }, (...values: unknown[]) => {
    const after = readBatch(values.slice(batchColumns.length)) as BatchRow
    tell.batch(readBatch(values.slice(0, batchColumns.length)), after)
    return null
  })
  db.exec(`
    create temp trigger told_enter after insert on main.piecework_task
      begin select told(${nothing}, ${rowOf('new')}); end;
    create temp trigger told_step after update on main.piecework_task
      begin select told(${rowOf('old')}, ${rowOf('new')}); end;
    create temp trigger told_leave after delete on main.piecework_task
      begin select told(${rowOf('old')}, ${nothing}); end;
    create temp trigger told_batch_enter after insert on main.piecework_batch
      begin select toldBatch(${noBatch}, ${batchOf('new')}); end;
    create temp trigger told_batch_step after update on main.piecework_batch
      begin select toldBatch(${batchOf('old')}, ${batchOf('new')}); end;
  `)
}

function readRow(values: readonly unknown[]): Row | null {
  if (values[0] === null) return null
  const row: Record<string, unknown> = {}
  for (const [i, column] of columns.entries()) row[column] = values[i]
  row.id = String(row.id)
  row.state = states[Number(row.state) - 1]
  const { headers } = row
  delete row.headers
  const slot = headers === null ? undefined : (JSON.parse(String(headers)) as Record<string, string>)['piecework-slot']
  row.cancelAsked = (Number(row.flags) & 1) !== 0
  row.slotAt = slot === undefined ? null : Date.parse(slot)
  return row as unknown as Row
}

function readBatch(values: readonly unknown[]): BatchRow | null {
  if (values[0] === null) return null
  const { sealedAt, follows, ...row } = Object.fromEntries(batchColumns.map((column, i) => [column, values[i]]))
  const item = follows === null ? null : (JSON.parse(String(follows)) as { item: number }).item
  return { ...row, sealed: sealedAt !== null, follows: item } as BatchRow
}
