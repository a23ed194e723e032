// Counts what a piece of work asks of SQLite and of the disk; slows both down, so it never runs while time is taken.
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import Database from 'better-sqlite3'

const db = new Database(':memory:')
const statements = Object.getPrototypeOf(db.prepare('select 1'))
db.close()

/**
 * Statements run by this thread, write transactions begun among them, and syncs begun while `work` runs.
 * @param {() => Promise<unknown>} work
 */
export async function counted(work) {
  const counts = { statements: 0, transactions: 0, syncs: 0 }
  const undo = ['run', 'get', 'all'].map((name) => {
    const original = statements[name]
    /** @this {Database.Statement} */
    statements[name] = function (...params) {
      counts.statements++
      if (this.source.startsWith('begin immediate')) counts.transactions++
      return original.apply(this, params)
    }
    return () => {
      statements[name] = original
    }
  })
  const { fdatasync } = fs
  fs.fdatasync = /** @type {any} */ (
    (/** @type {number} */ fd, /** @type {fs.NoParamCallback} */ done) => {
      counts.syncs++
      fdatasync(fd, done)
    }
  )
  syncBuiltinESMExports()
  try {
    await work()
  } finally {
    for (const step of undo) step()
    fs.fdatasync = fdatasync
    syncBuiltinESMExports()
  }
  return counts
}
