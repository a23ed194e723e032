// How a dead process is known at once: each process holds an exclusive lock on a file that the kernel lets go with it.

import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type DatabaseConstructor from 'better-sqlite3'
import type { Database } from 'better-sqlite3'
import { isBusy } from './errors.js'

/** The liveness port of the engine; a simulator decides by itself who lives. */
export interface Liveness {
  /** Takes this process's lock, once; answers the proof that others can test. */
  hold(): string | null
  /** True only when the holder of this proof is certainly gone. */
  isDead(proof: string): boolean
  /** Gives the lock back when the last holder of this process lets go. */
  drop(): void
  /** Removes what a dead holder left. */
  clear(proof: string): void
}

/** For stores that live in this process only: their workers die with them. */
export const noLiveness: Liveness = { hold: () => null, isDead: () => false, drop() {}, clear() {} }

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
        mkdirSync(folder, { recursive: true, mode: 0o700 })
        const proof = `${process.pid}-${randomBytes(6).toString('hex')}.lock`
        held = { db: exclusive(join(folder, proof), Sqlite), holders: 0, proof }
        registry.set(folder, held)
      }
      if (!holding) held.holders++
      holding = true
      return held.proof
    },
    isDead(proof) {
      if (registry.get(folder)?.proof === proof || !/^[\w-]+\.lock$/.test(proof)) return false
      const path = join(folder, proof)
      if (!existsSync(path)) return true
      let db: Database | undefined
      try {
        db = new Sqlite(path, { timeout: 0, fileMustExist: true })
        db.exec('begin exclusive; rollback')
        return true
      } catch (error) {
        // Anything but a free lock (no more descriptors, say) proves nothing.
        return !isBusy(error) && !existsSync(path)
      } finally {
        db?.close()
      }
    },
    drop() {
      const held = registry.get(folder)
      if (!holding || !held) return
      holding = false
      if (--held.holders > 0) return
      registry.delete(folder)
      rmSync(join(folder, held.proof), { force: true })
      held.db.close()
      removeIfEmpty(folder)
    },
    clear(proof) {
      rmSync(join(folder, proof), { force: true })
    },
  }
}

function shared<T>(name: string, make: () => T): T {
  const global = globalThis as { [key: symbol]: unknown }
  const key = Symbol.for(name)
  if (!(key in global)) global[key] = make()
  return global[key] as T
}

function exclusive(path: string, Sqlite: typeof DatabaseConstructor): Database {
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
