// The workers a store knows: joining, beating, leaving, and finding out which of them died.
import type { WorkerInfo } from '../../engine/contract.js'
import { type Receipt, receiptText } from '../receipt.js'
import type { WorkerRow } from '../shown.js'
import type { Liveness } from './liveness.js'
import type { Session } from './session.js'

export function join(s: Session, info: WorkerInfo, proof: string | null): void {
  const { worker, host, pid, bootId, queues, concurrency, busy, prefetched } = info
  s.q.join.run(worker, host, pid, bootId, proof, JSON.stringify(queues), concurrency, busy, prefetched, s.now)
}

/** Beats that say nothing new are written this seldom: an idle worker must not keep the disk busy. */
const beatWrittenMs = 5000

/** The answer to a beat that tells nothing new, so that nothing is written; null when it must be. */
export function oldBeat(s: Session, info: WorkerInfo): { alive: boolean; cancelled: string[] } | null {
  const row = s.q.workerSeen.get(info.worker) as WorkerRow | undefined
  if (!row || s.now - row.aliveAt >= beatWrittenMs) return null
  if (row.busy !== info.busy || row.prefetched !== info.prefetched) return null
  return { alive: true, cancelled: cancelsOf(s, row.id) }
}

/** The receipts of a worker's tasks that somebody asked to cancel. */
const cancelsOf = (s: Session, worker: number): string[] => (s.q.cancelsOf.all(worker) as Receipt[]).map(receiptText)

/** False when the worker is not known any more: it was declared dead, or it left. */
export function beat(s: Session, info: WorkerInfo): { alive: boolean; cancelled: string[] } {
  if (s.q.beat.run(info.busy, info.prefetched, s.now, info.worker).changes === 0) return { alive: false, cancelled: [] }
  const { id } = s.q.workerByName.get(info.worker) as { id: number }
  return { alive: true, cancelled: cancelsOf(s, id) }
}

export function leave(s: Session, name: string): void {
  const row = s.q.workerByName.get(name) as { id: number } | undefined
  if (row) s.q.leave.run(row.id)
}

/** The number of a worker; one that never joined (an HTTP client) is known from its first claim on. */
export function workerId(s: Session, name: string): number {
  const row = s.q.workerByName.get(name) as { id: number } | undefined
  if (row) return row.id
  return Number(s.q.join.run(name, '', 0, '', null, '[]', 0, 0, 0, s.now).lastInsertRowid)
}

/** Dead beyond doubt: the lock is free, or the worker lived before this machine's last start. */
export function findDead(workers: readonly WorkerRow[], bootId: string, liveness: Liveness): WorkerRow[] {
  const known = new Map<string, boolean>()
  return workers.filter((row) => {
    if (row.proof === null) return false
    if (row.bootId !== bootId) return true
    let dead = known.get(row.proof)
    if (dead === undefined) {
      dead = liveness.isDead(row.proof)
      known.set(row.proof, dead)
    }
    return dead
  })
}
