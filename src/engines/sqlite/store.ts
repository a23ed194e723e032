// Opens a store's file: makes it, refuses what is not ours, brings its format up to date and sets its clock.

import { randomUUID } from 'node:crypto'
import { accessSync, closeSync, constants, existsSync, openSync, statSync } from 'node:fs'
import type DatabaseConstructor from 'better-sqlite3'
import type { Database } from 'better-sqlite3'
import type { Clock } from '../../ground/clock.js'
import { PieceworkError } from '../../ground/errors.js'
import { isBusy, translated } from './errors.js'
import { refuseNetwork } from './guard.js'
import { format, migrations } from './schema.js'
import { adoptBoot, type ClockRow } from './time.js'

export type Durability = 'group' | 'full' | 'relaxed'

export interface StoreOptions {
  /** `group` (default): a call returns after a shared sync; `full`: every commit syncs; `relaxed`: none waits. */
  durability?: Durability | undefined
  /** Make the file when it is missing; default true. */
  create?: boolean | undefined
  /** Put piecework's tables into a database that another program made; default false. */
  adopt?: boolean | undefined
}

/**
 * A connection to the file, set up but with its tables not looked at; throws PW_STORE_MISSING, PW_NOT_OURS, and what
 * SQLite says while another process makes, recovers or closes the file: that takes milliseconds, so try again.
 */
export function connectFile(file: string, Sqlite: typeof DatabaseConstructor, options: StoreOptions): Database {
  if (file === ':memory:') return new Sqlite(file)
  if (!existsSync(file)) {
    if (options.create === false)
      throw new PieceworkError('PW_STORE_MISSING', `There is no store at ${file}.`, { file })
    try {
      // Tasks may carry anything: only the owner may read them.
      closeSync(openSync(file, 'a', 0o600))
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code !== 'ENOENT' && code !== 'ENOTDIR' && code !== 'EISDIR') throw translated(error, file)
      throw new PieceworkError('PW_STORE_MISSING', `The folder of ${file} does not exist.`, { file }, { cause: error })
    }
  }
  refuseNetwork(file)
  checkFile(file)
  let db: Database | undefined
  try {
    db = new Sqlite(file, { timeout: 0 })
    // The first statement that reads the file: SQLite itself refuses what is no database, and leaves it alone.
    db.pragma(`synchronous = ${options.durability === 'full' ? 'full' : 'normal'}`)
    db.pragma('temp_store = memory')
    return db
  } catch (error) {
    db?.close()
    throw isBusy(error) ? error : translated(error, file)
  }
}

/**
 * Refuses a folder, a device and what may not be read, without opening it: closing any descriptor of the file would
 * drop the locks of every other connection of this process, and a program with an older SQLite would then remove the
 * log under our feet when it closes the file.
 */
function checkFile(file: string): void {
  if (!statSync(file).isFile()) throw new PieceworkError('PW_NOT_OURS', `${file} is not a file.`, { file })
  try {
    accessSync(file, constants.R_OK)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new PieceworkError('PW_STORE_READONLY', `${file} cannot be read (${code}).`, { file, code }, { cause: error })
  }
}

/** The statements that bring this connection's store to the present format. Runs them unless `dryRun`. */
export function migrateStore(db: Database, file: string, clock: Clock, dryRun: boolean, adopt: boolean): string[] {
  const found = formatOf(db)
  if (found === null && !adopt && hasTables(db)) {
    throw new PieceworkError(
      'PW_NOT_OURS',
      `${file} is a database of another program; piecework migrate puts piecework's tables beside its own.`,
      { file },
    )
  }
  if (found !== null && found > format) {
    throw new PieceworkError('PW_SCHEMA_NEW', `${file} has format ${found}; this version knows up to ${format}.`, {
      file,
      format: found,
    })
  }
  const steps = migrations.filter((step) => step.to > (found ?? 0))
  if (!dryRun) {
    for (const step of steps) db.exec(step.sql)
    if (found === null) {
      const row = adoptBoot(clock, null)
      db.prepare(
        `insert into piecework_store
         (one, format, storeId, createdAt, bootId, offsetUs, asleepMs, reservedUs, lastId, settings, fileId)
         values (1, ?, ?, ?, ?, ?, ?, ?, 0, 1, '')`,
      ).run(format, randomUUID(), Math.round(clock.wallMs()), row.bootId, row.offsetUs, row.asleepMs, row.reservedUs)
    } else if (steps.length > 0) db.prepare('update piecework_store set format = ?').run(format)
  }
  return steps.map((step) => step.sql)
}

/** Whoever only uses a store that is there leaves its format alone: processes of the older version go on with it. */
export function refuseOld(db: Database, file: string, steps: readonly string[], options: StoreOptions): void {
  const found = formatOf(db)
  if (options.create !== false || steps.length === 0 || found === null) return
  throw new PieceworkError('PW_SCHEMA_OLD', `${file} has format ${found}; this version works with format ${format}.`, {
    file,
    format: found,
  })
}

/** True when `setClock` would change nothing. */
export function clockFits(db: Database, clock: Clock, fileId: string): boolean {
  const row = clockRow(db)
  return row.fileId === fileId && adoptBoot(clock, row) === row
}

const clockRow = (db: Database) =>
  db.prepare('select fileId, bootId, offsetUs, asleepMs, reservedUs from piecework_store').get() as ClockRow & {
    fileId: string
  }

/**
 * Sets the clock row for this boot; the caller syncs it before numbers are given out.
 * In a file that is a copy or a restored backup no receipt acts: it belongs to another history of the store.
 */
export function setClock(db: Database, clock: Clock, fileId: string): void {
  const row = clockRow(db)
  if (row.fileId !== fileId) {
    if (row.fileId !== '') {
      db.exec('update piecework_task set nonce = null where nonce is not null')
      // Its workers work on the original, if they live: in this history they are as gone as after a restart.
      db.exec("update piecework_worker set bootId = '' where proof is not null")
    }
    db.prepare('update piecework_store set fileId = ?').run(fileId)
  }
  const next = adoptBoot(clock, row)
  if (next === row) return
  db.prepare('update piecework_store set bootId = ?, offsetUs = ?, asleepMs = ?, reservedUs = ?').run(
    next.bootId,
    next.offsetUs,
    next.asleepMs,
    next.reservedUs,
  )
}

function formatOf(db: Database): number | null {
  const table = db.prepare("select 1 from sqlite_master where name = 'piecework_store'").get()
  if (!table) return null
  return (db.prepare('select format from piecework_store').get() as { format: number } | undefined)?.format ?? null
}

const hasTables = (db: Database): boolean => db.prepare('select 1 from sqlite_master limit 1').get() !== undefined
