// Starts the machine again on what a power cut left: opens it with the engine under a new boot, and audits it.
import {
  closeSync,
  existsSync,
  ftruncateSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { engineFor } from '../../dist/engines/open.js'
import { manualClock } from '../../dist/testing/manual-clock.js'
import { audit, auditFigures } from './audit.js'
import { marksName } from './marks.js'
import { workOff } from './workoff.js'

/**
 * @typedef {import('./ledger.js').Ledger} Ledger
 * @typedef {import('./recorder.js').Recording} Recording
 * @typedef {'lost' | 'repeated' | 'broken'} Kind lost: something accepted is not so; repeated: a number came twice;
 *   broken: the store cannot be opened, is damaged, or its figures are not a full count
 * @typedef {(kind: Kind, what: string) => void} Report
 */

const hour = 3_600_000
/** Where the wall clock stands after the start, compared with the cut: right, or set back, or far ahead. */
const wallShifts = [5000, 5000, -hour, -hour, -10 * 365 * 24 * hour, 30 * 24 * hour]

/**
 * Puts the files where the recorded ones were, since a store knows its database file by its inode.
 * @param {string} folder
 * @param {Map<string, Buffer>} image
 * @param {() => number} random
 */
export function putImage(folder, image, random) {
  const database = join(folder, 'work.db')
  const parked = `${folder}.parked`
  for (const name of readdirSync(folder)) {
    if (name !== 'work.db') rmSync(join(folder, name), { recursive: true })
  }
  if (existsSync(parked)) {
    rmSync(database, { force: true })
    renameSync(parked, database)
  }
  for (const [name, bytes] of image) {
    if (name === marksName) continue
    const fd = openSync(join(folder, name), name === 'work.db' ? 'r+' : 'w', 0o600)
    ftruncateSync(fd, 0)
    for (let at = 0; at < bytes.length; at += writeSync(fd, bytes, at));
    closeSync(fd)
  }
  if (!image.has('work.db')) renameSync(database, parked)
  // The index of the log survives a power cut as little as memory does; what stands in its file may be anything.
  else if (random() < 0.3) writeFileSync(`${database}-shm`, Buffer.alloc(32768, Math.floor(random() * 256)))
}

/**
 * Opens what lies in the folder after a restart of the machine and checks it against the books.
 * @param {Recording} recording
 * @param {Ledger} ledger
 * @param {() => number} random
 * @param {Report} report
 */
export async function startAgain({ plan, folder }, ledger, random, report) {
  const shiftMs = wallShifts[Math.floor(random() * wallShifts.length)] ?? 0
  const clock = manualClock(ledger.wallMs + shiftMs)
  const file = join(folder, 'work.db')
  const owes = plan.durability !== 'relaxed'
  const engine = engineFor(`sqlite:${file}`, { clock, random, durability: plan.durability })
  /** @type {import('better-sqlite3').Database | null} */
  let db = null
  try {
    await engine.open()
    db = new Database(file, { readonly: true })
    const damage = db.pragma('integrity_check', { simple: true })
    if (damage !== 'ok') report('broken', `integrity_check says ${damage}`)
    auditFigures(db, report)
    audit(db, ledger, report)
    await workOff({ engine, clock, db, ledger, owes, report, random, answersKept: shiftMs < hour })
    auditFigures(db, report)
  } catch (error) {
    report('broken', error instanceof Error ? (error.stack ?? error.message) : String(error))
  } finally {
    db?.close()
    await engine.close().catch(() => {})
  }
}
