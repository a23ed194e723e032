// The SQLite engine: one file, many processes, group commit; each verb is one call inside a shared transaction.

import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Database } from 'better-sqlite3'
import type {
  Amended,
  Change,
  ClaimAsk,
  Claimed,
  Descriptor,
  Engine,
  Enqueued,
  Figures,
  Filter,
  Held,
  Kind,
  NewTask,
  Page,
  Patch,
  Swept,
  Traits,
  Verdict,
  WorkerInfo,
} from '../../engine/contract.js'
import type { Ask, Effect, SyncEngine } from '../../engine/transactions.js'
import type { Clock, Random } from '../../ground/clock.js'
import { PieceworkError } from '../../ground/errors.js'
import { warn } from '../../ground/warn.js'
import type { Outcome } from '../../task/lifecycle.js'
import { diedTogether } from '../endings.js'
import type { WorkerRow } from '../shown.js'
import { amend } from './amend.js'
import { answered } from './answer.js'
import { claim, hasReady, nothingToClaim } from './claim.js'
import { configure } from './configure.js'
import { enqueue } from './enqueue.js'
import { isBusy, translated } from './errors.js'
import { growthWatch } from './growth.js'
import type { Guard } from './guard.js'
import type { Liveness } from './liveness.js'
import { measure } from './measure.js'
import { driver, type OpeningOptions, openParts, type Parts } from './opening.js'
import { Patient } from './patient.js'
import { placeOf } from './place.js'
import { freeReserve } from './room.js'
import { select } from './select.js'
import { Session } from './session.js'
import { extend, settle } from './settle.js'
import { connectFile, migrateStore } from './store.js'
import { outlook, sweep } from './sweep.js'
import { type Syncer, unawaited } from './sync.js'
import { Turn } from './turn.js'
import { ackWithin, isHeld, once, Visits } from './visit.js'
import { Wake } from './wake.js'
import { rewall, wallMoved } from './wall.js'
import { beat, findDead, join, leave, oldBeat } from './workers.js'

export type SqliteOptions = OpeningOptions

interface Ports {
  clock: Clock
  random: Random
}

/** The engine over one file (or `:memory:`), not yet opened. */
export const sqliteEngine = (file: string, ports: Ports, options: SqliteOptions = {}): Engine =>
  new SqliteEngine(file === ':memory:' ? file : resolve(file), ports, options)

/** Everything that exists between open and close. */
interface Opened {
  db: Database
  session: Session
  turn: Turn
  syncer: Syncer
  liveness: Liveness
  wake: Wake
  guard: Guard
  growth: () => PieceworkError | null
  visits: Visits
}

class SqliteEngine implements SyncEngine {
  readonly traits: Traits
  private opened: Opened | null = null
  private opening: Promise<void> | null = null
  /** Workers whose row may not be there yet while our lock is already promised to it. */
  private joining = 0
  private readonly patient: Patient

  constructor(
    /** The name it was asked for by; once it is open, the file that this leads to. */
    private file: string,
    private readonly ports: Ports,
    private readonly options: SqliteOptions,
  ) {
    const memory = file === ':memory:'
    this.patient = new Patient(ports, () => this.file)
    this.traits = {
      transactions: 'sync',
      liveness: memory ? 'lease' : 'lock',
      wake: 'push',
      threads: !memory,
      sweeps: 'clients',
    }
  }

  open(): Promise<void> {
    // What refused once may be mended: the next call tries again.
    this.opening ??= this.start()
      .catch((error) => {
        // Opening needs room as well, for the log's index: whoever comes to work off what is there shall have it.
        const refusal = translated(error, this.file)
        if (refusal.code !== 'PW_DISK_FULL' || !freeReserve(this.file)) throw refusal
        return this.start()
      })
      .catch((error) => {
        this.opening = null
        throw translated(error, this.file)
      })
    return this.opening
  }

  async close(): Promise<void> {
    const { opened } = this
    this.opened = null
    this.opening = null
    if (!opened) return
    await opened.turn.settled()
    // What was committed last is synced like everything else; a disk that refuses has said so to its callers.
    await opened.syncer.after().catch(() => {})
    opened.wake.close()
    opened.liveness.drop(this.leaves(opened))
    opened.syncer.close()
    opened.db.close()
  }

  /** True when a worker of this process could not say that it leaves: its death has to say it. */
  private leaves({ session, liveness }: Opened): boolean {
    const proof = liveness.held
    if (proof === null) return false
    try {
      return session.q.proofHeld.get(proof) !== undefined
    } catch {
      return true
    }
  }

  async migrate(dryRun: boolean): Promise<string[]> {
    const Sqlite = await driver()
    this.file = placeOf(this.file)
    // Only to list what it takes is no reason to make a file.
    const place = dryRun && !existsSync(this.file) ? ':memory:' : this.file
    const db = await this.patient.until(() => connectFile(place, Sqlite, this.options))
    try {
      return await this.patient.locked(db, () => migrateStore(db, this.file, this.ports.clock, dryRun, true))
    } finally {
      db.close()
    }
  }

  descriptor(): Descriptor | null {
    if (!this.traits.threads) return null
    return { engine: 'sqlite', file: this.file, durability: this.options.durability ?? 'group', create: false }
  }

  async enqueue(requestId: string | null, tasks: readonly NewTask[], tx?: unknown): Promise<Enqueued[]> {
    refuseTx(tx)
    if (this.use().guard.full()) throw this.noRoom()
    const request = requestId && `enqueue ${requestId}`
    return this.use().turn.run((s) => answered(s, request, tasks, () => enqueue(s, tasks)), always, {
      items: tasks.length,
      grows: true,
    })
  }

  enqueueSync(tasks: readonly NewTask[], tx: unknown): Enqueued[] {
    const { visits, guard } = this.use()
    if (guard.full()) throw this.noRoom()
    return visits.run(tx, (s) => enqueue(s, tasks))
  }

  ackSync(receipt: string, tx: unknown): Ask {
    this.use().visits.run(tx, (s) => ackWithin(s, receipt))
    // Whoever gets the lock that writers share finds no transaction open.
    return () => this.write((s) => (isHeld(s, receipt) ? 'held' : 'acked'), always)
  }

  onceSync(effect: Effect, tx: unknown): boolean {
    return this.use().visits.run(tx, (s) => once(s, effect))
  }

  async transactSync<T>(work: (tx: unknown) => T): Promise<T> {
    const { visits, turn } = this.use()
    let failed: { error: unknown } | null = null
    const call = () => {
      try {
        return visits.call(work)
      } catch (error) {
        failed = { error }
        throw error
      }
    }
    // A transaction of its own: what the caller's function does is neither repeated nor undone for the sake of others.
    return turn.run(call, always, { items: Number.POSITIVE_INFINITY }).catch((error: unknown) => {
      throw failed ? failed.error : error
    })
  }

  async claim(ask: ClaimAsk): Promise<Claimed> {
    const nothing = this.use().turn.idle ? this.glance((s) => nothingToClaim(s, ask)) : null
    if (nothing) return nothing
    return this.write(
      (s) => claim(s, ask),
      // A task that was handed out before: its new fence must be on disk before its handler starts.
      (claimed) => claimed.deliveries.some((delivery) => delivery.number > 1),
      ask.wants.reduce((sum, want) => sum + want.max, 0),
    )
  }

  settle(by: { worker: string; flush: string | null }, verdicts: readonly Verdict[], tx?: unknown): Promise<Outcome[]> {
    refuseTx(tx)
    const request = by.flush === null ? null : `settle ${by.worker.length} ${by.worker} ${by.flush}`
    return this.write((s) => answered(s, request, verdicts, () => settle(s, verdicts)), always, verdicts.length)
  }

  extend(
    _worker: string,
    asks: readonly { receipt: string; leaseMs: number; progress?: string | undefined }[],
  ): Promise<Held[]> {
    return this.write((s) => extend(s, asks), never, asks.length)
  }

  async worker(event: 'join' | 'beat' | 'leave', info: WorkerInfo): Promise<{ alive: boolean; cancelled: string[] }> {
    // Our lock proves the life of this machine's workers only; one that joins from afar has none.
    const ours = info.bootId === this.ports.clock.bootId
    if (event === 'join' && ours) return this.join(info)
    const heard = event === 'beat' ? this.glance((s) => oldBeat(s, info)) : null
    if (heard) return heard
    const told = await this.write((s) => {
      if (event === 'beat') return beat(s, info)
      if (event === 'join') join(s, info, null)
      else leave(s, info.worker)
      return { alive: event === 'join', cancelled: [] }
    }, never)
    // Its file would stay behind for ever where a program ends without close().
    const { opened } = this
    if (event === 'leave' && opened && this.joining === 0 && !this.leaves(opened)) opened.liveness.drop(false)
    return told
  }

  private async join(info: WorkerInfo): Promise<{ alive: boolean; cancelled: string[] }> {
    this.joining++
    try {
      const proof = this.hold()
      await this.write((s) => join(s, info, proof), never)
      return { alive: true, cancelled: [] }
    } finally {
      this.joining--
    }
  }

  async sweep(max: number): Promise<Swept> {
    const { session, liveness, turn, guard } = this.use()
    guard.check()
    const growth = this.use().growth()
    if (growth) warn(growth)
    const look = (s: Session) => ({
      workers: s.q.workers.all() as WorkerRow[],
      jumped: wallMoved(s),
      ahead: outlook(s, guard.full()),
    })
    const { workers, jumped, ahead } = this.glance(look) ?? (await this.read(look))
    const dead = findDead(workers, session.clock.bootId, liveness)
    const { quiet, nextMs, slots } = ahead
    if (quiet && dead.length === 0 && !jumped && turn.idle) {
      return { expired: 0, died: 0, matured: 0, promoted: 0, folded: 0, nextMs }
    }
    const proofs = dead.map((row) => row.proof)
    const crash = diedTogether(proofs, workers.length)
    const swept = await this.write((s) => {
      s.wakeUp()
      if (jumped) rewall(s)
      return sweep(s, max, { dead: dead.map((row) => row.id), crash, slots, full: guard.full() })
    }, never)
    for (const proof of proofs) if (proof !== null) liveness.clear(proof)
    return swept
  }

  wait(queues: readonly string[], ms: number, signal: AbortSignal): Promise<boolean> {
    return this.use().wake.wait(queues, ms, signal)
  }

  configure(kind: Kind, name: string, patch: Patch | null, actor: string): Promise<Patch> {
    return this.write((s) => configure(s, kind, name, patch, actor), always)
  }

  async select(kind: Kind, filter: Filter, cursor: string | null): Promise<Page> {
    return this.read((s) => select(s, kind, filter, cursor))
  }

  amend(filter: Filter, change: Change, actor: string, bounds: { max: number; dryRun: boolean }): Promise<Amended> {
    return this.write((s) => amend(s, filter, change, actor, bounds), always, bounds.max)
  }

  async measure(queues: readonly string[] | null, durable: boolean): Promise<Figures> {
    const figures = await this.read((s) => measure(s, queues))
    if (durable) await this.use().syncer.after()
    return figures
  }

  private async start(): Promise<void> {
    this.file = placeOf(this.file)
    const parts = await openParts(this.file, this.ports.clock, this.options, this.patient)
    try {
      this.opened = await this.patient.until(() => this.assemble(parts))
    } catch (error) {
      parts.db.close()
      throw error
    }
  }

  private assemble({ db, guard, syncer, liveness }: Parts): Opened {
    const { clock, random } = this.ports
    const session = new Session(db, clock, random, (types) => wake.signal(session.catalog.queuesOf(types)))
    // A commit of `full` is a sync already; what it reads of processes that are not `full` may not be synced yet.
    const ofTurn = this.options.durability === 'full' ? unawaited(syncer) : syncer
    const turn = new Turn(db, this.file, clock, random, ofTurn, session, guard)
    const version = db.prepare('pragma data_version').pluck()
    const file = this.file === ':memory:' ? null : this.file
    const read = () => version.get() as number
    const wake = new Wake(file, clock, read, (queues) => this.readOnce((s) => hasReady(s, queues)))
    const growth = file === null ? () => null : growthWatch(file, clock)
    const visits = new Visits({ db, session, file: this.file, clock, random })
    return { db, session, turn, syncer, liveness, wake, guard, growth, visits }
  }

  private noRoom(): PieceworkError {
    return new PieceworkError('PW_DISK_FULL', `No room for more tasks in ${this.file}.`, { file: this.file })
  }

  private use(): Opened {
    if (!this.opened) throw new PieceworkError('PW_CLOSED', `${this.file} is not open.`, { file: this.file })
    if (this.opened.guard.moved) throw this.opened.guard.moved
    return this.opened
  }

  private hold(): string | null {
    try {
      return this.use().liveness.hold()
    } catch (error) {
      // Its file needs room, too.
      throw translated(error, this.file)
    }
  }

  private async write<T>(work: (s: Session) => T, durable: (answer: T) => boolean, items = 1): Promise<T> {
    return this.use().turn.run(work, durable, { items })
  }

  /** Reads in one snapshot; waits while another process rebuilds the log's index, as after the death of a writer. */
  private read<T>(work: (s: Session) => T): Promise<T> {
    return this.patient.until(() => this.readOnce(work))
  }

  /** Reads at once, so that the call keeps its place among those of this turn; null when it would have to wait. */
  private glance<T>(work: (s: Session) => T): T | null {
    try {
      return this.readOnce(work)
    } catch (error) {
      if (isBusy(error)) return null
      throw translated(error, this.file)
    }
  }

  /** The event loop never gives the turn away inside, so no write of ours can come between. */
  private readOnce<T>(work: (s: Session) => T): T {
    const { session } = this.use()
    // Inside the caller's function of a transaction: whoever reads comes again when that has ended.
    if (session.entered) throw Object.assign(new Error('a transaction is under way'), { code: 'SQLITE_BUSY' })
    try {
      session.beginRead()
      return work(session)
    } finally {
      session.endRead()
    }
  }
}

const always = () => true
const never = () => false

function refuseTx(tx: unknown): void {
  if (tx === undefined) return
  throw new PieceworkError('PW_TX_UNSUPPORTED', 'A transaction on SQLite waits for nothing, and this call does.')
}
