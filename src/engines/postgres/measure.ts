// The figures of one snapshot, folded sums and deltas together; and the same figures beside a full count.
import type { Figures, TypeFigures } from '../../engine/contract.js'
import type { ProofRecord } from '../../task/records.js'
import { figureColumns } from '../ledger.js'
import { proofOf, type Shown, type WorkerRow, workerRecord } from '../shown.js'
import type { Session } from './session.js'

type FigureRow = Omit<TypeFigures, 'paused'> & { id: number; mixed: number; paused: boolean }

const sumsText = (schema: string) => `
  select type.id, queue.name as queue, type.name as type, type.mixed,
    queue.pausedAt is not null or type.pausedAt is not null as paused,
    ${figureColumns.map((c) => `type.${c} + coalesce(moved.${c}, 0) as ${c}`).join(', ')},
    leases.at as "leasedAt"
  from ${schema}.type type join ${schema}.queue queue on queue.id = type.queue
  left join (select type, ${figureColumns.map((c) => `sum(${c})::bigint as ${c}`).join(', ')}
    from ${schema}.tally group by type) moved on moved.type = type.id
  left join (select type, min(claimedAt) as at from ${schema}.task where state = 4 group by type) leases
    on leases.type = type.id
  order by type.id`

export async function measure(s: Session, queues: readonly string[] | null): Promise<Figures> {
  const types: TypeFigures[] = []
  for (const { id, mixed, leasedAt, ...row } of await sums(s)) {
    if (queues !== null && !queues.includes(row.queue)) continue
    const backlogAgeMs = row.ready === 0 ? null : await backlogAge(s, id, mixed === 1)
    const leaseAgeMaxMs = leasedAt === null ? null : Math.max(0, s.now - leasedAt)
    types.push({ ...row, backlogAgeMs, leaseAgeMaxMs })
  }
  const workers = (await s.run<WorkerRow>(s.q.workers)).map((row) => workerRecord(row, 0))
  return { at: s.now, types, workers }
}

/** A type that never had a task has no figures: it was named for some that never came to be. */
async function sums(s: Session): Promise<(FigureRow & { leasedAt: number | null })[]> {
  const rows = await s.run<FigureRow & { leasedAt: number | null }>({ name: '', text: sumsText(s.schema) })
  return rows.filter((row) => figureColumns.some((name) => row[name] !== 0))
}

/** Age of the oldest due task; where priorities or snoozes mixed the order, the head is not it: all are looked at. */
async function backlogAge(s: Session, type: number, mixed: boolean): Promise<number | null> {
  const ready = `from ${s.schema}.task where type = $1 and state = 3`
  const head = `select dueAt as at ${ready} order by place, id limit 1`
  const [row] = await s.run<{ at: number | null }>(
    { name: '', text: mixed ? `select min(dueAt) as at ${ready}` : head },
    [type],
  )
  return row?.at == null ? null : Math.max(0, s.now - row.at)
}

/** Slow on purpose: it reads every task. */
export async function proof(s: Session): Promise<ProofRecord[]> {
  const text = `select 't' || type || ' ' || state as of, count(*) as n from ${s.schema}.task group by 1 union all
    select 'b' || batch || case when state = 5 then ' dead' else ' open' end, count(*)
    from ${s.schema}.task where batch is not null group by 1`
  const counted = await s.run<{ of: string; n: number }>({ name: '', text })
  const types = (await sums(s)).map((row) => ({ ...row, name: `${row.queue}/${row.type}` }))
  return proofOf(types, await s.run<Shown>(s.q.batches, [null, 0, null]), counted)
}
