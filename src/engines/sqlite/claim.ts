// Hands out the ready tasks with the lowest places under a new lease.

import type { Blocker, ClaimAsk, Claimed, Want } from '../../engine/contract.js'
import { soonest } from '../../ground/soonest.js'
import { answerKeepMs } from '../../task/limits.js'
import { keepsResult, receiptText } from '../receipt.js'
import { allowance, charge } from './limits.js'
import type { ClaimedRow } from './rows.js'
import type { Session } from './session.js'
import { nextDueMs, sweepDue } from './sweep.js'
import { workerId } from './workers.js'

/** Types in one claim statement; a queue with more of them claims from those that have ready tasks. */
const typesMax = 64
/** 48 random bits keep a receipt from being guessed. */
const nonceMax = 2 ** 48

export function claim(s: Session, ask: ClaimAsk): Claimed {
  const kept = keptAnswer(s, ask)
  const again = kept && stillLeased(s, JSON.parse(kept.answer) as Claimed)
  if (again && again.deliveries.length > 0) return again
  sweepDue(s, 200)
  const answer: Claimed = { deliveries: [], nextDueMs: null, blockedBy: [] }
  const { deliveries } = answer
  let roomMs: number | null = null
  for (const want of ask.wants) roomMs = soonest([roomMs, claimWant(s, ask, want, answer)])
  if (deliveries.length === 0) answer.nextDueMs = soonest([nextDueMs(s), roomMs])
  // Nothing is not kept: a long poll looks again under the same name, and who waits for work must not write.
  if (ask.requestId !== null && deliveries.length > 0) {
    s.q.addAnswer.run(requestName(ask), JSON.stringify(answer), s.now + answerKeepMs)
  }
  return answer
}

const keptAnswer = (s: Session, ask: ClaimAsk) =>
  ask.requestId === null ? undefined : (s.q.answerOf.get(requestName(ask), s.now) as { answer: string } | undefined)

/**
 * The answer of a claim that would find nothing, read without taking the write lock; null when there may be something.
 * A waiting worker looks again every second: that must not cost a write.
 */
export function nothingToClaim(s: Session, ask: ClaimAsk): Claimed | null {
  const next = nextDueMs(s)
  let roomMs: number | null = null
  if (next === 0 || keptAnswer(s, ask)) return null
  const blockedBy: Blocker[] = []
  for (const want of ask.wants) {
    const queue = s.catalog.queue(want.queue)
    if (!queue || want.max <= 0) continue
    if (queue.pausedAt !== null) blockedBy.push({ queue: want.queue, by: 'pause' })
    else if (claimable(s, queue.id, want.types).some((type) => readyNow(s, type) > 0)) {
      const room = allowance(s, queue.id)
      if (room === null || room.free > 0) return null
      blockedBy.push({ queue: want.queue, by: room.by })
      roomMs = soonest([roomMs, room.againMs])
    }
  }
  return { deliveries: [], nextDueMs: soonest([next, roomMs]), blockedBy }
}

/** Adds what this want gets to the answer; answers when time alone makes room for more, null when it does not. */
function claimWant(s: Session, ask: ClaimAsk, want: Want, { deliveries, blockedBy }: Claimed): number | null {
  const queue = s.catalog.queue(want.queue)
  if (!queue || want.max <= 0) return null
  if (queue.pausedAt !== null) {
    blockedBy.push({ queue: want.queue, by: 'pause' })
    return null
  }
  const types = claimable(s, queue.id, want.types)
  if (types.length === 0) return null
  const room = allowance(s, queue.id)
  if (room && room.free <= 0) {
    blockedBy.push({ queue: want.queue, by: room.by })
    return room.againMs
  }
  const max = beforeSuspect(s, types, Math.min(want.max, room?.free ?? want.max))
  const policy = s.catalog.policyOf(queue.id)
  const { wallShift } = s
  const leaseMs = ask.leaseMs ?? policy.leaseMs
  const rows = s.q.heads(types.length).all(...headsParams(types, max)) as ClaimedRow[]
  if (rows.length === 0) return null
  charge(s, queue.id, rows.length)
  // One nonce for all: whoever knows one of these receipts was given the others too.
  const nonce = Math.floor(s.random() * nonceMax)
  // Who got nothing leaves no trace, not even of who asked.
  const worker = workerId(s, ask.worker)
  s.q.lease.run(s.now + leaseMs, s.nowUs, nonce, worker, s.now, JSON.stringify(rows.map((row) => row[0])))
  for (const row of rows) {
    const [id, type, earlier, spent, lastFence, key, batch, deaths, enqueuedAt, dueAt, flags, headers, payload] = row
    const fence = Math.max(lastFence + 1, s.nowUs)
    s.count('claim', type, 'ready', 'leased')
    s.claimed = true
    deliveries.push({
      receipt: receiptText({ id, fence, nonce, type }),
      id: String(id),
      queue: want.queue,
      type: s.catalog.typeById(type)?.name ?? want.queue,
      key,
      batch: s.catalog.batchName(batch),
      number: earlier + 1,
      fence,
      spent: spent + 1,
      deaths,
      deliveriesMax: policy.deliveriesMax,
      enqueuedAt: enqueuedAt + wallShift,
      waitedMs: s.now - dueAt,
      leaseMs,
      timeoutMs: policy.timeoutMs,
      limited: room?.limited ?? false,
      payload,
      headers,
      keepsResult: policy.resultKeepMs > 0 || (flags & keepsResult) > 0,
    })
  }
  return null
}

/** How many tasks to take so that a suspect, a task with two deaths, is taken alone and only when it is the head. */
function beforeSuspect(s: Session, types: readonly number[], max: number): number {
  let ahead = max
  for (const type of types) {
    const suspect = s.q.suspect.get(type) as { id: number; place: number } | undefined
    if (!suspect) continue
    const { id, place } = suspect
    const counts = types.map((other) => (s.q.aheadOf.get(other, place, place, id, max) as { n: number }).n)
    ahead = Math.min(
      ahead,
      counts.reduce((sum, n) => sum + n, 0),
    )
  }
  return Math.max(1, ahead)
}

/** Parameters of the statement that finds the heads, in the order of its text. */
function headsParams(types: readonly number[], max: number): number[] {
  const params = types.flatMap((type) => [type, max])
  if (types.length > 1) params.push(max)
  return params
}

/** The type numbers to look at. */
function claimable(s: Session, queue: number, names: readonly string[] | null): number[] {
  const found = s.catalog.claimable(queue, names)
  return found.length <= typesMax ? found : found.filter((id) => readyNow(s, id) > 0).slice(0, typesMax)
}

const readyNow = (s: Session, type: number): number =>
  (s.q.readyOf.get(type) as { ready: number }).ready + s.added(type, 'ready')

/** With the length of its first part, so that no two pairs of texts are one. */
const requestName = ({ worker, requestId }: ClaimAsk) => `claim ${worker.length} ${worker} ${requestId}`

/** The deliveries of an earlier answer whose leases are still live. */
function stillLeased(s: Session, answer: Claimed): Claimed {
  const deliveries = answer.deliveries.filter((delivery) => {
    const [id, fence, nonce] = delivery.receipt.split('.').map(Number)
    return s.q.held.get(id, fence, nonce) !== undefined
  })
  return { ...answer, deliveries }
}

/** True when one of these queues may have work: whoever waits for it is woken. */
export function hasReady(s: Session, queues: readonly string[]): boolean {
  return queues.some((name) => {
    const queue = s.catalog.queue(name)
    if (!queue) return false
    for (const type of s.catalog.typesOf(queue.id)) {
      // What a limit holds back is no work yet: whoever waits is told when there is room.
      if ((s.q.readyOf.get(type.id) as { ready: number }).ready > 0) return (allowance(s, queue.id)?.free ?? 1) > 0
    }
    return false
  })
}
