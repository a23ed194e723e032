// What PostgreSQL committed, in order of its row locks: triggers write down every step of every task, as for SQLite.
import { execFileSync } from 'node:child_process'
import { states } from '../../dist/task/lifecycle.js'
import type { Entry } from '../laws/chronicle.js'
import { monotonicMs } from '../laws/processes.js'
import type { Server } from './server.js'

const columns = `event, task, "fromState", "toState", number, fence, "fenceBefore", spent, "spentBefore", "dedupKey",
  worker, outcome, "leaseEndsAt", "claimedAt", "endedAt", at`
const wallNow = 'extract(epoch from clock_timestamp()) * 1000'
const worker = (row: string) => `(select name from piecework.worker where id = ${row}.worker)`
const write = (values: string) => `insert into law_chronicle (${columns}) values (${values}, ${wallNow}); return null;`
const trigger = (name: string, when: string, values: string) => `
create function ${name}() returns trigger language plpgsql as $$ begin ${write(values)} end $$;
create trigger ${name} after ${when} execute function ${name}();`

const triggers = `
create table law_chronicle (seq bigserial, event text, task bigint, "fromState" int, "toState" int, number int,
  fence bigint, "fenceBefore" bigint, spent int, "spentBefore" int, "dedupKey" text, worker text, outcome text,
  "leaseEndsAt" bigint, "claimedAt" bigint, "endedAt" bigint, at double precision);
${trigger(
  'law_enter',
  'insert on piecework.task for each row',
  `'enter', new.id, null, new.state, new.number, new.fence, new.fence, new.spent, new.spent, new.dedupKey, null, null,
   null, null, null`,
)}
${trigger(
  'law_step',
  'update on piecework.task for each row when (old.state <> new.state or old.fence <> new.fence)',
  `'step', new.id, old.state, new.state, new.number, new.fence, old.fence, new.spent, old.spent, new.dedupKey,
   ${worker('new')}, null, old.wakeAt, new.claimedAt, null`,
)}
${trigger(
  'law_leave',
  'delete on piecework.task for each row',
  `'leave', old.id, old.state, null, old.number, old.fence, old.fence, old.spent, old.spent, old.dedupKey,
   ${worker('old')}, null, old.wakeAt, old.claimedAt, null`,
)}
${trigger(
  'law_note',
  'insert on piecework.history for each row',
  `'note', new.task, null, null, new.number, new.fence, new.fence, 0, 0, null, new.worker, new.outcome, null,
   new.startedAt, new.endedAt`,
)}`

/** Has a store write its chronicle from now on. */
export async function keepChronicle(server: Server, url: string): Promise<void> {
  await server.sql(url, triggers)
}

/** Reads in a process of its own, so that whoever asks can wait for the answer without giving his turn away. */
const reader = `
import pg from 'pg'
pg.types.setTypeParser(20, Number)
const [url, tasks] = process.argv.slice(1)
const client = new pg.Client({ connectionString: url })
await client.connect()
const text = 'select * from law_chronicle where $1::text is null or task = any($1::bigint[]) order by seq'
const ids = tasks === '' ? null : '{' + tasks + '}'
const { rows } = await client.query(text, [ids])
await client.end()
process.stdout.write(JSON.stringify(rows))`

type Row = Omit<Entry, 'from' | 'to'> & { fromState: number | null; toState: number | null }

/** The chronicle so far, or what of it concerns these tasks. */
export function readChronicle(url: string, tasks?: readonly string[]): Entry[] {
  const words = ['--input-type=module', '-e', reader, url, (tasks ?? []).join(',')]
  const text = execFileSync(process.execPath, words, { encoding: 'utf8', maxBuffer: 2 ** 30 })
  const monotonic = (at: number | null) => (at === null ? null : at - wallShift)
  const state = (code: number | null) => (code === null ? null : (states[code - 1] ?? null))
  return (JSON.parse(text) as Row[]).map(({ fromState, toState, ...row }) => ({
    ...row,
    task: String(row.task),
    from: state(fromState),
    to: state(toState),
    at: row.at - wallShift,
    leaseEndsAt: monotonic(row.leaseEndsAt),
    claimedAt: monotonic(row.claimedAt),
    endedAt: monotonic(row.endedAt),
  }))
}

/** Wall clock minus monotonic clock: of several looks the one that was disturbed least. */
const wallShift = Array.from({ length: 50 }, () => {
  const before = monotonicMs()
  const wall = Date.now()
  return { shift: wall - before, took: monotonicMs() - before }
}).reduce((best, look) => (look.took < best.took ? look : best)).shift
