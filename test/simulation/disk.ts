// The disk under a simulated store: syncs that take their time, a lock that is taken, commits that fail, no room left.
import type { Database } from 'better-sqlite3'
import type { Happening } from './events.js'
import type { Owner, Scheduler } from './scheduler.js'

interface Statement {
  run(): unknown
}
/** The engine's statements that begin and end a transaction; replaced one by one. */
export interface Brackets {
  begin: Statement
  readBegin: Statement
  commit: Statement
  rollback: Statement
}

const pagesMax = 2 ** 30
/** A sync in quiet times, in ms. */
export const quickSync = () => 0.5

export class Disk {
  /** The last commit, and the last one that a finished sync has on the disk. */
  commit = 0
  synced = 0
  /** How long a sync takes, in ms. */
  syncMs = quickSync
  private lockTaken = false
  failing = false
  private full = false
  private writing = false
  private busyFelt = false

  constructor(
    private readonly scheduler: Scheduler,
    private readonly owner: Owner,
    private readonly tell: (happening: Happening) => void,
  ) {}

  /** Somebody else has the lock on the store, until they let it go. */
  set busy(busy: boolean) {
    this.lockTaken = busy
    this.busyFelt = false
  }

  /** One sync: covers what was committed before it started. */
  readonly sync = (done: (error: Error | null) => void): void => {
    const covered = this.commit
    if (this.syncMs !== quickSync) this.tell({ is: 'felt', kind: 'slow' })
    this.scheduler.after(this.owner, this.syncMs(), () => {
      this.synced = Math.max(this.synced, covered)
      done(null)
    })
  }

  private refuseLock(): never {
    // It is tried again every millisecond: once tells enough.
    if (!this.busyFelt) this.tell({ is: 'felt', kind: 'busy' })
    this.busyFelt = true
    throw busy
  }

  syncNow(): void {
    this.synced = this.commit
  }

  /** Stands between the engine and its transactions; `committed` and `undone` hear how each one ended. */
  stand(brackets: Brackets, heard: { committed(): void; undone(): void; grew(): boolean }): void {
    const { begin, readBegin, commit, rollback } = brackets
    // SQLite itself undoes a transaction that finds no room, and nobody is told: the next one begins from nothing.
    const fresh = (writing: boolean) => {
      heard.undone()
      this.writing = writing
    }
    brackets.begin = {
      run: () => {
        if (this.lockTaken) this.refuseLock()
        begin.run()
        fresh(true)
      },
    }
    brackets.readBegin = {
      run: () => {
        readBegin.run()
        fresh(false)
      },
    }
    brackets.commit = {
      run: () => {
        // A snapshot to read in ends with the same statement.
        if (this.writing && this.failing) throw broken
        // A new task may fit into a page that is there; the log needs room for it all the same.
        if (this.writing && this.full && heard.grew()) throw noRoom
        commit.run()
        if (!this.writing) return
        this.writing = false
        this.commit++
        heard.committed()
      },
    }
    brackets.rollback = {
      run: () => {
        this.writing = false
        heard.undone()
        return rollback.run()
      },
    }
  }

  /** No page may be added to the database any more, and no task; or as many as it wants again. */
  fill(db: Database, full: boolean): void {
    this.full = full
    const pages = full ? (db.pragma('page_count', { simple: true }) as number) : pagesMax
    db.pragma(`max_page_count = ${pages}`)
  }
}

/** Made once each: a stack for every try would cost more than the tries. */
const busy = Object.assign(new Error('the lock is taken'), { code: 'SQLITE_BUSY' })
const noRoom = Object.assign(new Error('the disk is full'), { code: 'SQLITE_FULL' })
const broken = Object.assign(new Error('the disk failed'), { code: 'SQLITE_IOERR' })
