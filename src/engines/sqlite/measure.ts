// The figures of one snapshot: states and totals by type, ages of the backlog and of leases, and who works.
import type { Figures, TypeFigures } from '../../engine/contract.js'
import { type WorkerRow, workerRecord } from '../shown.js'
import type { Session } from './session.js'

interface FigureRow extends Omit<TypeFigures, 'queue' | 'type' | 'paused' | 'backlogAgeMs' | 'leaseAgeMaxMs'> {
  id: number
  queue: number
  name: string
  pausedAt: number | null
  mixed: number
}

export function measure(s: Session, queues: readonly string[] | null): Figures {
  const leases = new Map((s.q.oldestLeases.all() as { type: number; at: number }[]).map((row) => [row.type, row.at]))
  const types: TypeFigures[] = []
  for (const row of rowsOf(s, queues)) {
    const queue = s.catalog.queueById(row.queue)
    const { id, name, pausedAt, mixed, ...figures } = row
    const leasedSince = leases.get(id)
    types.push({
      ...figures,
      queue: queue.name,
      type: name,
      paused: queue.pausedAt !== null || pausedAt !== null,
      backlogAgeMs: row.ready === 0 ? null : backlogAgeMs(s, id, mixed === 1),
      leaseAgeMaxMs: leasedSince === undefined ? null : Math.max(0, s.now - leasedSince),
    })
  }
  const workers = (s.q.workers.all() as WorkerRow[]).map((row) => workerRecord(row, s.wallShift))
  return { at: s.clock.wallMs(), types, workers }
}

/** Read by queue where queues are named: a store may have thousands of them. */
function rowsOf(s: Session, queues: readonly string[] | null): FigureRow[] {
  if (queues === null) return s.q.figures.all() as FigureRow[]
  return [...new Set(queues)].flatMap((name) => {
    const queue = s.catalog.queue(name)
    return queue ? (s.q.figuresOf.all(queue.id) as FigureRow[]) : []
  })
}

/** Age of the oldest due task; where priorities or snoozes mixed the order, the head is not it: all are looked at. */
function backlogAgeMs(s: Session, type: number, mixed: boolean): number | null {
  const row = (mixed ? s.q.oldestOfAll : s.q.oldestHead).get(type) as { at: number | null } | undefined
  return row?.at == null ? null : Math.max(0, s.now - row.at)
}
