// Ends deliveries on PostgreSQL: acks in one fenced delete, all else decided on locked rows; and what follows from it.
import type { Held, Verdict } from '../../engine/contract.js'
import type { Outcome } from '../../task/lifecycle.js'
import { acked, endDelivery, freed, gone, keepEnd } from '../endings.js'
import type { End, HeldRow } from '../ledger.js'
import { cancelAsked, code, parseReceipt, type Receipt, stateOf } from '../receipt.js'
import { taken } from './errors.js'
import { moveOn } from './move.js'
import { clean, type Session } from './session.js'

type LockedRow = HeldRow & { nonce: number | null }
/** Rows under live or lapsed receipts, by id. */
type Rows = Map<number, LockedRow>

export async function settle(s: Session, verdicts: readonly Verdict[]): Promise<Outcome[]> {
  const receipts = verdicts.map((verdict) => parseReceipt(verdict.receipt))
  // The common case: nothing but acks, each of another task, in one statement that reads nothing first.
  const ids = new Set(receipts.map((receipt) => receipt?.id))
  if (verdicts.every((verdict) => verdict.do === 'ack') && ids.size === receipts.length)
    return ackAll(s, receipts, verdicts)
  const rows = await lock(s, receipts)
  await s.know([...rows.values()])
  const outcomes = verdicts.map((verdict, i) => settleOne(s, verdict, receipts[i] ?? null, rows))
  for (const [i, outcome] of outcomes.entries()) {
    const row = rows.get(receipts[i]?.id ?? 0)
    if (row && isEnded(outcome)) await moveOn(s, row)
  }
  return outcomes
}

/** True when a delivery has ended and its task is still there. */
const isEnded = (outcome: Outcome) => outcome === 'scheduled' || outcome === 'ready' || outcome === 'dead'

async function ackAll(
  s: Session,
  receipts: readonly (Receipt | null)[],
  verdicts: readonly Verdict[],
): Promise<Outcome[]> {
  const known = receipts.filter((receipt) => receipt !== null)
  const columns = [known.map(({ id }) => id), known.map(({ fence }) => fence), known.map(({ nonce }) => nonce)]
  type Acked = Pick<HeldRow, 'id' | 'queue' | 'type' | 'state' | 'number' | 'key' | 'batch' | 'dedupKey'> &
    Pick<HeldRow, 'claimedAt' | 'moveTo' | 'flags' | 'worker'> & { enqueuedAt: number }
  const rows = new Map((await s.run<Acked>(s.q.ack, columns)).map((row) => [row.id, row]))
  return receipts.map((receipt, i) => {
    const row = receipt && rows.get(receipt.id)
    if (!row) return stale(s, receipt)
    s.count('ack', row.type, stateOf(row), null)
    s.countBatch(row.batch, 'done')
    // A first delivery acked under its lease has no history to remove.
    if (row.number > 1) keepRedelivered(s, row, row.enqueuedAt)
    else if (row.state !== code.leased) s.add(s.q.dropHistory, row.id)
    acked(s, row.queue, s.now - (row.claimedAt ?? s.now))
    freed(s, row)
    keepEnd(s, row, endOf(verdicts[i] as Verdict))
    return 'done'
  })
}

/** Locks the rows of these receipts; runs again when somebody else holds one. */
const lock = async (s: Session, receipts: readonly (Receipt | null)[]): Promise<Rows> =>
  lockRows(s, [...new Set(receipts.flatMap((receipt) => receipt?.id ?? []))])

/** Locks the rows of these tasks (ids, each once); runs the transaction again when somebody else holds one. */
export async function lockRows(s: Session, ids: readonly number[]): Promise<Rows> {
  if (ids.length === 0) return new Map()
  const rows = await s.run<LockedRow>(s.foreign ? s.q.lockWaiting : s.q.lock, [ids])
  if (rows.length < ids.length && !s.foreign) {
    const standing = await s.run<{ id: number }>(s.q.standing, [ids])
    if (standing.length > rows.length) throw taken()
  }
  return new Map(rows.map((row) => [row.id, row]))
}

/** The row on which this receipt still acts. */
function holding(rows: Rows, receipt: Receipt | null): HeldRow | undefined {
  const row = receipt ? rows.get(receipt.id) : undefined
  return row && receipt && row.fence === receipt.fence && row.nonce === receipt.nonce ? row : undefined
}

function settleOne(s: Session, verdict: Verdict, receipt: Receipt | null, rows: Rows): Outcome {
  const row = holding(rows, receipt)
  if (!row) return stale(s, receipt)
  if (verdict.do === 'ack') {
    s.count('ack', row.type, stateOf(row), null)
    s.countBatch(row.batch, 'done')
    acked(s, row.queue, s.now - (row.claimedAt ?? s.now))
    if (row.number > 1) keepRedelivered(s, row, null)
    gone(s, row, endOf(verdict))
    return 'done'
  }
  return row.state === code.leased ? endDelivery(s, row, verdict) : stale(s, receipt)
}

type Redelivered = Pick<HeldRow, 'id' | 'type' | 'key' | 'number' | 'worker' | 'claimedAt'>

/** Notes the ack of a task that was delivered more than once, and takes its history. */
function keepRedelivered(s: Session, row: Redelivered, enqueuedAt: number | null): void {
  const { id, type, key, number, worker, claimedAt } = row
  s.add(s.q.keepRedelivered, id, type, key, number, worker, enqueuedAt, claimedAt, s.now)
}

const endOf = (verdict: Verdict): End => ({
  outcome: 'done',
  result: verdict.do === 'ack' ? (verdict.result ?? null) : null,
})

function stale(s: Session, receipt: Receipt | null): 'stale' {
  if (receipt && s.catalog.typeById(receipt.type)) s.figure(receipt.type, 'stale', 1)
  return 'stale'
}

/**
 * `patient`: whether to come again for a row that somebody else has locked. At the end it counts as held: nobody can
 * end a lease whose row is locked, and whoever holds it (a caller's open transaction that acks) is about to decide.
 */
export async function extend(
  s: Session,
  asks: readonly { receipt: string; leaseMs: number; progress?: string | undefined }[],
  patient: boolean,
): Promise<Held[]> {
  const receipts = asks.map((ask) => parseReceipt(ask.receipt))
  const ids = [...new Set(receipts.flatMap((receipt) => receipt?.id ?? []))]
  const rows: Rows = new Map((await s.run<LockedRow>(s.q.lock, [ids])).map((row) => [row.id, row]))
  const missing = ids.filter((id) => !rows.has(id))
  const standing = missing.length === 0 ? [] : await s.run<{ id: number }>(s.q.standing, [missing])
  if (standing.length > 0 && patient) throw taken()
  const locked = new Set(standing.map((row) => row.id))
  return asks.map(({ leaseMs, progress }, i) => {
    const receipt = receipts[i] ?? null
    if (receipt && locked.has(receipt.id)) return 'held'
    const row = holding(rows, receipt)
    // A lapsed receipt whose worker was declared dead has no worker: only ack works on it.
    if (!row || row.worker === null) return stale(s, receipt)
    if (row.state === code.ready) {
      s.count('extend', row.type, 'ready', 'leased')
      s.add(s.q.dropLapses, row.id, row.number)
    }
    const kept = progress === undefined ? {} : { progress: clean(progress) }
    s.change(row, { state: code.leased, wakeAt: s.now + leaseMs, ...kept })
    return row.flags & cancelAsked ? 'cancelled' : 'held'
  })
}
