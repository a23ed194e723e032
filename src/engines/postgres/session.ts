// One transaction: its instant, the rows it holds, and the changes it gathers to send them as one array a kind.
import type { ErrorText } from '../../engine/contract.js'
import { assert } from '../../ground/assert.js'
import type { Random } from '../../ground/clock.js'
import { PieceworkError } from '../../ground/errors.js'
import type { LimitState } from '../../task/limiter.js'
import type { HistoryRecord } from '../../task/records.js'
import { fingerprint } from '../fingerprint.js'
import { type Changes, type DedupHolder, type End, type HeldRow, Ledger, type Replacement } from '../ledger.js'
import { code } from '../receipt.js'
import type { Catalog } from './catalog.js'
import type { Link } from './link.js'
import { format } from './schema.js'
import { putColumns, type Statement, type Statements } from './statements.js'

/** Reads the store's row and its clock; throws PW_SCHEMA_NEW. */
export async function enter(link: Link, q: Statements): Promise<{ nowUs: number; settings: number }> {
  const [row] = await link.run<{ format: number; settings: number; nowUs: number }>(q.enter)
  assert(row, 'the store has its row')
  if (row.format > format) {
    throw new PieceworkError('PW_SCHEMA_NEW', `The store has format ${row.format}; this version knows ${format}.`, {
      format: row.format,
    })
  }
  return row
}

export class Session extends Ledger {
  /** Instant of this transaction on the engine's clock, which is the wall clock: whole ms, and whole µs for fences. */
  readonly now: number
  /** Types (ids) that may have new ready tasks when this has been committed, each with its lowest new place. */
  readonly woken = new Map<number, number>()
  private readonly puts = new Map<number, HeldRow>()
  private readonly removed = new Set<number>()
  private readonly lists = new Map<Statement, unknown[][]>()
  private readonly singles: { statement: Statement; values: readonly unknown[] }[] = []
  private readonly names = new Map<number, string>()
  /** States of the limits that this transaction has locked. */
  readonly limitStates = new Map<number, LimitState>()

  constructor(
    readonly link: Link,
    readonly q: Statements,
    readonly catalog: Catalog,
    readonly random: Random,
    /** The schema's name, quoted where it must be. */
    readonly schema: string,
    readonly nowUs: number,
    /** True inside a caller's transaction: there it may take long until others see what we write. */
    readonly foreign = false,
  ) {
    super()
    this.now = Math.floor(nowUs / 1000)
  }

  /** Runs a statement after everything gathered so far. */
  async run<Row>(statement: Statement, values: readonly unknown[] = []): Promise<Row[]> {
    const steps = this.gathered(false)
    const answers = await this.link.all([...steps, () => this.link.run(statement, values)])
    return answers.at(-1) as Row[]
  }

  /** Sends everything gathered, and then `text`; answers its command. */
  async finish(text: string): Promise<string> {
    const answers = await this.link.all([...this.gathered(true), () => this.link.say(text)])
    return answers.at(-1) as string
  }

  async flush(): Promise<void> {
    await this.link.all(this.gathered(true))
  }

  /** Gathers one row of a statement that takes arrays. */
  add(statement: Statement, ...row: unknown[]): void {
    const list = this.lists.get(statement)
    if (list) list.push(row)
    else this.lists.set(statement, [row])
  }

  /** Gathers a statement of its own. */
  send(statement: Statement, ...values: unknown[]): void {
    this.singles.push({ statement, values })
  }

  /** A row of ours was read with every column that can change: it is written back whole. */
  change(row: HeldRow, to: Changes): void {
    Object.assign(row, to)
    this.puts.set(row.id, row)
    if (to.state === code.ready) this.readied(row.type, row.place)
  }

  /** Also later in this transaction no receipt acts any more. */
  remove(row: HeldRow): void {
    this.puts.delete(row.id)
    this.removed.add(row.id)
    Object.assign(row, { nonce: null })
  }

  replace({ id }: HeldRow, { payload, headers, priority, weight }: Replacement): void {
    this.send(this.q.replace, clean(payload), clean(headers), priority, weight, id)
  }

  setPayload({ id }: HeldRow, payload: string): void {
    this.send(this.q.edit, clean(payload), id)
  }

  /** `know` has read the worker's name. */
  addHistory(row: HeldRow, outcome: HistoryRecord['outcome'], error: ErrorText | null): void {
    const { id, number, fence, worker, claimedAt } = row
    const by = worker === null ? null : (this.names.get(worker) ?? null)
    const { code = null, text = null } = error ?? {}
    this.add(this.q.addHistory, id, number, fence, outcome, clean(code), clean(text), by, claimedAt, this.now)
  }

  addDead({ id, type }: HeldRow, reason: string, error: ErrorText | null): void {
    const { code = null, text = null } = error ?? {}
    this.add(this.q.addDead, id, type, reason, clean(code), clean(text), fingerprint(reason, error), this.now)
  }

  dropDead({ id }: HeldRow): void {
    this.add(this.q.dropDead, id)
  }

  /** After all that was added: the dead letter may be of this transaction. */
  moveDead({ id }: HeldRow, type: number): void {
    this.send(this.q.moveDead, type, id)
  }

  freeDedup(row: DedupHolder, endsAt: number | null): void {
    const { id, dedupKey } = row
    for (const queue of this.dedupHomes(row)) {
      if (endsAt === null) this.add(this.q.dropDedups, queue, dedupKey, id)
      else this.add(this.q.endDedups, queue, dedupKey, id, endsAt)
    }
  }

  keepResult({ id, type }: Pick<HeldRow, 'id' | 'type'>, { outcome, result }: End, endsAt: number): void {
    this.add(this.q.addResults, id, type, outcome, clean(result), this.now, endsAt)
  }

  mix(type: number): void {
    const row = this.catalog.typeById(type)
    if (row?.mixed !== 0) return
    this.send(this.q.mixTypes, [type])
    row.mixed = 1
  }

  /** No lower place than before, but room. */
  wakeTypes(types: Iterable<number>): void {
    for (const type of types) this.readied(type, Number.POSITIVE_INFINITY)
  }

  /** Notes that a task of a type is claimable from `place` on. */
  readied(type: number, place: number): void {
    this.woken.set(type, Math.min(place, this.woken.get(type) ?? place))
  }

  /** Learns the names of the workers that hold these rows, for their history. */
  async know(rows: readonly HeldRow[]): Promise<void> {
    const unknown = new Set(rows.flatMap(({ worker }) => (worker === null || this.names.has(worker) ? [] : [worker])))
    if (unknown.size === 0) return
    for (const { id, name } of await this.run<{ id: number; name: string }>(this.q.workerNames, [[...unknown]])) {
      this.names.set(id, name)
    }
  }

  /** Figures wait for the `end`: nothing in a transaction reads them, and so a type's deltas are one row. */
  private gathered(end: boolean): (() => Promise<unknown>)[] {
    const { q } = this
    const sends: [Statement, readonly unknown[]][] = []
    this.forgetRemoved()
    // What is said of a delivery's end comes before the end.
    for (const [statement, list] of this.lists) sends.push([statement, columnsOf(list)])
    if (this.puts.size > 0) {
      const rows = [...this.puts.values()] as unknown as Record<string, unknown>[]
      sends.push([q.put, Object.keys(putColumns).map((column) => rows.map((row) => row[column]))])
    }
    if (this.removed.size > 0) sends.push([q.remove, [[...this.removed]]])
    if (end) sends.push(...this.figures())
    for (const { statement, values } of this.singles) sends.push([statement, values])
    this.puts.clear()
    this.removed.clear()
    this.lists.clear()
    this.singles.length = 0
    return sends.map(
      ([statement, values]) =>
        () =>
          this.link.run(statement, values),
    )
  }

  private figures(): [Statement, unknown[][]][] {
    const { q, now } = this
    // Null for what did not change: it takes no room in a delta.
    const changed = (deltas: Float64Array) => [...deltas].map((delta) => delta || null)
    const tally = [...this.tally].map(([type, deltas]) => [type, ...changed(deltas)])
    const progress = [...this.batches].map(([batch, deltas]) => [batch, ...changed(deltas), now])
    this.tally.clear()
    this.batches.clear()
    const sends: [Statement, unknown[][]][] = []
    for (const [id, note] of this.notes) sends.push([q.addLimitNote, [id, JSON.stringify(note)] as never])
    this.notes.clear()
    if (tally.length > 0) sends.push([q.addTally, columnsOf(tally)])
    if (progress.length > 0) sends.push([q.addProgress, columnsOf(progress)])
    return sends
  }

  /** What was noted of a task that is gone would outlive it. */
  private forgetRemoved(): void {
    if (this.removed.size === 0) return
    for (const statement of [this.q.addHistory, this.q.addDead]) {
      const list = this.lists.get(statement)?.filter(([id]) => !this.removed.has(id as number))
      if (list && list.length > 0) this.lists.set(statement, list)
      else this.lists.delete(statement)
    }
  }
}

/** PostgreSQL's text holds every character but NUL, which errors may carry: U+FFFF, which means nothing, escapes it. */
export const clean = <T extends string | null>(text: T): T =>
  (text === null ? null : text.replace(/[\0\uffff]/g, (found) => (found === '\0' ? '\uffff0' : '\uffff1'))) as T

/** The text that `clean` made storable. */
export const asWas = <T extends string | null>(text: T): T =>
  (text === null ? null : text.replace(/\uffff([01])/g, (_, n) => (n === '0' ? '\0' : '\uffff'))) as T

const columnsOf = (list: readonly unknown[][]): unknown[][] => (list[0] ?? []).map((_, i) => list.map((row) => row[i]))
