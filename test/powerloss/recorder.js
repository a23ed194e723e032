// Makes recordings: compiles record.c, preloads it into the processes of a workload, and proves that nothing went past.
import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Disk } from './disk.js'
import { Ledger } from './ledger.js'
import { readLog } from './log.js'
import { markOf } from './marks.js'

/**
 * @typedef {import('./workload.js').Plan} Plan
 * @typedef {object} Recording
 * @property {Plan} plan
 * @property {string} folder what was recorded: its database file is used again for every point, since a store knows it
 * @property {import('./log.js').Event[]} events
 * @property {number} syncs that ended
 * @property {number} duringSyncs writes to the log while a sync of it was under way: those it does not cover
 * @property {number} accepted operations whose answer somebody had
 */

/** Tasks each process asks for between opening and closing, and how often it does so. */
const sizes = { rounds: 3, tasks: 1200 }
/** How long a sync of the log lasts at least, so that on any disk commits fall into it. */
const syncUs = 1500

const here = (/** @type {string} */ name) => fileURLToPath(new URL(name, import.meta.url))

/** Compiles the recorder into `root`; answers the library's path. */
export function compile(/** @type {string} */ root) {
  const library = join(root, 'record.so')
  for (const compiler of [process.env.CC, 'cc', 'gcc', 'clang']) {
    if (!compiler) continue
    const args = ['-O2', '-shared', '-fPIC', '-o', library, here('record.c'), '-ldl', '-lpthread']
    const made = spawnSync(compiler, args, { encoding: 'utf8' })
    if (made.status === 0) return library
    if (made.error === undefined) throw new Error(`${compiler} refused record.c:\n${made.stderr}`)
  }
  throw new Error('The recorder is written in C: it needs cc, gcc or clang, which also node-gyp needs.')
}

/**
 * Runs the plan's processes until each has killed itself.
 * @param {string} library
 * @param {string} root
 * @param {Plan} plan
 * @param {number} seed
 * @returns {Promise<Recording>}
 */
export async function record(library, root, plan, seed) {
  const place = join(root, plan.name)
  const folder = join(place, 'store')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(place, 'plan.json'), JSON.stringify(plan))
  const env = {
    ...process.env,
    LD_PRELOAD: library,
    PIECEWORK_RECORD_FOLDER: folder,
    PIECEWORK_RECORD_LOG: join(place, 'log'),
    PIECEWORK_RECORD_SYNC_US: String(syncUs),
    // Calls that go to the kernel through a ring cannot be seen.
    UV_USE_IO_URING: '0',
  }
  const parts = Array.from({ length: plan.processes }, (_, part) => part)
  await Promise.all(parts.map((part) => run({ folder, plan, part, seed, ...sizes }, env)))
  return readRecording(place)
}

/** @returns {Recording} */
export function readRecording(/** @type {string} */ place) {
  const folder = join(place, 'store')
  const events = readLog(join(place, 'log'))
  const plan = JSON.parse(readFileSync(join(place, 'plan.json'), 'utf8'))
  const mark = markOf(events)
  const ledger = new Ledger()
  /** @type {Map<number, number>} syncs under way, by file */
  const running = new Map()
  let [syncs, duringSyncs] = [0, 0]
  for (const event of events) {
    if (event.kind === 'syncStart') running.set(event.file, (running.get(event.file) ?? 0) + 1)
    if (event.kind === 'syncEnd') running.set(event.file, (running.get(event.file) ?? 0) - 1)
    if (event.kind === 'syncEnd') syncs++
    if (event.kind === 'write' && (running.get(event.file) ?? 0) > 0) duringSyncs++
    const said = mark(event)
    if (said) ledger.note(said)
  }
  return { plan, folder, events, syncs, duringSyncs, accepted: ledger.accepted }
}

function run(order, env) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [here('workload.js'), JSON.stringify(order)], { env, stdio: 'inherit' })
    child.on('error', reject)
    child.on('exit', (code, signal) => {
      if (signal === 'SIGKILL') resolve(undefined)
      else reject(new Error(`The workload of ${order.plan.name} ended with ${signal ?? code} before its time.`))
    })
  })
}

/** Throws unless the log, played to its end, gives the files that are really there, byte for byte. */
export function proveComplete(/** @type {Recording} */ { plan, folder, events }) {
  const disk = new Disk({ honest: true })
  for (const event of events) disk.apply(event)
  const played = disk.whole()
  const real = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.endsWith('-shm'))
    .map(({ name }) => name)
  const wrong = [...new Set([...played.keys(), ...real])].filter((name) => {
    const bytes = played.get(name)
    return !real.includes(name) || bytes === undefined || !bytes.equals(readFileSync(join(folder, name)))
  })
  if (wrong.length > 0) throw new Error(`The recorder of ${plan.name} missed changes of ${wrong.join(', ')}.`)
}
