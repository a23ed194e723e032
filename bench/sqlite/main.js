// The engine's mechanisms beside the ones it did not take: `node bench/sqlite/main.js [EXPERIMENT…]`.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { counters, payload } from './beside.js'
import { checkpoint, sync } from './disk.js'
import { ack, claim, insert } from './statements.js'
import { commit, page, table } from './tables.js'

/** @type {Record<string, (folder: string) => void | Promise<void>>} */
const experiments = { insert, claim, ack, table, page, commit, payload, counters, sync, checkpoint }

const asked = process.argv.slice(2)
const strange = asked.filter((name) => !(name in experiments))
if (strange.length > 0) {
  console.error(`There is no ${strange.join(', ')}; there are: ${Object.keys(experiments).join(', ')}`)
  process.exit(2)
}

const folder = mkdtempSync(join(tmpdir(), 'piecework-bench-'))
try {
  for (const name of asked.length > 0 ? asked : Object.keys(experiments)) await experiments[name]?.(folder)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
