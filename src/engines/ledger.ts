// What one transaction does to tasks: the figures it gathers, alike everywhere, and the rows as an engine writes them.
import type { ErrorText } from '../engine/contract.js'
import { assert } from '../ground/assert.js'
import type { Random } from '../ground/clock.js'
import { allows, type LifeEvent, lifecycle, type State, states, totals } from '../task/lifecycle.js'
import { emptyNote, type LimitNote } from '../task/limiter.js'
import type { HistoryRecord, ResultRecord } from '../task/records.js'
import { heeds } from './limits.js'
import type { Names } from './names.js'

/** What a decision reads of a task. */
export interface HeldRow {
  id: number
  queue: number
  type: number
  state: number
  place: number
  key: string | null
  slot: number
  batch: number | null
  dedupKey: string | null
  number: number
  spent: number
  releases: number
  deaths: number
  flags: number
  fence: number
  worker: number | null
  claimedAt: number | null
  priority: number
  moveTo: number | null
}

/** What says where a task holds its dedup key. */
export type DedupHolder = Pick<HeldRow, 'id' | 'queue' | 'dedupKey' | 'moveTo'>

/** What a decision writes of a task. */
export interface Changes {
  queue?: number
  type?: number
  state?: number
  place?: number
  dueAt?: number
  wakeAt?: number | null
  /** Only where `wakeAt` is no null: the instant of the wall clock that it stands for. */
  wallAt?: number | null
  deadlineAt?: number | null
  batch?: null
  spent?: number
  releases?: number
  deaths?: number
  /** Null: no receipt acts any more. */
  nonce?: null
  worker?: number | null
  slot?: number
  flags?: number
  dedupKey?: string | null
  moveTo?: number | null
  progress?: string | null
}

/** The columns of a type's figures, in this order wherever they stand in a row. */
export const figureColumns = [...states, ...totals] as const
type Figure = (typeof figureColumns)[number]
/** Where each of them stands. */
const figureAt = Object.fromEntries(figureColumns.map((name, i) => [name, i])) as Record<Figure, number>

/** The columns of a batch's figures, in this order. */
export const batchColumns = ['total', 'done', 'dead', 'cancelled', 'retries', 'returned', 'forwarded'] as const
type BatchFigure = (typeof batchColumns)[number]

export interface Replacement {
  payload: string
  headers: string | null
  priority: number
  weight: number
}

/** How a task ended, and the JSON text that is kept of it. */
export interface End {
  outcome: ResultRecord['outcome']
  result: string | null
}

export abstract class Ledger {
  /** Instant of this transaction on the engine's clock, ms. */
  abstract readonly now: number
  abstract readonly random: Random
  abstract readonly catalog: Names
  /** Keys that may have a free slot or a new first: the promotion that follows fills the slots. */
  readonly lanes = new Map<string, { queue: number; key: string }>()
  protected readonly tally = new Map<number, Float64Array>()
  protected readonly batches = new Map<number, Float64Array>()
  /** What happened under limits, by limit; a queue that draws on none has nothing here. */
  protected readonly notes = new Map<number, LimitNote>()

  /** Changes the row, here and in the store. */
  abstract change(row: HeldRow, to: Changes): void
  /** The task is gone: its row, its history and its dead letter; no receipt acts any more. */
  abstract remove(row: HeldRow): void
  /** What else a newer task of its dedup key gives it. */
  abstract replace(row: HeldRow, by: Replacement): void
  abstract setPayload(row: HeldRow, payload: string): void
  /** Keeps what became of one delivery. */
  abstract addHistory(row: HeldRow, outcome: HistoryRecord['outcome'], error: ErrorText | null): void
  abstract addDead(row: HeldRow, reason: string, error: ErrorText | null): void
  abstract dropDead(row: HeldRow): void
  /** The dead letter goes with its task to another type. */
  abstract moveDead(row: HeldRow, type: number): void
  /** The task gives its dedup key up, at once or at `endsAt`, wherever it holds it. */
  abstract freeDedup(row: DedupHolder, endsAt: number | null): void
  /** Keeps how a task ended, and what its handler returned, until `endsAt`. */
  abstract keepResult(row: Pick<HeldRow, 'id' | 'type'>, end: End, endsAt: number): void
  /** Notes that the type's tasks are no longer claimed in the order they became due. */
  abstract mix(type: number): void
  /** Leases under a limit ended: tasks of these types (ids) that waited for room may have it. */
  abstract wakeTypes(types: Iterable<number>): void

  /** Counts one step of a task's life, `into` another type or its own; every write of a state goes with one call. */
  count(event: LifeEvent, type: number, from: State | null, to: State | null, into = type): void {
    assert(allows(event, from, to), `the life cycle has ${event} from ${from} to ${to}`)
    const deltas = deltasOf(this.tally, type, figureColumns)
    if (from !== null) add(deltas, figureAt[from], -1)
    if (to !== null) add(into === type ? deltas : deltasOf(this.tally, into, figureColumns), figureAt[to], 1)
    const total = lifecycle[event].counts
    if (total !== null) add(deltas, figureAt[total], 1)
    if (from === 'leased' && to !== 'leased') this.wakeTypes(this.catalog.sharing(type))
  }

  /** Notes something of this kind under every limit that heeds it, of those that the queue draws on. */
  note(queue: number, kind: keyof typeof heeds, change: (note: LimitNote) => void): void {
    for (const limit of this.catalog.limitsOf(queue)) {
      if (!heeds[kind](limit)) continue
      const { id } = limit
      const note = this.notes.get(id) ?? emptyNote(this.now)
      this.notes.set(id, note)
      change(note)
    }
  }

  /** What this transaction added to a figure of a type and has not written yet. */
  added(type: number, name: Figure): number {
    return this.tally.get(type)?.[figureAt[name]] ?? 0
  }

  figure(type: number, name: Figure, n: number): void {
    add(deltasOf(this.tally, type, figureColumns), figureAt[name], n)
  }

  countBatch(batch: number | null, name: BatchFigure, n = 1): void {
    if (batch !== null) add(deltasOf(this.batches, batch, batchColumns), batchColumns.indexOf(name), n)
  }

  /** The queues (ids) in which a task holds its dedup key: its own, and the one it was asked to move to. */
  protected dedupHomes({ queue, moveTo }: DedupHolder): number[] {
    const there = moveTo === null ? undefined : this.catalog.typeById(moveTo)?.queue
    return there === undefined ? [queue] : [queue, there]
  }

  touchLane(queue: number, key: string | null): void {
    if (key !== null) this.lanes.set(`${queue} ${key}`, { queue, key })
  }
}

function deltasOf(sums: Map<number, Float64Array>, of: number, columns: readonly string[]): Float64Array {
  let deltas = sums.get(of)
  if (!deltas) {
    deltas = new Float64Array(columns.length)
    sums.set(of, deltas)
  }
  return deltas
}

function add(deltas: Float64Array, index: number, n: number): void {
  deltas[index] = (deltas[index] ?? 0) + n
}
