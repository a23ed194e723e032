// Hands out ready tasks on PostgreSQL: one statement that skips what others lock, from a remembered place on.

import type { Blocker, ClaimAsk, Claimed, ClaimedTask, Want } from '../../engine/contract.js'
import type { Clock } from '../../ground/clock.js'
import { soonest } from '../../ground/soonest.js'
import { keepsResult, parseReceipt, receiptText } from '../receipt.js'
import { keep, keptAnswer, requestName } from './answer.js'
import { allowance, charge } from './limits.js'
import { asWas, type Session } from './session.js'
import { nextDueMs, sweepDue } from './sweep.js'
import { again } from './turn.js'

interface ClaimedRow {
  id: number
  type: number
  number: number
  spent: number
  fence: number
  nonce: number
  key: string | null
  batch: number | null
  deaths: number
  enqueuedAt: number
  dueAt: number
  place: number
  headers: string | null
  payload: string
  claimedAt: number
  flags: number
}

/**
 * How low the places of a type's ready tasks can be: claims start there, past the entries of tasks long gone that an
 * open snapshot keeps in the index (0.4 ms instead of 5.9 ms and growing). Only a hint: every `everyMs` a claim looks
 * from the start, so does one that got nothing, and the next one after a claim that got less than it asked for.
 */
export class Marks {
  readonly low = Number.MIN_SAFE_INTEGER
  readonly #marks = new Map<number, number>()
  #lookedAtMs = Number.NEGATIVE_INFINITY

  constructor(
    private readonly clock: Clock,
    private readonly everyMs: number,
  ) {}

  /** True when it is time to look at everything: then all marks are gone. */
  due(): boolean {
    if (this.clock.monotonicMs() - this.#lookedAtMs < this.everyMs) return false
    this.#marks.clear()
    return true
  }

  looked(): void {
    this.#lookedAtMs = this.clock.monotonicMs()
  }

  of(types: readonly number[]): number[] {
    return types.map((type) => this.#marks.get(type) ?? this.low)
  }

  raise(type: number, place: number): void {
    this.#marks.set(type, place)
  }

  forget(types: readonly number[]): void {
    for (const type of types) this.#marks.delete(type)
  }

  /** New ready tasks of these types, each with its lowest new place. */
  lower(types: ReadonlyMap<number, number>): void {
    for (const [type, place] of types) {
      const mark = this.#marks.get(type)
      if (mark === undefined || place >= mark) continue
      if (place === Number.NEGATIVE_INFINITY) this.#marks.delete(type)
      else this.#marks.set(type, place)
    }
  }
}

/** What a stored answer keeps of a delivery: the rest stands in the task's row as long as it is leased. */
interface Kept {
  deliveries: [receipt: string, batch: string | null][]
  nextDueMs: number | null
  blockedBy: Blocker[]
}

export async function claim(s: Session, ask: ClaimAsk, marks: Marks): Promise<Claimed | typeof again> {
  const request = ask.requestId === null ? null : requestName('claim', ask.worker, ask.requestId)
  const kept = request === null ? null : await keptAnswer(s, request)
  if (kept !== null) {
    const first = await stillLeased(s, ask, JSON.parse(kept) as Kept)
    if (first.deliveries.length > 0) return first
  }
  if (marks.due()) {
    const { matured, expired } = await sweepDue(s, 200)
    // What matured may wait behind its key, or have made room for others: they are promoted before we choose.
    if (matured + expired > 0 && s.lanes.size > 0) return again
    marks.looked()
  }
  const answer: Claimed = { deliveries: [], nextDueMs: null, blockedBy: [] }
  let roomMs: number | null = null
  for (const want of ask.wants) roomMs = soonest([roomMs, await claimWant(s, ask, want, marks, answer)])
  if (answer.deliveries.length === 0) answer.nextDueMs = soonest([await nextDueMs(s), roomMs])
  // Nothing is not kept: a long poll looks again under the same name, and who waits for work must not write.
  else if (request !== null) {
    const deliveries = answer.deliveries.map(({ receipt, batch }) => [receipt, batch])
    await keep(s, request, JSON.stringify({ ...answer, deliveries }), kept)
  }
  return answer
}

/** Adds what this want gets to the answer; answers when time alone makes room for more, null when it does not. */
async function claimWant(s: Session, ask: ClaimAsk, want: Want, marks: Marks, answer: Claimed): Promise<number | null> {
  const queue = s.catalog.queue(want.queue)
  if (!queue || want.max <= 0) return null
  if (queue.pausedAt !== null) {
    answer.blockedBy.push({ queue: want.queue, by: 'pause' })
    return null
  }
  const types = s.catalog.claimable(queue.id, want.types)
  if (types.length === 0) return null
  const room = await allowance(s, queue.id)
  if (room && room.free <= 0) {
    answer.blockedBy.push({ queue: want.queue, by: room.by })
    return room.againMs
  }
  const max = Math.min(want.max, room?.free ?? want.max)
  const leaseMs = ask.leaseMs ?? s.catalog.policyOf(queue.id).leaseMs
  const from = marks.of(types)
  let rows = await take(s, ask.worker, types, from, max, leaseMs)
  if (rows.length === 0 && from.some((mark) => mark !== marks.low)) {
    const start = types.map(() => marks.low)
    rows = await take(s, ask.worker, types, start, max, leaseMs)
  }
  rows.sort(byPlace)
  const limited = room?.limited ?? false
  const batchName = await s.catalog.batchNames(
    s.link,
    rows.map((row) => row.batch),
  )
  for (const row of rows) {
    s.count('claim', row.type, 'ready', 'leased')
    marks.raise(row.type, row.place)
    answer.deliveries.push(delivery(s, row, leaseMs, { batch: batchName(row.batch), limited }))
  }
  charge(s, queue.id, rows.length)
  // Never more in the same claim: behind what it took may be a suspect, which goes out alone.
  if (rows.length < max) marks.forget(types)
  return null
}

async function take(
  s: Session,
  worker: string,
  types: readonly number[],
  marks: readonly number[],
  max: number,
  leaseMs: number,
): Promise<ClaimedRow[]> {
  const statement = types.length === 1 ? s.q.claim : s.q.claimMany
  const values = [s.now + leaseMs, s.nowUs, s.now, worker, types, marks, max]
  const rows = await s.run<ClaimedRow>(statement, values)
  if (rows.length > 0 || (await s.run(s.q.anyReady, [types])).length === 0) return rows
  // Nobody may hold a task whom the store does not know, or did not a moment ago; who got nothing leaves no trace.
  const met = await s.run(s.q.meet, [worker, s.now])
  const now = await s.run<ClaimedRow>(statement, values)
  if (now.length === 0 && met.length > 0) await s.run(s.q.leave, [worker])
  return now
}

function delivery(
  s: Session,
  row: ClaimedRow,
  leaseMs: number,
  { batch, limited }: { batch: string | null; limited: boolean },
): ClaimedTask {
  const type = s.catalog.typeById(row.type)
  const queue = s.catalog.queueById(type?.queue ?? 0)
  const policy = s.catalog.policyOf(queue.id)
  const { id, key, number, fence, spent, deaths, enqueuedAt } = row
  return {
    ...{ receipt: receiptText(row), id: String(id), queue: queue.name, type: type?.name ?? queue.name, key, batch },
    ...{ number, fence, spent, deaths, deliveriesMax: policy.deliveriesMax, enqueuedAt, leaseMs },
    payload: asWas(row.payload),
    headers: asWas(row.headers),
    waitedMs: row.claimedAt - row.dueAt,
    timeoutMs: policy.timeoutMs,
    keepsResult: policy.resultKeepMs > 0 || (row.flags & keepsResult) > 0,
    limited,
  }
}

const byPlace = (a: ClaimedRow, b: ClaimedRow) => a.place - b.place || a.id - b.id

/** The deliveries of an earlier answer whose leases are still live. */
async function stillLeased(s: Session, ask: ClaimAsk, kept: Kept): Promise<Claimed> {
  const ids = kept.deliveries.map(([receipt]) => parseReceipt(receipt)?.id)
  const rows = await s.run<ClaimedRow>(s.q.claimedAgain, [ids])
  const deliveries = kept.deliveries.flatMap(([receipt, batch]) => {
    const row = rows.find((one) => receiptText(one) === receipt)
    if (!row) return []
    const queue = s.catalog.typeById(row.type)?.queue ?? 0
    const limited = s.catalog.limitsOf(queue).length > 0
    return [delivery(s, row, ask.leaseMs ?? s.catalog.policyOf(queue).leaseMs, { batch, limited })]
  })
  return { ...kept, deliveries }
}
