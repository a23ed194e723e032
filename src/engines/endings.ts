// How deliveries and waits end, the same on every SQL engine: what each end leads to, counts and sets free.
import type { ErrorText, ReleasedBy, Verdict } from '../engine/contract.js'
import type { LifeEvent, Outcome, State } from '../task/lifecycle.js'
import { answerKeepMs } from '../task/limits.js'
import { placeOf } from '../task/place.js'
import { backoffMs } from '../task/retry.js'
import { fingerprint } from './fingerprint.js'
import type { End, HeldRow, Ledger } from './ledger.js'
import { cancelAsked, code, dropsAtDeadline, keepsResult, moveAsked, stateOf } from './receipt.js'

/** Where a delivery's end leaves the task: `cancelled` is gone, the others are its state. */
export type Ended = Exclude<Outcome, 'done' | 'stale'>

/** Ends a live delivery by any verdict but an ack. */
export function endDelivery(s: Ledger, row: HeldRow, verdict: Exclude<Verdict, { do: 'ack' }>): Ended {
  switch (verdict.do) {
    case 'retry':
      return retry(s, row, verdict.error, verdict.delayMs)
    case 'release':
      return release(s, row, verdict.by, verdict.delayMs, verdict.error)
    case 'bury':
      s.addHistory(row, 'bury', verdict.error)
      return die(s, 'bury', row, 'buried', verdict.error)
  }
}

function retry(s: Ledger, row: HeldRow, error: ErrorText, delayMs: number | undefined): Ended {
  const policy = s.catalog.policyOf(row.queue)
  s.addHistory(row, error.code === 'PW_TIMEOUT' ? 'timeout' : 'retry', error)
  s.note(row.queue, 'failed', (note) => note.failed.push([fingerprint('retry', error), String(row.id)]))
  if (exhausted(s, row)) return die(s, 'retry', row, 'spent', error)
  if (row.flags & cancelAsked) return cancelled(s, 'retry', row)
  s.countBatch(row.batch, 'retries')
  const dueAt = s.now + (delayMs ?? backoffMs(policy.backoff, row.spent, s.random))
  const place = placeOf(dueAt, row.priority, policy.headStartMs)
  s.change(row, { state: code.scheduled, wakeAt: dueAt, dueAt, place, nonce: null, worker: null, progress: null })
  s.count('retry', row.type, 'leased', 'scheduled')
  return 'scheduled'
}

function release(s: Ledger, row: HeldRow, by: ReleasedBy, delayMs = 0, error?: ErrorText): Ended {
  const byHandler = by === 'handler' || by === 'overloaded'
  if (by === 'unstarted') s.note(row.queue, 'refunds', (note) => note.refunds++)
  if (by === 'overloaded') s.note(row.queue, 'overloads', (note) => note.overloads++)
  if (byHandler && row.releases >= s.catalog.policyOf(row.queue).releasesMax) {
    const text = error?.text ?? 'The handler released the task more often than releasesMax allows.'
    return retry(s, row, { code: error?.code ?? null, text }, delayMs > 0 ? delayMs : undefined)
  }
  if (by === 'counted') {
    s.addHistory(row, 'release', error ?? { code: null, text: '' })
    if (exhausted(s, row)) return die(s, 'release', row, 'spent', error ?? null)
  }
  if (row.flags & cancelAsked) return cancelled(s, 'release', row)
  const spent = by === 'counted' ? row.spent : row.spent - 1
  const releases = row.releases + (byHandler ? 1 : 0)
  const kept = { nonce: null, worker: null, spent, releases }
  if (delayMs > 0) {
    s.mix(row.type)
    const dueAt = s.now + delayMs
    s.change(row, { state: code.scheduled, wakeAt: dueAt, dueAt, ...kept })
    s.count('release', row.type, 'leased', 'scheduled')
    return 'scheduled'
  }
  s.change(row, { state: code.ready, wakeAt: null, ...kept })
  s.count('release', row.type, 'leased', 'ready')
  return 'ready'
}

/** True when the delivery that just ended was the last one the task may spend. */
function exhausted(s: Ledger, row: HeldRow): boolean {
  const { deliveriesMax } = s.catalog.policyOf(row.queue)
  return deliveriesMax !== null && row.spent >= deliveriesMax
}

/** Into the dead letters, or away if somebody asked to cancel. `from` is where the event found the task. */
function die(
  s: Ledger,
  event: LifeEvent,
  row: HeldRow,
  reason: string,
  error: ErrorText | null,
  from: State = 'leased',
): 'dead' | 'cancelled' {
  if (row.flags & cancelAsked) return cancelled(s, event, row)
  const target = row.flags & moveAsked ? null : s.catalog.deadTypeOf(row.type)
  if (target !== null) return forward(s, event, row, { reason, error, from, target })
  const hold = row.key !== null && s.catalog.policyOf(row.queue).perKey.onDead === 'hold'
  s.addDead(row, reason, error)
  s.count(event, row.type, from, 'dead')
  s.countBatch(row.batch, 'dead')
  // A dead task gives its dedup key up, so that the same work can be asked for again.
  if (row.dedupKey !== null) s.freeDedup(row, null)
  if (!hold) s.touchLane(row.queue, row.key)
  const { deaths } = row
  const slot = hold ? row.slot : 0
  s.change(row, { state: code.dead, wakeAt: null, deadlineAt: null, nonce: null, worker: null, slot, deaths })
  return 'dead'
}

/**
 * Dead for its queue and its batch, and in the same commit a task of the queue that takes the dead, as this type: with
 * its id, payload, headers, key and history, and a fresh budget.
 */
function forward(
  s: Ledger,
  event: LifeEvent,
  row: HeldRow,
  death: { reason: string; error: ErrorText | null; from: State; target: number },
): 'dead' {
  const { reason, error, from, target } = death
  const queue = s.catalog.typeById(target)?.queue as number
  s.count(event, row.type, from, 'dead')
  s.countBatch(row.batch, 'dead')
  s.countBatch(row.batch, 'forwarded')
  if (row.dedupKey !== null) s.freeDedup(row, null)
  s.touchLane(row.queue, row.key)
  keepEnd(s, row, {
    outcome: 'dead',
    result: JSON.stringify({ reason, code: error?.code ?? null, error: error?.text ?? null }),
  })
  const to = row.key === null ? 'ready' : 'waiting'
  s.count('deadTo', row.type, 'dead', to, target)
  const place = placeOf(s.now, row.priority, s.catalog.policyOf(queue).headStartMs)
  if (row.priority !== 0) s.mix(target)
  s.touchLane(queue, row.key)
  s.change(row, {
    ...{ queue, type: target, state: code[to], place, dueAt: s.now, wakeAt: null, deadlineAt: null, nonce: null },
    ...{
      worker: null,
      spent: 0,
      releases: 0,
      deaths: 0,
      slot: 0,
      flags: 0,
      dedupKey: null,
      batch: null,
      progress: null,
    },
  })
  return 'dead'
}

/** Any end but an ack of a task that somebody asked to cancel. */
function cancelled(s: Ledger, event: LifeEvent, row: HeldRow): 'cancelled' {
  s.count(event, row.type, 'leased', null)
  s.figure(row.type, 'cancelled', 1)
  s.countBatch(row.batch, 'cancelled')
  gone(s, row)
  return 'cancelled'
}

/** A delivery was acked, `ranMs` after its claim. */
export function acked(s: Ledger, queue: number, ranMs: number): void {
  s.note(queue, 'done', (note) => {
    note.done++
    note.doneMs += ranMs
  })
}

/** Removes the task, and what it held; how it ended is kept where somebody may ask. */
export function gone(s: Ledger, row: HeldRow, end: End = { outcome: 'cancelled', result: null }): void {
  s.remove(row)
  freed(s, row)
  keepEnd(s, row, end)
}

/** How long the end of this task is kept, ms; 0: not at all. */
const keepMsOf = (s: Ledger, { queue, flags }: Pick<HeldRow, 'queue' | 'flags'>): number =>
  Math.max(s.catalog.policyOf(queue).resultKeepMs, flags & keepsResult ? answerKeepMs : 0)

export function keepEnd(s: Ledger, row: Pick<HeldRow, 'id' | 'type' | 'queue' | 'flags'>, end: End): void {
  const keepMs = keepMsOf(s, row)
  if (keepMs > 0) s.keepResult(row, end, s.now + keepMs)
}

/** What a task whose row is gone no longer holds: its dedup key, whose window begins, and its key's slot. */
export function freed(s: Ledger, row: Pick<HeldRow, 'id' | 'queue' | 'key' | 'dedupKey' | 'moveTo'>): void {
  if (row.dedupKey !== null) {
    const { dedupWindowMs } = s.catalog.policyOf(row.queue)
    s.freeDedup(row, dedupWindowMs > 0 ? s.now + dedupWindowMs : null)
  }
  s.touchLane(row.queue, row.key)
}

const lost = {
  expire: { code: 'PW_LEASE_LOST', text: 'The lease ended before the delivery was settled.' },
  die: { code: 'PW_LEASE_LOST', text: 'The worker that held the task died.' },
}

/**
 * Ends a delivery whose lease is over or whose worker died: back to its old place, or dead when it was the last one to
 * spend. `crash`: all workers died together, which puts no suspicion on the tasks they held.
 */
export function giveUp(s: Ledger, row: HeldRow, event: 'expire' | 'die', crash = false): Ended {
  s.addHistory(row, event === 'expire' ? 'expired' : 'died', lost[event])
  s.countBatch(row.batch, 'returned')
  if (event === 'die' && !crash) row.deaths++
  if (row.flags & cancelAsked) return cancelled(s, event, row)
  if (exhausted(s, row)) return die(s, event, row, 'spent', lost[event])
  // The nonce stays: the receipt is lapsed, and its worker tells whether it may still extend.
  const worker = event === 'expire' ? row.worker : null
  s.change(row, { state: code.ready, wakeAt: null, worker, deaths: row.deaths })
  s.count(event, row.type, 'leased', 'ready')
  return 'ready'
}

/** True when these workers died with all others: then no task of theirs is a suspect. A worker alone is no crowd. */
export const diedTogether = (proofs: readonly unknown[], workers: number): boolean =>
  proofs.length > 1 && proofs.length === workers && new Set(proofs).size > 1

/** A scheduled task is due. */
export function mature(s: Ledger, row: HeldRow): void {
  const to = row.key !== null && row.slot === 0 ? 'waiting' : 'ready'
  s.change(row, { state: code[to], wakeAt: null })
  s.count('due', row.type, 'scheduled', to)
  if (to === 'waiting') s.touchLane(row.queue, row.key)
}

/** An open task's deadline has passed. */
export function passDeadline(s: Ledger, row: HeldRow): void {
  const from = stateOf(row)
  if (row.flags & dropsAtDeadline) {
    s.count('cancel', row.type, from, null)
    s.countBatch(row.batch, 'cancelled')
    gone(s, row)
  } else {
    die(s, 'deadline', row, 'deadline', { code: null, text: 'The deadline passed before the task was done.' }, from)
  }
}
