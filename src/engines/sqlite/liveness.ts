// How a dead process is known at once: each process holds an exclusive lock on a file that the kernel lets go with it.

import { randomBytes } from 'node:crypto'
import { chmodSync, closeSync, mkdirSync, openSync, readdirSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type DatabaseConstructor from 'better-sqlite3'
import type { Database } from 'better-sqlite3'

/** The liveness port of the engine; a simulator decides by itself who lives. */
export interface Liveness {
  /** Takes this process's lock, once; answers the proof that others can test. */
  hold(): string | null
  /** The proof of this handle; null while it holds none. */
  readonly held: string | null
  /** True only when the holder of this proof is certainly gone. */
  isDead(proof: string): boolean
  /** Gives the lock back when the last holder of this process lets go; `dying`: so that others see it as dead. */
  drop(dying: boolean): void
  /** Removes what a dead holder left. */
  clear(proof: string): void
}

/** For stores that live in this process only: their workers die with them. */
export const noLiveness: Liveness = { hold: () => null, held: null, isDead: () => false, drop() {}, clear() {} }

interface Held {
  proof: string
  db: Database
  holders: number
}

/**
 * Locks held by this process, by folder; shared by every copy of this module, because a second open and close of a
 * lock file by the same process would drop its lock.
 */
const registry = shared('piecework.liveness', () => new Map<string, Held>())

/** Lock files in `FILE-alive/` beside the store. */
export function fileLiveness(file: string, Sqlite: typeof DatabaseConstructor): Liveness {
  const folder = join(dirname(file), `${basename(file)}-alive`)
  let holding = false
  return {
    hold() {
      let held = registry.get(folder)
      if (!held) {
        shareLike(file, folder, () => mkdirSync(folder, { mode: 0o700 }))
        const proof = `${process.pid}-${randomBytes(6).toString('hex')}.lock`
        held = { db: exclusive(file, join(folder, proof), Sqlite), holders: 0, proof }
        registry.set(folder, held)
      }
      if (!holding) held.holders++
      holding = true
      return held.proof
    },
    get held() {
      return holding ? (registry.get(folder)?.proof ?? null) : null
    },
    isDead(proof) {
      if (registry.get(folder)?.proof === proof || !/^[\w-]+\.lock$/.test(proof)) return false
      let db: Database | undefined
      try {
        db = new Sqlite(join(folder, proof), { timeout: 0, fileMustExist: true })
        db.exec('begin exclusive; rollback')
        return true
      } catch {
        // Anything but a free lock proves nothing: a file that may not be read or that somebody removed, say.
        return false
      } finally {
        db?.close()
      }
    },
    drop(dying) {
      const held = registry.get(folder)
      if (!holding || !held) return
      holding = false
      if (--held.holders > 0) return
      registry.delete(folder)
      if (!dying) remove(join(folder, held.proof))
      held.db.close()
      removeIfEmpty(folder)
    },
    clear(proof) {
      remove(join(folder, proof))
    },
  }
}

function shared<T>(name: string, make: () => T): T {
  const global = globalThis as { [key: symbol]: unknown }
  const key = Symbol.for(name)
  if (!(key in global)) global[key] = make()
  return global[key] as T
}

/** Makes a thing that whoever may use the store may use, too; one that is there already is left as it is. */
function shareLike(file: string, path: string, make: () => void): void {
  try {
    make()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    return
  }
  const { mode } = statSync(file)
  // A folder is entered by those who may read what is in it.
  chmodSync(path, statSync(path).isDirectory() ? mode | ((mode & 0o444) >> 2) : mode)
}

/** The lock file is not ours any more when the folder was taken away; nothing depends on its going. */
function remove(path: string): void {
  try {
    rmSync(path, { force: true })
  } catch {
    // Whoever owns the folder may clear it.
  }
}

function exclusive(file: string, path: string, Sqlite: typeof DatabaseConstructor): Database {
  shareLike(file, path, () => closeSync(openSync(path, 'wx', 0o600)))
  const db = new Sqlite(path, { timeout: 0 })
  db.pragma('journal_mode = off')
  db.exec('begin exclusive')
  return db
}

function removeIfEmpty(folder: string): void {
  try {
    if (readdirSync(folder).length === 0) rmSync(folder, { recursive: true })
  } catch {
    // Another process works in it, or removed it: both are fine.
  }
}
