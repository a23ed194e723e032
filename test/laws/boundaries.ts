// Kills programs at every boundary of their transactions, and counts what they left: each effect once, none missing.

import Database from 'better-sqlite3'
import pg from 'pg'
import type { Store } from './eyes.js'
import { type Process, start } from './processes.js'

/** The program's tables; `effect` has no key: a second row of one task would be seen. */
const tables = 'create table effect (id text); create table counter (n integer); insert into counter values (0)'

export interface Fall {
  at: number
  /** Before the statement; when it is on its way; or after all of them, whatever their number is this time. */
  how: 'before' | 'sent' | 'end'
}

/** What was kept by the programs, in the same database as the store. */
export interface Kept {
  effects: string[]
  counter: number
}

const isFile = (store: Store) => store.file !== ''

export async function makeTables(store: Store): Promise<void> {
  if (isFile(store)) {
    const db = new Database(store.file)
    db.exec(tables)
    db.close()
  } else await onServer(store.url, (client) => client.query(tables))
}

export async function keptIn(store: Store): Promise<Kept> {
  if (isFile(store)) {
    const db = new Database(store.file, { readonly: true })
    const effects = db.prepare('select id from effect order by id').pluck().all() as string[]
    const counter = db.prepare('select n from counter').pluck().get() as number
    db.close()
    return { effects, counter }
  }
  return onServer(store.url, async (client) => ({
    effects: (await client.query('select id from effect order by id')).rows.map((row) => String(row.id)),
    counter: Number((await client.query('select n from counter')).rows[0].n),
  }))
}

async function onServer<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

export interface Trial {
  store: Store
  act: string
  /** The built library to use instead of ours, with a planted bug. */
  lib?: string | undefined
  provider?: string | undefined
}

/** Adds a task to the queue of the programs; answers its id. */
const addTask = async ({ engine }: Store, queue = 'effects'): Promise<string> =>
  (await engine.enqueue(null, [{ queue, payload: '1' }]))[0]?.id as string

/** Starts the program, which dies at `fall`; without one it ends when nothing is left. */
const run = ({ store, ...orders }: Trial, fall: Fall | null, more: object = {}): Process =>
  start('effects', { url: store.url, ...orders, fall, ...more })

/**
 * Starts a program for each boundary that one without a fall has passed, several at once; answers how many died. Each
 * finds a task of its own, or one that another left.
 */
export async function killEverywhere(trial: Trial, hows: readonly Fall['how'][], more: object = {}): Promise<Killed> {
  const isProducer = trial.act === 'produce'
  const tasks: string[] = []
  const add = async () => {
    if (!isProducer) tasks.push(await addTask(trial.store))
  }
  await add()
  const first = run(trial, null, more)
  const [over] = await first.heard('over')
  await first.exit
  const count = over?.more ?? 0
  // A lost answer tells nothing new but of the commit, the last statement.
  const falls = hows.flatMap((how) =>
    Array.from({ length: count }, (_, i): Fall => ({ at: i + 1, how })).filter(
      ({ at }) => how === 'before' || at === count - 1,
    ),
  )
  let died = 0
  falls.push({ at: count, how: 'end' })
  for (let i = 0; i < falls.length; i += together) {
    const some = falls.slice(i, i + together)
    for (const _ of some) await add()
    const ends = await Promise.all(some.map((fall) => run(trial, fall, more).exit))
    died += ends.filter(({ signal }) => signal === 'SIGKILL').length
  }
  if (!isProducer) await run(trial, null, more).heard('over')
  return { died, boundaries: falls.length, tasks }
}
const together = 3

export interface Killed {
  died: number
  boundaries: number
  /** All that were enqueued by us; they are done. */
  tasks: string[]
}

/** What is wrong with the effects of tasks that are all done; null when nothing is. */
export function wrongIn(tasks: readonly string[], { effects }: Kept): string | null {
  const missing = tasks.filter((id) => !effects.includes(id))
  const twice = [...new Set(effects.filter((id, i) => effects.indexOf(id) !== i))]
  if (missing.length === 0 && twice.length === 0) return null
  return `${missing.length} effects missing, ${twice.length} there twice`
}
