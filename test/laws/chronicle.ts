// What the engine committed, in order: triggers inside its own transactions write down every step of every task.
import Database from 'better-sqlite3'
import type { State } from '../../dist/task/lifecycle.js'
import { states } from '../../dist/task/lifecycle.js'
import { monotonicMs } from './processes.js'

/** `enter`: enqueued; `step`: another state, or another delivery; `leave`: the row went; `note`: a history row. */
export interface Entry {
  seq: number
  event: 'enter' | 'step' | 'leave' | 'note'
  task: string
  from: State | null
  to: State | null
  number: number
  fence: number
  /** The fence before this step. */
  fenceBefore: number
  spent: number
  spentBefore: number
  dedupKey: string | null
  /** Who holds the task after a claim; who held it, in a note. */
  worker: string | null
  /** Of a note: how the delivery ended. */
  outcome: string | null
  /** When it was written, by the wall clock, and instants of the engine's clock; all as monotonic ms. */
  at: number
  leaseEndsAt: number | null
  claimedAt: number | null
  endedAt: number | null
}

const columns = `event, task, fromState, toState, number, fence, fenceBefore, spent, spentBefore, dedupKey, worker,
  outcome, leaseEndsAt, claimedAt, endedAt, at`
const wallNow = `unixepoch('subsec') * 1000`
const worker = (row: string) => `(select name from piecework_worker where id = ${row}.worker)`

const triggers = `
create table if not exists law_chronicle (
  seq integer primary key, event text, task integer, fromState integer, toState integer, number integer, fence integer,
  fenceBefore integer, spent integer, spentBefore integer, dedupKey text, worker text, outcome text,
  leaseEndsAt integer, claimedAt integer, endedAt integer, at real);
create trigger if not exists law_enter after insert on piecework_task begin
  insert into law_chronicle (${columns}) values ('enter', new.id, null, new.state, new.number, new.fence, new.fence,
    new.spent, new.spent, new.dedupKey, null, null, null, null, null, ${wallNow});
end;
create trigger if not exists law_step after update of state, fence on piecework_task
when old.state <> new.state or old.fence <> new.fence begin
  insert into law_chronicle (${columns}) values ('step', new.id, old.state, new.state, new.number, new.fence, old.fence,
    new.spent, old.spent, new.dedupKey, ${worker('new')}, null, old.wakeAt, new.claimedAt, null, ${wallNow});
end;
create trigger if not exists law_leave after delete on piecework_task begin
  insert into law_chronicle (${columns}) values ('leave', old.id, old.state, null, old.number, old.fence, old.fence,
    old.spent, old.spent, old.dedupKey, ${worker('old')}, null, old.wakeAt, old.claimedAt, null, ${wallNow});
end;
create trigger if not exists law_note after insert on piecework_history begin
  insert into law_chronicle (${columns}) values ('note', new.task, null, null, new.number, new.fence, new.fence,
    0, 0, null, new.worker, new.outcome, null, new.startedAt, new.endedAt, ${wallNow});
end;`

/** Has a store write its chronicle from now on. */
export function keepChronicle(file: string): void {
  const db = new Database(file, { timeout: 10_000 })
  db.exec(triggers)
  db.close()
}

/** The chronicle so far, or what of it concerns these tasks. */
export function readChronicle(file: string, tasks?: readonly string[]): Entry[] {
  const db = new Database(file, { timeout: 10_000, readonly: true })
  try {
    const { offsetUs } = db.prepare('select offsetUs from piecework_store').get() as { offsetUs: number }
    const engineMs = (at: number | null) => (at === null ? null : at - offsetUs / 1000)
    const where = tasks ? 'where task in (select value from json_each(?))' : ''
    const rows = db.prepare(`select seq, ${columns} from law_chronicle ${where} order by seq`)
    const found = (tasks ? rows.all(JSON.stringify(tasks.map(Number))) : rows.all()) as Row[]
    return found.map(({ fromState, toState, ...row }) => ({
      ...row,
      task: String(row.task),
      from: stateOf(fromState),
      to: stateOf(toState),
      at: row.at - wallShift,
      leaseEndsAt: engineMs(row.leaseEndsAt),
      claimedAt: engineMs(row.claimedAt),
      endedAt: engineMs(row.endedAt),
    }))
  } finally {
    db.close()
  }
}

/** True when the write lock can be had within 200 ms. */
export function canLock(file: string): boolean {
  const db = new Database(file, { timeout: 200 })
  try {
    db.exec('begin immediate; rollback')
    return true
  } catch {
    return false
  } finally {
    db.close()
  }
}

/** Wall clock minus monotonic clock: of several looks the one that was disturbed least. */
const wallShift = Array.from({ length: 50 }, () => {
  const before = monotonicMs()
  const wall = Date.now()
  return { shift: wall - before, took: monotonicMs() - before }
}).reduce((best, look) => (look.took < best.took ? look : best)).shift

type Row = Omit<Entry, 'from' | 'to'> & { fromState: number | null; toState: number | null }

const stateOf = (code: number | null): State | null => (code === null ? null : (states[code - 1] ?? null))
