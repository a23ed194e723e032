// One write transaction: its instant, the numbers it gives out, the names it knows and the figures it changes.
import type { Database } from 'better-sqlite3'
import { assert } from '../../ground/assert.js'
import type { Clock, Random } from '../../ground/clock.js'
import { PieceworkError } from '../../ground/errors.js'
import { allows, type LifeEvent, lifecycle, type State, states, totals } from '../../task/lifecycle.js'
import { Catalog } from './catalog.js'
import { format } from './schema.js'
import { prepareAll, type Statements } from './statements.js'
import { asleepNow, type ClockRow, engineUs, reserveUs, sleepNoticedMs } from './time.js'

interface StoreRow extends ClockRow {
  lostAt: number
  format: number
  lastId: number
  settings: number
}

const columns = [...states, ...totals]
const columnOf = Object.fromEntries(columns.map((name, i) => [name, i])) as Record<(typeof columns)[number], number>
const batchColumns = { total: 0, done: 1, dead: 2, cancelled: 3, retries: 4, returned: 5 } as const
type BatchColumn = keyof typeof batchColumns

/** Once the store can be written again, every heartbeat has extended what it holds within this time. */
const extendedWithinMs = 1000

export class Session {
  readonly q: Statements
  readonly catalog: Catalog
  /** Instant of this transaction on the engine's clock: whole ms, and whole µs for ids and fences. */
  now = 0
  nowUs = 0
  /** True when this transaction claimed tasks; their claims are synced soon. */
  claimed = false
  private row: StoreRow | null = null
  private lastId = 0
  /** True when this transaction moved the reservation: it must be synced before any number of it gets out. */
  reserved = false
  private readonly tally = new Map<number, Float64Array>()
  private readonly batches = new Map<number, Float64Array>()
  private readonly lanes = new Map<string, { queue: number; key: string }>()
  private readonly woken = new Set<number>()

  constructor(
    readonly db: Database,
    readonly clock: Clock,
    readonly random: Random,
    /** Told after a commit which queues (ids) may have new ready tasks. */
    private readonly wake: (queues: Iterable<number>) => void,
  ) {
    this.q = prepareAll(db)
    this.catalog = new Catalog(this.q)
  }

  /** Takes the write lock; throws SQLITE_BUSY when somebody else has it. */
  begin(): void {
    this.q.begin.run()
    try {
      this.enter()
    } catch (error) {
      this.rollback()
      throw error
    }
  }

  /** Starts a snapshot to read in. */
  beginRead(): void {
    this.q.readBegin.run()
    this.enter()
  }

  endRead(): void {
    this.row = null
    if (this.db.inTransaction) this.q.commit.run()
  }

  /** Reads what a transaction starts from; also used inside a transaction that the caller began. */
  enter(): void {
    const row = this.q.store.get() as StoreRow
    if (row.format > format) {
      throw new PieceworkError('PW_SCHEMA_NEW', `The store has format ${row.format}; this version knows ${format}.`, {
        format: row.format,
      })
    }
    this.row = row
    this.lastId = row.lastId
    this.nowUs = engineUs(this.clock, row)
    this.now = Math.floor(this.nowUs / 1000)
    this.claimed = false
    this.reserved = this.nowUs > row.reservedUs - reserveUs / 2
    this.catalog.validFor(row.settings)
  }

  commit(): void {
    const { woken } = this
    this.leave()
    this.q.commit.run()
    if (woken.size > 0) {
      this.wake(woken)
      woken.clear()
    }
  }

  /** Writes what was gathered; the caller commits. */
  leave(): void {
    const { row } = this
    assert(row, 'a transaction is open')
    this.flushFigures()
    const settings = row.settings + (this.catalog.changed ? 1 : 0)
    if (this.lastId !== row.lastId || this.reserved || settings !== row.settings) {
      this.q.setStore.run(this.lastId, this.reserved ? this.nowUs + reserveUs : row.reservedUs, settings)
    }
    this.catalog.committed(settings)
    this.row = null
  }

  rollback(): void {
    this.row = null
    this.tally.clear()
    this.batches.clear()
    this.lanes.clear()
    this.woken.clear()
    this.catalog.forget()
    if (this.db.inTransaction) this.q.rollback.run()
  }

  /**
   * Lengthens running leases by the time since `fromMs` (engine clock) in which nobody could write; once for all.
   * Who waited only for the end of it knows too little of it: no lease ends before its holder could extend it, too.
   */
  giveBackTime(fromMs: number): void {
    assert(this.row, 'a transaction is open')
    const lostMs = this.now - Math.max(fromMs, this.row.lostAt)
    if (lostMs <= 0) return
    this.q.lengthenLeases.run(lostMs, this.now + extendedWithinMs)
    this.q.setLost.run(this.now)
  }

  /** Takes time the machine slept into the clock and into running leases; true when there was some. */
  wakeUp(): boolean {
    assert(this.row, 'a transaction is open')
    const { row } = this
    const sleptMs = asleepNow(this.clock) - row.asleepMs
    if (sleptMs < sleepNoticedMs) return false
    row.offsetUs += sleptMs * 1000
    // Noted here too: another sweep of this transaction must not take the same sleep in again.
    row.asleepMs += sleptMs
    this.q.setAsleep.run(row.offsetUs, row.asleepMs)
    this.q.lengthenLeases.run(sleptMs, 0)
    this.nowUs = engineUs(this.clock, row)
    this.now = Math.floor(this.nowUs / 1000)
    this.reserved ||= this.nowUs > row.reservedUs - reserveUs / 2
    return true
  }

  /** True when the machine slept since somebody looked. */
  get slept(): boolean {
    return this.row !== null && asleepNow(this.clock) - this.row.asleepMs >= sleepNoticedMs
  }

  /** The next `count` ids; answers the first. They rise in call order and never repeat, see docs/adr/0001. */
  ids(count: number): number {
    const first = Math.max(this.lastId + 1, this.nowUs)
    this.lastId = first + count - 1
    return first
  }

  /** What to add to an engine instant to print it as wall-clock ms. */
  get wallShift(): number {
    return this.clock.wallMs() - this.now
  }

  /** Counts one step of a task's life; every write of a state goes with one call of it. */
  count(event: LifeEvent, type: number, from: State | null, to: State | null): void {
    assert(allows(event, from, to), `the life cycle has ${event} from ${from} to ${to}`)
    const deltas = this.figures(type)
    if (from !== null) add(deltas, columnOf[from], -1)
    if (to !== null) add(deltas, columnOf[to], 1)
    const total = lifecycle[event].counts
    if (total !== null) add(deltas, columnOf[total], 1)
    if (to === 'ready') this.woken.add(type)
  }

  countStale(type: number): void {
    add(this.figures(type), columnOf.stale, 1)
  }

  /** Counts a cancellation that came with another event's end. */
  countCancelled(type: number): void {
    add(this.figures(type), columnOf.cancelled, 1)
  }

  countBatch(batch: number | null, column: BatchColumn, delta = 1): void {
    if (batch === null) return
    let deltas = this.batches.get(batch)
    if (!deltas) {
      deltas = new Float64Array(6)
      this.batches.set(batch, deltas)
    }
    add(deltas, batchColumns[column], delta)
  }

  /** Notes that a key may have a free slot or a new first; `promoteLanes` then fills the slots. */
  touchLane(queue: number, key: string): void {
    this.lanes.set(`${queue} ${key}`, { queue, key })
  }

  /** Moves the first waiting tasks of every touched key into its free slots; answers their ids. */
  promoteLanes(): Set<number> {
    const promoted = new Set<number>()
    for (const { queue, key } of this.lanes.values()) {
      const { width } = this.catalog.policyOf(queue).perKey
      const { n } = this.q.slots.get(queue, key, width) as { n: number }
      if (n >= width) continue
      for (const row of this.q.promote.all(queue, key, width - n) as { id: number; type: number }[]) {
        this.count('promote', row.type, 'waiting', 'ready')
        promoted.add(row.id)
      }
    }
    this.lanes.clear()
    return promoted
  }

  /** Ready tasks of a type that this transaction added and has not written to the figures yet. */
  addedReady(type: number): number {
    return this.tally.get(type)?.[columnOf.ready] ?? 0
  }

  private figures(type: number): Float64Array {
    let deltas = this.tally.get(type)
    if (!deltas) {
      deltas = new Float64Array(columns.length)
      this.tally.set(type, deltas)
    }
    return deltas
  }

  private flushFigures(): void {
    for (const [type, deltas] of this.tally) this.q.count.run(...deltas, type)
    this.tally.clear()
    for (const [batch, deltas] of this.batches) {
      this.q.countBatch.run(...deltas, batch)
      this.q.finishBatch.run(this.now, batch)
    }
    this.batches.clear()
  }
}

function add(deltas: Float64Array, index: number, delta: number): void {
  deltas[index] = (deltas[index] ?? 0) + delta
}
