// One write transaction: its instant, the numbers it gives out, and how it writes what becomes of tasks.
import type { Database } from 'better-sqlite3'
import type { ErrorText } from '../../engine/contract.js'
import { assert } from '../../ground/assert.js'
import type { Clock, Random } from '../../ground/clock.js'
import { PieceworkError } from '../../ground/errors.js'
import type { LifeEvent, State } from '../../task/lifecycle.js'
import type { HistoryRecord } from '../../task/records.js'
import { fingerprint } from '../fingerprint.js'
import { type Changes, type DedupHolder, type End, type HeldRow, Ledger, type Replacement } from '../ledger.js'
import { code } from '../receipt.js'
import { Catalog } from './catalog.js'
import { follow } from './enqueue.js'
import { LimitStates, takeIn } from './limits.js'
import { format } from './schema.js'
import { prepareAll, type Statements } from './statements.js'
import { asleepNow, type ClockRow, engineUs, reserveUs, sleepNoticedMs } from './time.js'

interface StoreRow extends ClockRow {
  lostAt: number
  format: number
  lastId: number
  settings: number
}

/** Once the store can be written again, every heartbeat has extended what it holds within this time. */
const extendedWithinMs = 1000

export class Session extends Ledger {
  readonly q: Statements
  readonly catalog: Catalog
  readonly limits: LimitStates
  /** Instant of this transaction on the engine's clock: whole ms, and whole µs for ids and fences. */
  now = 0
  nowUs = 0
  /** True when this transaction claimed tasks; their claims are synced soon. */
  claimed = false
  /** Wall clock minus engine clock when all tasks due on the wall clock were reckoned; null: nobody knows. */
  wallSeen: number | null = null
  private row: StoreRow | null = null
  private lastId = 0
  /** Up to here the clock may give numbers out. */
  private numbersToUs = Number.POSITIVE_INFINITY
  /** True when this transaction moved the reservation: it must be synced before any number of it gets out. */
  reserved = false
  private readonly woken = new Set<number>()

  constructor(
    readonly db: Database,
    readonly clock: Clock,
    readonly random: Random,
    /** Told after a commit which queues (ids) may have new ready tasks. */
    private readonly wake: (queues: Iterable<number>) => void,
  ) {
    super()
    this.q = prepareAll(db)
    this.catalog = new Catalog(this.q)
    this.limits = new LimitStates(this.q)
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
    this.limits.forget()
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

  /** True between begin and commit. */
  get entered(): boolean {
    return this.row !== null
  }

  /** Runs `work` in a transaction that somebody else began and will end; what throws has changed nothing. */
  visit<T>(work: (session: this) => T): T {
    this.q.savepoint.run()
    try {
      this.enter()
      // Nobody here can sync a reservation that others commit: numbers stay below the one that is there.
      this.reserved = false
      this.numbersToUs = (this.row as unknown as StoreRow).reservedUs - reserveUs / 2
      const answer = work(this)
      this.leave()
      this.q.release.run()
      return answer
    } catch (error) {
      // SQLite itself has ended the transaction when it could not go on.
      if (this.db.inTransaction) {
        this.q.undo.run()
        this.q.release.run()
      }
      throw error
    } finally {
      // Whether this will be committed is not known, so nothing of it is remembered; waiting processes see the commit.
      this.forget()
    }
  }

  rollback(): void {
    this.forget()
    if (this.db.inTransaction) this.q.rollback.run()
  }

  private forget(): void {
    this.row = null
    this.tally.clear()
    this.batches.clear()
    this.notes.clear()
    this.lanes.clear()
    this.woken.clear()
    this.catalog.forget()
    // What was reckoned anew is undone.
    this.wallSeen = null
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
    const first = Math.max(this.lastId + 1, Math.min(this.nowUs, this.numbersToUs))
    this.lastId = first + count - 1
    return first
  }

  /** What to add to an engine instant to print it as wall-clock ms. */
  get wallShift(): number {
    return this.clock.wallMs() - this.now
  }

  change(row: HeldRow, to: Changes): void {
    const held = row as unknown as Record<string, unknown>
    const values: unknown[] = []
    // What waits for no instant waits for none of the wall clock.
    let set = to.wakeAt === null ? 'wallAt = null' : ''
    for (const column of Object.keys(to) as (keyof Changes)[]) {
      const value = to[column]
      set += set === '' ? `${column} = ?` : `, ${column} = ?`
      values.push(value)
      // What a decision never reads is not in the row: adding it would make a slow object of it, at 20 us a task.
      if (column in held) held[column] = value
    }
    this.q.put(set).run(...values, row.id)
  }

  remove({ id, state }: HeldRow): void {
    this.q.remove.run(id)
    this.q.dropHistory.run(id)
    if (state === code.dead) this.q.dropDead.run(id)
  }

  replace({ id }: HeldRow, { payload, headers, priority, weight }: Replacement): void {
    this.q.replace.run(payload, headers, priority, weight, id)
  }

  setPayload({ id }: HeldRow, payload: string): void {
    this.q.edit.run(payload, id)
  }

  addHistory(
    { id, number, fence, worker, claimedAt }: HeldRow,
    outcome: HistoryRecord['outcome'],
    error: ErrorText | null,
  ): void {
    const by = worker === null ? undefined : (this.q.workerById.get(worker) as { name: string } | undefined)
    const { code = null, text = null } = error ?? {}
    this.q.addHistory.run(id, number, fence, outcome, code, text, by?.name ?? null, claimedAt, this.now)
  }

  addDead({ id, type }: HeldRow, reason: string, error: ErrorText | null): void {
    const { code = null, text = null } = error ?? {}
    this.q.addDead.run(id, type, reason, code, text, fingerprint(reason, error), this.now)
  }

  dropDead({ id }: HeldRow): void {
    this.q.dropDead.run(id)
  }

  moveDead({ id }: HeldRow, type: number): void {
    this.q.moveDead.run(type, id)
  }

  freeDedup(row: DedupHolder, endsAt: number | null): void {
    const { id, dedupKey } = row
    for (const queue of this.dedupHomes(row)) {
      if (endsAt === null) this.q.dropDedup.run(queue, dedupKey, id)
      else this.q.endDedup.run(endsAt, queue, dedupKey, id)
    }
  }

  keepResult({ id, type }: Pick<HeldRow, 'id' | 'type'>, { outcome, result }: End, endsAt: number): void {
    this.q.addResult.run(id, type, outcome, result, this.now, endsAt)
  }

  mix(type: number): void {
    this.catalog.mix(type)
  }

  override count(event: LifeEvent, type: number, from: State | null, to: State | null, into = type): void {
    super.count(event, type, from, to, into)
    if (to === 'ready') this.woken.add(into)
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

  wakeTypes(types: Iterable<number>): void {
    for (const type of types) this.woken.add(type)
  }

  /** Takes what was noted under limits into their states. */
  takeNotes(): void {
    if (this.notes.size === 0) return
    takeIn(this, this.notes)
    this.notes.clear()
  }

  private flushFigures(): void {
    this.flushBatches()
    this.takeNotes()
    this.limits.write()
    for (const [type, deltas] of this.tally) this.q.count.run(...deltas, type)
    this.tally.clear()
  }

  /** Writes what batches count; one that this finishes gets its follow-up, which may be in another batch. */
  flushBatches(): void {
    for (const [batch, deltas] of this.batches) {
      this.batches.delete(batch)
      this.q.countBatch.run(...deltas, batch)
      const ended = this.q.finishBatch.get(this.now, batch) as { followUp: string | null } | undefined
      if (ended?.followUp != null) follow(this, batch, ended.followUp)
    }
  }
}
