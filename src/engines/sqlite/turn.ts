// Group commit on SQLite: everything asked for in one turn of the loop goes into one transaction.
import type { Database } from 'better-sqlite3'
import type { Clock, Random } from '../../ground/clock.js'
import { PieceworkError } from '../../ground/errors.js'
import { isBusy, translated } from './errors.js'
import type { Guard } from './guard.js'
import type { Session } from './session.js'
import type { Syncer } from './sync.js'

/** One call inside the transaction; runs again from the start when the transaction had to be repeated. */
type Work = (session: Session) => unknown

interface Entry {
  work: Work
  /** Says whether the caller must wait for a sync, seeing the answer. */
  durable: (answer: never) => boolean
  /** True for calls that add tasks: a full disk refuses them so that the others go through. */
  grows: boolean
  /** How many tasks it touches at most. */
  items: number
  resolve: (answer: never) => void
  reject: (error: unknown) => void
}

/** How long a call waits for the write lock before PW_BUSY; every try of its own is one without waiting. */
export const busyMs = 30_000
/** Waiting for the lock up to this long is everyday life between processes. */
const lostNoticedMs = 250
/** Tasks touched by one transaction: bounds how long the write lock is held and the loop is blocked, to about 10 ms. */
const itemsMax = 2000

export class Turn {
  private pending: Entry[] = []
  private planned = false
  private busySinceMs: number | null = null
  private idlers: (() => void)[] = []
  /** Why a sync was refused: nobody can know what the disk kept, so nothing more is written through here. */
  private refused: { error: unknown } | null = null

  constructor(
    private readonly db: Database,
    private readonly file: string,
    private readonly clock: Clock,
    private readonly random: Random,
    private readonly syncer: Syncer,
    private readonly session: Session,
    private readonly guard: Guard,
  ) {}

  get idle(): boolean {
    return this.pending.length === 0
  }

  /** Resolves with the answer once it is committed and, where `durable` says so, synced. */
  run<T>(
    work: (session: Session) => T,
    durable: (answer: T) => boolean,
    { items = 1, grows = false }: { items?: number; grows?: boolean } = {},
  ): Promise<T> {
    if (this.refused) return Promise.reject(this.refused.error)
    return new Promise<T>((resolve, reject) => {
      this.pending.push({ work, durable, grows, items, resolve, reject } as Entry)
      this.plan()
    })
  }

  /** Resolves when nothing is pending; for close(). */
  settled(): Promise<void> {
    return this.idle ? Promise.resolve() : new Promise((resolve) => this.idlers.push(resolve))
  }

  private plan(): void {
    if (this.planned) return
    this.planned = true
    this.clock.soon(() => this.flush())
  }

  private flush(): void {
    this.planned = false
    if (this.db.open && !this.begin()) return
    this.busySinceMs = null
    this.commit(this.takeNext())
    if (this.pending.length > 0) this.plan()
    else for (const done of this.idlers.splice(0)) done()
  }

  /** The calls of the next transaction, in the order they came: one, and as many more as fit. */
  private takeNext(): Entry[] {
    let count = 0
    let items = 0
    while (count < this.pending.length) {
      items += (this.pending[count] as Entry).items
      if (count > 0 && items > itemsMax) break
      count++
    }
    return this.pending.splice(0, count)
  }

  /** Takes the write lock or plans the next try: jittered 0-2 ms, so that no process starves behind a fixed rhythm. */
  private begin(): boolean {
    try {
      this.session.begin()
      // Whoever waited for the lock could not extend either: that time is not charged to leases.
      if (this.busySinceMs !== null) {
        const waitedMs = this.clock.monotonicMs() - this.busySinceMs
        if (waitedMs >= lostNoticedMs) this.session.giveBackTime(this.session.now - Math.round(waitedMs))
      }
      return true
    } catch (error) {
      const nowMs = this.clock.monotonicMs()
      this.busySinceMs ??= nowMs
      if (isBusy(error) && nowMs - this.busySinceMs < busyMs) {
        this.planned = true
        // At once, or 1 or 2 ms later: a timer knows whole milliseconds only, and takes none for one.
        const waitMs = Math.floor(this.random() * 3)
        if (waitMs === 0) this.clock.soon(() => this.flush())
        else this.clock.after(waitMs, () => this.flush(), true)
      } else {
        this.busySinceMs = null
        for (const entry of this.pending.splice(0)) entry.reject(translated(error, this.file))
        for (const done of this.idlers.splice(0)) done()
      }
      return false
    }
  }

  /** Runs the calls in the open transaction; a call that fails is taken out and the others run again without it. */
  private commit(entries: Entry[]): void {
    const answers: unknown[] = []
    let culprit: Entry | undefined
    try {
      if (!this.db.open) throw new PieceworkError('PW_CLOSED', `${this.file} was closed.`)
      for (const entry of entries) {
        culprit = entry
        answers.push(entry.work(this.session))
      }
      culprit = undefined
      this.session.commit()
    } catch (error) {
      this.session.rollback()
      this.isolate(entries, culprit, translated(error, this.file))
      return
    }
    try {
      if (this.session.reserved) this.syncer.now()
      this.answer(entries, answers)
    } catch (error) {
      this.refused = { error }
      for (const entry of entries) entry.reject(error)
    }
  }

  private isolate(entries: Entry[], culprit: Entry | undefined, error: PieceworkError): void {
    const full = error.code === 'PW_DISK_FULL'
    const freed = full && this.guard.free()
    if (full) this.startLogOver()
    if (freed) {
      for (const entry of entries) if (entry.grows) entry.reject(error)
      this.retry(entries.filter((entry) => !entry.grows))
    } else if (culprit) {
      culprit.reject(error)
      this.retry(entries.filter((entry) => entry !== culprit))
    } else if (entries.length === 1) entries[0]?.reject(error)
    // The commit itself failed (a full disk, say): each call alone, so that those that free room go through.
    else for (const entry of entries) this.retry([entry])
  }

  /** Moves what the log holds into the database, so that acks fill the log from its beginning and need no room. */
  private startLogOver(): void {
    try {
      this.db.pragma('wal_checkpoint(truncate)')
    } catch {
      // The disk has no room for that either; whoever asked hears of the full disk.
    }
  }

  private retry(entries: Entry[]): void {
    if (entries.length === 0) return
    try {
      if (this.db.open) this.session.begin()
    } catch (error) {
      if (!isBusy(error)) {
        for (const entry of entries) entry.reject(translated(error, this.file))
        return
      }
      this.pending.unshift(...entries)
      return
    }
    this.commit(entries)
  }

  private answer(entries: Entry[], answers: unknown[]): void {
    const later: (() => void)[] = []
    const rejects: ((error: unknown) => void)[] = []
    for (let i = 0; i < entries.length; i++) {
      const entry = entries[i] as Entry
      const answer = answers[i] as never
      if (entry.durable(answer)) {
        later.push(() => entry.resolve(answer))
        rejects.push(entry.reject)
      } else entry.resolve(answer)
    }
    if (later.length === 0) {
      if (this.session.claimed) this.syncer.soon()
      return
    }
    this.syncer
      .after()
      .then(() => {
        // Synced into a file that nobody finds again would be lost all the same.
        this.guard.check()
        for (const resolve of later) resolve()
      })
      .catch((error) => {
        this.refused = { error }
        for (const reject of rejects) reject(error)
      })
  }
}
