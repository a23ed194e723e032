// Opens the file of a store: its tables, its log, its clock, and what watches over all three.
import type { Database } from 'better-sqlite3'
import type { Clock } from '../../ground/clock.js'
import { PieceworkError } from '../../ground/errors.js'
import { fileGuard, type Guard, noGuard } from './guard.js'
import { fileLiveness, type Liveness, noLiveness } from './liveness.js'
import type { Patient } from './patient.js'
import { clockFits, connectFile, migrateStore, refuseOld, type StoreOptions, setClock } from './store.js'
import { type Syncer, syncerOf } from './sync.js'

export interface OpeningOptions extends StoreOptions {
  /** Replaces the sync of the log, for tests of failing disks. */
  syncer?: Syncer | undefined
  /** Replaces the lock files by which dead processes are known, for simulations. */
  liveness?: Liveness | undefined
}

export interface Parts {
  db: Database
  guard: Guard
  syncer: Syncer
  liveness: Liveness
}

/** The open file, at this version's format. */
export async function openParts(file: string, clock: Clock, options: OpeningOptions, patient: Patient): Promise<Parts> {
  const Sqlite = await driver()
  const memory = file === ':memory:'
  const db = await patient.until(() => connectFile(file, Sqlite, options))
  try {
    const adopt = options.adopt === true
    // Looked at in one snapshot before anything is written: even the journal's mode would change a stranger's file.
    await patient.until(
      db.transaction(() => {
        refuseOld(db, file, migrateStore(db, file, clock, true, adopt), options)
      }),
    )
    if (!memory) await patient.until(() => db.pragma('journal_mode = wal'))
    // With this read the log and its index are there, for the guard to know.
    await patient.until(() => db.prepare('select 1 from sqlite_master').get())
    const guard = memory ? noGuard : fileGuard(file, clock)
    const current = () =>
      migrateStore(db, file, clock, true, adopt).length === 0 && clockFits(db, clock, guard.identity)
    // Whoever only wants to look does not wait for somebody who writes.
    if (!(await patient.until(db.transaction(current)))) {
      await patient.locked(db, () => {
        migrateStore(db, file, clock, false, adopt)
        setClock(db, clock, guard.identity)
      })
    }
    const syncer = options.syncer ?? syncerOf(file, options.durability, clock)
    // Numbers get out before any call is synced: what they are reserved by must be on the disk, whoever wrote it.
    syncer.now()
    return { db, guard, syncer, liveness: options.liveness ?? (memory ? noLiveness : fileLiveness(file, Sqlite)) }
  } catch (error) {
    db.close()
    throw error
  }
}

/** The package; throws PW_NO_SQLITE. */
export async function driver(): Promise<typeof import('better-sqlite3')> {
  try {
    return (await import('better-sqlite3')).default
  } catch (error) {
    throw new PieceworkError('PW_NO_SQLITE', 'better-sqlite3 could not be loaded.', {}, { cause: error })
  }
}
