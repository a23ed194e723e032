// Ends deliveries: the common ack in one statement, everything else fenced by its receipt and decided as everywhere.
import type { Held, Verdict } from '../../engine/contract.js'
import type { Outcome } from '../../task/lifecycle.js'
import { acked, endDelivery, freed, keepEnd } from '../endings.js'
import type { End, HeldRow } from '../ledger.js'
import { heeds } from '../limits.js'
import { cancelAsked, code, parseReceipt, type Receipt, stateOf } from '../receipt.js'
import { moveOn } from './move.js'
import type { AckedRow } from './rows.js'
import type { Session } from './session.js'

export function settle(s: Session, verdicts: readonly Verdict[]): Outcome[] {
  const outcomes = verdicts.map((verdict) => settleOne(s, verdict))
  s.promoteLanes()
  return outcomes
}

function settleOne(s: Session, verdict: Verdict): Outcome {
  const receipt = parseReceipt(verdict.receipt)
  if (!receipt) return 'stale'
  if (verdict.do === 'ack') return ack(s, receipt, verdict.result ?? null)
  const row = s.q.held.get(receipt.id, receipt.fence, receipt.nonce) as HeldRow | undefined
  if (!row) return stale(s, receipt)
  const outcome = endDelivery(s, row, verdict)
  if (outcome !== 'cancelled') moveOn(s, row)
  return outcome
}

function ack(s: Session, receipt: Receipt, result: string | null): Outcome {
  const { id, fence, nonce, type } = receipt
  const end: End = { outcome: 'done', result }
  // What heeds acks has to know how long it took.
  const heeded = s.catalog.limitsOf(queueOf(s, type)).some(heeds.done)
  if (!heeded && s.q.ackPlain.run(id, fence, nonce, type).changes > 0) {
    s.count('ack', type, 'leased', null)
    keepEnd(s, { id, type, queue: queueOf(s, type), flags: 0 }, end)
    return 'done'
  }
  const row = s.q.acked.get(id, fence, nonce) as AckedRow | undefined
  if (!row) return stale(s, receipt)
  if (row.number > 1) s.q.addRedelivered.run(s.now, id)
  s.q.remove.run(id)
  s.count('ack', row.type, stateOf(row), null)
  s.countBatch(row.batch, 'done')
  // A first delivery acked under its lease has no history to remove.
  if (row.number > 1 || row.state !== code.leased) s.q.dropHistory.run(id)
  if (heeded) acked(s, queueOf(s, type), s.now - (row.claimedAt ?? s.now))
  const ended = { ...row, id, queue: queueOf(s, row.type) }
  freed(s, ended)
  keepEnd(s, ended, end)
  return 'done'
}

const queueOf = (s: Session, type: number): number => s.catalog.typeById(type)?.queue ?? 0

function stale(s: Session, receipt: Receipt): 'stale' {
  if (s.catalog.typeById(receipt.type)) s.figure(receipt.type, 'stale', 1)
  return 'stale'
}

export function extend(
  s: Session,
  asks: readonly { receipt: string; leaseMs: number; progress?: string | undefined }[],
): Held[] {
  return asks.map(({ receipt, leaseMs, progress }) => {
    const parts = parseReceipt(receipt)
    const row = parts && (s.q.holding.get(parts.id, parts.fence, parts.nonce) as HeldRow | undefined)
    // A lapsed receipt whose worker was declared dead has no worker: only ack works on it.
    if (!row || row.worker === null) return parts ? stale(s, parts) : 'stale'
    if (row.state === code.ready) {
      s.count('extend', row.type, 'ready', 'leased')
      s.q.dropLapse.run(row.id, row.number)
    }
    const kept = progress === undefined ? {} : { progress }
    s.change(row, { state: code.leased, wakeAt: s.now + leaseMs, ...kept })
    return row.flags & cancelAsked ? 'cancelled' : 'held'
  })
}
