// A store in a file, a connection of the caller to that file with a table of its own, and what tests ask of both.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { connect, type Piecework, type PieceworkError, type Worker, type WorkerEvents } from 'piecework'
import { expect, onTestFinished } from 'vitest'
import { connectionOf } from '../../dist/queue/client.js'

export interface Fresh {
  folder: string
  file: string
  pw: Piecework<'sqlite'>
  db: Database.Database
}

/** A store that goes when the test ends. */
export async function freshStore(): Promise<Fresh> {
  const folder = mkdtempSync(join(tmpdir(), 'piecework-tx-'))
  const file = join(folder, 'work.db')
  const pw = (await connect(`sqlite:${file}`)) as Piecework<'sqlite'>
  const db = new Database(file)
  db.exec('create table sent (id text, note text)')
  onTestFinished(async () => {
    db.close()
    await pw.close()
    rmSync(folder, { recursive: true, force: true })
  })
  return { folder, file, pw, db }
}

/** A connection that is closed when the test ends. */
export function opened(name: string): Database.Database {
  const made = new Database(name)
  onTestFinished(() => {
    made.close()
  })
  return made
}

export const codeOf = (act: () => unknown): string | undefined => {
  try {
    act()
  } catch (error) {
    return (error as PieceworkError).code
  }
  return undefined
}
export const sentIn = (db: Database.Database): unknown[] => db.prepare('select note from sent').pluck().all()
export const mark = (tx: { prepare: Database.Database['prepare'] }, id: string, note: string): void => {
  tx.prepare('insert into sent values (?, ?)').run(id, note)
}
/** The next event of one kind. */
export const next = <E extends keyof WorkerEvents>(worker: Worker, event: E): Promise<WorkerEvents[E]> =>
  new Promise((resolve) => void worker.on(event, resolve))
/** Every figure equals the full count. */
export async function proven(pw: Piecework<'sqlite'>): Promise<void> {
  for (const { shown, counted } of (
    await connectionOf(pw as Piecework)
      .engine()
      .select('proof', {}, null)
  ).items) {
    expect(shown).toEqual(counted)
  }
}
