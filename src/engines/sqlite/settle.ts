// Ends deliveries: ack, retry, release and bury, each fenced by its receipt; and what follows from a task's end.
import type { ErrorText, Held, ReleasedBy, Verdict } from '../../engine/contract.js'
import type { LifeEvent, Outcome, State } from '../../task/lifecycle.js'
import { states } from '../../task/lifecycle.js'
import type { HistoryRecord } from '../../task/records.js'
import { backoffMs } from '../../task/retry.js'
import { fingerprint } from '../fingerprint.js'
import { cancelAsked, parseReceipt, type Receipt } from '../receipt.js'
import { moveOn } from './move.js'
import type { AckedRow, HeldRow } from './rows.js'
import type { Session } from './session.js'
import { code } from './statements.js'

export function settle(s: Session, verdicts: readonly Verdict[]): Outcome[] {
  const outcomes = verdicts.map((verdict) => settleOne(s, verdict))
  s.promoteLanes()
  return outcomes
}

function settleOne(s: Session, verdict: Verdict): Outcome {
  const receipt = parseReceipt(verdict.receipt)
  if (!receipt) return 'stale'
  if (verdict.do === 'ack') return ack(s, receipt)
  const row = s.q.held.get(receipt.id, receipt.fence, receipt.nonce) as HeldRow | undefined
  if (!row) return stale(s, receipt)
  const outcome = endDelivery(s, row, verdict)
  if (outcome !== 'cancelled') moveOn(s, row, outcome)
  return outcome
}

type Ended = Exclude<Outcome, 'done' | 'stale'>

function endDelivery(s: Session, row: HeldRow, verdict: Exclude<Verdict, { do: 'ack' }>): Ended {
  switch (verdict.do) {
    case 'retry':
      return retry(s, row, verdict.error, verdict.delayMs)
    case 'release':
      return release(s, row, verdict.by, verdict.delayMs, verdict.error)
    case 'bury':
      history(s, row, 'bury', verdict.error)
      return end(s, 'bury', row, 'buried', verdict.error)
  }
}

function ack(s: Session, receipt: Receipt): Outcome {
  const { id, fence, nonce, type } = receipt
  if (s.q.ackPlain.run(id, fence, nonce, type).changes > 0) {
    s.count('ack', type, 'leased', null)
    return 'done'
  }
  const row = s.q.acked.get(id, fence, nonce) as AckedRow | undefined
  if (!row) return stale(s, receipt)
  s.q.remove.run(id)
  s.count('ack', row.type, states[row.state - 1] as State, null)
  s.countBatch(row.batch, 'done')
  const first = row.number === 1 && row.state === code.leased
  ended(s, { ...row, id, queue: s.catalog.typeById(row.type)?.queue ?? 0 }, !first)
  return 'done'
}

function stale(s: Session, receipt: Receipt): 'stale' {
  if (s.catalog.typeById(receipt.type)) s.countStale(receipt.type)
  return 'stale'
}

function retry(s: Session, row: HeldRow, error: ErrorText, delayMs: number | undefined): Ended {
  const policy = s.catalog.policyOf(row.queue)
  history(s, row, error.code === 'PW_TIMEOUT' ? 'timeout' : 'retry', error)
  if (exhausted(s, row)) return end(s, 'retry', row, 'spent', error)
  if (row.flags & cancelAsked) return cancelled(s, 'retry', row)
  s.countBatch(row.batch, 'retries')
  const dueAt = s.now + (delayMs ?? backoffMs(policy.backoff, row.spent, s.random))
  s.q.schedule.run(dueAt, dueAt, dueAt - row.priority * policy.headStartMs, row.id)
  s.count('retry', row.type, 'leased', 'scheduled')
  return 'scheduled'
}

function release(s: Session, row: HeldRow, by: ReleasedBy, delayMs = 0, error?: ErrorText): Ended {
  const byHandler = by === 'handler' || by === 'overloaded'
  if (byHandler && row.releases >= s.catalog.policyOf(row.queue).releasesMax) {
    const text = error?.text ?? 'The handler released the task more often than releasesMax allows.'
    return retry(s, row, { code: error?.code ?? null, text }, delayMs > 0 ? delayMs : undefined)
  }
  if (by === 'counted') {
    history(s, row, 'release', error ?? { code: null, text: '' })
    if (exhausted(s, row)) return end(s, 'release', row, 'spent', error ?? null)
  }
  if (row.flags & cancelAsked) return cancelled(s, 'release', row)
  const spent = by === 'counted' ? row.spent : row.spent - 1
  const releases = row.releases + (byHandler ? 1 : 0)
  if (delayMs > 0) {
    s.catalog.mix(row.type)
    const dueAt = s.now + delayMs
    s.q.snooze.run(dueAt, dueAt, spent, releases, row.id)
    s.count('release', row.type, 'leased', 'scheduled')
    return 'scheduled'
  }
  s.q.giveBack.run(spent, releases, row.id)
  s.count('release', row.type, 'leased', 'ready')
  return 'ready'
}

/** True when the delivery that just ended was the last one the task may spend. */
export function exhausted(s: Session, row: HeldRow): boolean {
  const { deliveriesMax } = s.catalog.policyOf(row.queue)
  return deliveriesMax !== null && row.spent >= deliveriesMax
}

/** Into the dead letters, or away if somebody asked to cancel. `from` is where the event found the task. */
export function end(
  s: Session,
  event: LifeEvent,
  row: HeldRow,
  reason: string,
  error: ErrorText | null,
  from: State = 'leased',
): 'dead' | 'cancelled' {
  if (row.flags & cancelAsked) return cancelled(s, event, row)
  const hold = row.key !== null && s.catalog.policyOf(row.queue).perKey.onDead === 'hold'
  s.q.kill.run(hold ? row.slot : 0, row.deaths, row.id)
  const text = error?.text ?? null
  s.q.addDead.run(row.id, row.type, reason, error?.code ?? null, text, fingerprint(reason, error), s.now)
  s.count(event, row.type, from, 'dead')
  s.countBatch(row.batch, 'dead')
  // A dead task gives its dedup key up, so that the same work can be asked for again.
  if (row.dedupKey !== null) s.q.dropDedup.run(row.queue, row.dedupKey, row.id)
  if (row.key !== null && !hold) s.touchLane(row.queue, row.key)
  return 'dead'
}

/** Any end but an ack of a task that somebody asked to cancel. */
export function cancelled(s: Session, event: LifeEvent, row: HeldRow): 'cancelled' {
  s.q.remove.run(row.id)
  s.count(event, row.type, 'leased', null)
  s.countCancelled(row.type)
  s.countBatch(row.batch, 'cancelled')
  ended(s, row, true)
  return 'cancelled'
}

/** What follows when a task's row is gone: its dedup key's window, its history, its key's next. */
export function ended(s: Session, row: Pick<HeldRow, 'id' | 'queue' | 'key' | 'dedupKey'>, hasHistory: boolean): void {
  if (row.dedupKey !== null) {
    const { dedupWindowMs } = s.catalog.policyOf(row.queue)
    if (dedupWindowMs > 0) s.q.endDedup.run(s.now + dedupWindowMs, row.queue, row.dedupKey, row.id)
    else s.q.dropDedup.run(row.queue, row.dedupKey, row.id)
  }
  if (hasHistory) s.q.dropHistory.run(row.id)
  if (row.key !== null) s.touchLane(row.queue, row.key)
}

/** Keeps what became of one delivery. */
export function history(s: Session, row: HeldRow, outcome: HistoryRecord['outcome'], error: ErrorText | null): void {
  const worker = row.worker === null ? undefined : (s.q.workerById.get(row.worker) as { name: string } | undefined)
  const { id, number, fence, claimedAt } = row
  const text = error?.text ?? null
  s.q.addHistory.run(id, number, fence, outcome, error?.code ?? null, text, worker?.name ?? null, claimedAt, s.now)
}

export function extend(
  s: Session,
  asks: readonly { receipt: string; leaseMs: number; progress?: string | undefined }[],
): Held[] {
  return asks.map(({ receipt, leaseMs, progress }) => {
    const parts = parseReceipt(receipt)
    const row = parts && (s.q.holding.get(parts.id, parts.fence, parts.nonce) as HeldRow | undefined)
    // A lapsed receipt whose worker was declared dead has no worker: only ack works on it.
    if (!row || row.worker === null) {
      return parts ? stale(s, parts) : 'stale'
    }
    s.q.extend.run(s.now + leaseMs, progress ?? null, row.id)
    if (row.state === code.ready) {
      s.count('extend', row.type, 'ready', 'leased')
      s.q.dropLapse.run(row.id, row.number)
    }
    return row.flags & cancelAsked ? 'cancelled' : 'held'
  })
}
