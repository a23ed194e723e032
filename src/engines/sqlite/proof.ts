// Proves P12: sets every state figure of types and batches beside a full count, in one snapshot.

import { states } from '../../task/lifecycle.js'
import type { ProofRecord } from '../../task/records.js'
import type { BatchWhole } from '../named.js'
import type { Session } from './session.js'

/** One row for each type and each batch; slow on purpose: it reads every task. */
export function proof(s: Session): ProofRecord[] {
  const counted = new Map<string, number>()
  const count = (rows: unknown) => {
    for (const row of rows as { of: string; n: number }[]) counted.set(row.of, row.n)
  }
  count(s.db.prepare(`select 't' || type || ' ' || state as "of", count(*) as n from piecework_task group by 1`).all())
  count(
    s.db
      .prepare(
        `select 'b' || batch || iif(state = 5, ' dead', ' open') as "of", count(*) as n
         from piecework_task where batch is not null group by 1`,
      )
      .all(),
  )
  const types = s.db.prepare('select * from piecework_type order by queue, name').all() as Record<string, number>[]
  const batches = s.db.prepare('select * from piecework_batch order by name').all() as BatchWhole[]
  return [
    ...types.map((row) => ({
      kind: 'type' as const,
      name: `${s.catalog.queueById(row.queue as number).name}/${row.name}`,
      shown: Object.fromEntries(states.map((state) => [state, row[state] as number])),
      counted: Object.fromEntries(states.map((state, i) => [state, counted.get(`t${row.id} ${i + 1}`) ?? 0])),
    })),
    ...batches.map((row) => ({
      kind: 'batch' as const,
      name: row.name,
      shown: { open: row.total - row.done - row.dead - row.cancelled, dead: row.dead },
      counted: { open: counted.get(`b${row.id} open`) ?? 0, dead: counted.get(`b${row.id} dead`) ?? 0 },
    })),
  ]
}
