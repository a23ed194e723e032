// Hands out ready tasks on PostgreSQL: one statement that skips what others lock, from a remembered place on.
import type { Blocker, ClaimAsk, Claimed, ClaimedTask, Want } from '../../engine/contract.js'
import type { Clock } from '../../ground/clock.js'
import { answerKeepMs } from '../../task/limits.js'
import { keepsResult, parseReceipt, receiptText } from '../receipt.js'
import { taken } from './errors.js'
import { asWas, clean, type Session } from './session.js'
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
 * from the start, and a claim that gets less than it asked for looks again.
 */
export class Marks {
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
    return types.map((type) => this.#marks.get(type) ?? Number.MIN_SAFE_INTEGER)
  }

  raise(type: number, place: number): void {
    this.#marks.set(type, place)
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
  if (request !== null) {
    const [kept] = await s.run<{ answer: string }>(s.q.answerOf, [request, s.now])
    if (kept) return stillLeased(s, ask, JSON.parse(kept.answer) as Kept)
  }
  if (marks.due()) {
    const { matured, expired } = await sweepDue(s, 200)
    // What matured may wait behind its key, or have made room for others: they are promoted before we choose.
    if (matured + expired > 0 && s.lanes.size > 0) return again
    marks.looked()
  }
  const answer: Claimed = { deliveries: [], nextDueMs: null, blockedBy: [] }
  for (const want of ask.wants) await claimWant(s, ask, want, marks, answer)
  if (answer.deliveries.length === 0) {
    await meet(s, ask.worker)
    answer.nextDueMs = await nextDueMs(s)
  }
  // Who asks again after nothing may get something.
  if (request !== null && answer.deliveries.length > 0) {
    const deliveries = answer.deliveries.map(({ receipt, batch }) => [receipt, batch])
    await keep(s, request, { ...answer, deliveries })
  }
  return answer
}

/** Names a call whose answer is kept; two that differ never have one name. */
export const requestName = (...parts: string[]): string => clean(JSON.stringify(parts))

/** Stores an answer; runs the transaction again when the same request was just answered elsewhere. */
export async function keep(s: Session, request: string, answer: unknown): Promise<void> {
  const rows = await s.run(s.q.addAnswer, [request, JSON.stringify(answer), s.now + answerKeepMs, s.now])
  if (rows.length === 0) throw taken()
}

async function claimWant(s: Session, ask: ClaimAsk, want: Want, marks: Marks, answer: Claimed): Promise<void> {
  const queue = s.catalog.queue(want.queue)
  if (!queue || want.max <= 0) return
  if (queue.pausedAt !== null) {
    answer.blockedBy.push({ queue: want.queue, by: 'pause' })
    return
  }
  const types = s.catalog.claimable(queue.id, want.types)
  if (types.length === 0) return
  const leaseMs = ask.leaseMs ?? s.catalog.policyOf(queue.id).leaseMs
  const from = marks.of(types)
  let rows = await take(s, ask.worker, types, from, want.max, leaseMs)
  const low = Number.MIN_SAFE_INTEGER
  if (rows.length < want.max && from.some((mark) => mark !== low)) {
    const rest = want.max - rows.length
    const more = await take(
      s,
      ask.worker,
      types,
      types.map(() => low),
      rest,
      leaseMs,
    )
    rows = rows.concat(more)
  }
  rows.sort(byPlace)
  const batchName = await s.catalog.batchNames(
    s.link,
    rows.map((row) => row.batch),
  )
  for (const row of rows) {
    s.count('claim', row.type, 'ready', 'leased')
    marks.raise(row.type, row.place)
    answer.deliveries.push(delivery(s, row, leaseMs, batchName(row.batch)))
  }
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
  return rows.length > 0 || !(await meet(s, worker)) ? rows : s.run<ClaimedRow>(statement, values)
}

/** Nobody may hold a task whom the store does not know; true when it did not know this worker. */
async function meet(s: Session, worker: string): Promise<boolean> {
  if ((await s.run(s.q.workerByName, [worker])).length > 0) return false
  await s.run(s.q.meet, [worker, s.now])
  return true
}

function delivery(s: Session, row: ClaimedRow, leaseMs: number, batch: string | null): ClaimedTask {
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
    return [delivery(s, row, ask.leaseMs ?? s.catalog.policyOf(queue).leaseMs, batch)]
  })
  return { ...kept, deliveries }
}
