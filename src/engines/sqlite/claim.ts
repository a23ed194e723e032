// Hands out the ready tasks with the lowest places under a new lease.
import type { Blocker, Claimed, ClaimAsk, ClaimedTask, Want } from '../../engine/contract.js'
import { answerKeepMs } from '../../task/limits.js'
import { type ClaimedRow, receiptText } from './rows.js'
import type { Session } from './session.js'
import { sweepDue } from './sweep.js'
import { workerId } from './workers.js'

/** Types in one claim statement; a queue with more of them claims from those that have ready tasks. */
const typesMax = 64

export function claim(s: Session, ask: ClaimAsk): Claimed {
  if (ask.requestId !== null) {
    const kept = s.q.answerOf.get(requestName(ask), s.now) as { answer: string } | undefined
    if (kept) return stillLeased(s, JSON.parse(kept.answer) as Claimed)
  }
  sweepDue(s, 200)
  const blockedBy: Blocker[] = []
  const deliveries: ClaimedTask[] = []
  const worker = workerId(s, ask.worker)
  for (const want of ask.wants) claimWant(s, ask, want, worker, deliveries, blockedBy)
  const answer = { deliveries, nextDueMs: deliveries.length > 0 ? null : nextDueMs(s), blockedBy }
  if (ask.requestId !== null) s.q.addAnswer.run(requestName(ask), JSON.stringify(answer), s.now + answerKeepMs)
  return answer
}

function claimWant(
  s: Session,
  ask: ClaimAsk,
  want: Want,
  worker: number,
  deliveries: ClaimedTask[],
  blockedBy: Blocker[],
): void {
  const queue = s.catalog.queue(want.queue)
  if (!queue || want.max <= 0) return
  if (queue.pausedAt !== null) {
    blockedBy.push({ queue: want.queue, by: 'pause' })
    return
  }
  const types = claimable(s, queue.id, want.types)
  if (types.length === 0) return
  const policy = s.catalog.policyOf(queue.id)
  const leaseMs = ask.leaseMs ?? policy.leaseMs
  const rows = s.q.claim(types.length).all(...claimParams(s, leaseMs, worker, types, want.max)) as ClaimedRow[]
  // `returning` answers in no promised order.
  if (rows.length > 1) rows.sort((a, b) => a.place - b.place || a.id - b.id)
  for (const row of rows) {
    s.count('claim', row, 'ready', 'leased')
    s.claimed = true
    deliveries.push({
      receipt: receiptText(row),
      id: String(row.id),
      queue: want.queue,
      type: s.catalog.typeById(row.type)?.name ?? want.queue,
      key: row.key,
      batch: s.catalog.batchName(row.batch),
      number: row.number,
      fence: row.fence,
      spent: row.spent,
      deaths: row.deaths,
      deliveriesMax: policy.deliveriesMax,
      enqueuedAt: row.enqueuedAt + s.wallShift,
      waitedMs: s.now - row.dueAt,
      leaseMs,
      timeoutMs: policy.timeoutMs,
      payload: row.payload,
      headers: row.headers,
    })
  }
}

/** Parameters of the claim statement, in the order of its text. */
function claimParams(s: Session, leaseMs: number, worker: number, types: number[], max: number): number[] {
  const params = [s.now + leaseMs, s.nowUs, worker, s.now]
  for (const type of types) params.push(type, max)
  if (types.length > 1) params.push(max)
  return params
}

/** The type numbers to look at. */
function claimable(s: Session, queue: number, names: readonly string[] | null): number[] {
  const found: number[] = []
  const rows = names === null ? s.catalog.typesOf(queue) : names.map((name) => s.catalog.type(queue, name))
  for (const row of rows) if (row && row.pausedAt === null) found.push(row.id)
  if (found.length <= typesMax) return found
  return found.filter((id) => readyNow(s, id) > 0).slice(0, typesMax)
}

const readyNow = (s: Session, type: number): number =>
  (s.q.readyOf.get(type) as { ready: number }).ready + s.addedReady(type)

/** Milliseconds until the next scheduled task is due or the next lease ends; null when there is neither. */
export function nextDueMs(s: Session): number | null {
  const due = (s.q.nextDue.get() as { at: number | null }).at
  const end = (s.q.nextEnd.get() as { at: number | null }).at
  const next = due === null ? end : end === null ? due : Math.min(due, end)
  return next === null ? null : Math.max(0, next - s.now)
}

const requestName = (ask: ClaimAsk) => `claim ${ask.worker} ${ask.requestId}`

/** The deliveries of an earlier answer whose leases are still live. */
function stillLeased(s: Session, answer: Claimed): Claimed {
  const deliveries = answer.deliveries.filter((delivery) => {
    const [id, fence, nonce] = delivery.receipt.split('.').map(Number)
    return s.q.held.get(id, fence, nonce) !== undefined
  })
  return { ...answer, deliveries }
}
