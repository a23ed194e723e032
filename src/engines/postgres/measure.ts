// The figures of one snapshot, folded sums and deltas together; and the same figures beside a full count.
import type { Figures, TypeFigures } from '../../engine/contract.js'
import type { ProofRecord } from '../../task/records.js'
import { figureColumns } from '../ledger.js'
import { proofOf, type Shown, type WorkerRow, workerRecord } from '../shown.js'
import type { Session } from './session.js'

type FigureRow = Omit<TypeFigures, 'paused'> & { id: number; mixed: number; paused: boolean }
interface SumsRow extends FigureRow {
  leasedAt: number | null
  oldestAt: number | null
}

/** Of all types, or of those of some queues ($1), with the ages of what is leased and of what is due. */
const sumsText = (schema: string) => `
  select type.id, queue.name as queue, type.name as type, type.mixed,
    queue.pausedAt is not null or type.pausedAt is not null as paused,
    ${figureColumns.map((c) => `type.${c} + coalesce(moved.${c}, 0) as ${c}`).join(', ')},
    leases.at as "leasedAt", ${oldestText(schema)} as "oldestAt"
  from ${schema}.type type join ${schema}.queue queue on queue.id = type.queue
  left join (select type, ${figureColumns.map((c) => `sum(${c})::bigint as ${c}`).join(', ')}
    from ${schema}.tally group by type) moved on moved.type = type.id
  left join (select type, min(claimedAt) as at from ${schema}.task where state = 4 group by type) leases
    on leases.type = type.id
  where $1::text[] is null or queue.name = any($1)
  order by type.id`

/** When the oldest ready task became due; where priorities or snoozes mixed the order, the head is not it. */
const oldestText = (schema: string) => {
  const ready = `from ${schema}.task task where task.type = type.id and state = 3`
  return `case when type.ready + coalesce(moved.ready, 0) = 0 then null
    when type.mixed = 1 then (select min(dueAt) ${ready})
    else (select dueAt ${ready} order by place, task.id limit 1) end`
}

export async function measure(s: Session, queues: readonly string[] | null): Promise<Figures> {
  const age = (at: number | null) => (at === null ? null : Math.max(0, s.now - at))
  const types = (await sums(s, queues)).map(
    ({ id, mixed, leasedAt, oldestAt, ...row }): TypeFigures => ({
      ...row,
      backlogAgeMs: age(oldestAt),
      leaseAgeMaxMs: age(leasedAt),
    }),
  )
  const workers = (await s.run<WorkerRow>(s.q.workers)).map((row) => workerRecord(row, 0))
  return { at: s.now, types, workers }
}

/** A type that never had a task has no figures: it was named for some that never came to be. */
async function sums(s: Session, queues: readonly string[] | null): Promise<SumsRow[]> {
  const rows = await s.run<SumsRow>({ name: '', text: sumsText(s.schema) }, [queues])
  return rows.filter((row) => figureColumns.some((name) => row[name] !== 0))
}

/** Slow on purpose: it reads every task. */
export async function proof(s: Session): Promise<ProofRecord[]> {
  const text = `select 't' || type || ' ' || state as of, count(*) as n from ${s.schema}.task group by 1 union all
    select 'b' || batch || case when state = 5 then ' dead' else ' open' end, count(*)
    from ${s.schema}.task where batch is not null group by 1`
  const counted = await s.run<{ of: string; n: number }>({ name: '', text })
  const types = (await sums(s, null)).map((row) => ({ ...row, name: `${row.queue}/${row.type}` }))
  return proofOf(types, await s.run<Shown>(s.q.batches, [null, 0, null]), counted)
}
