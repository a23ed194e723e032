// Cuts the power at random moments of recorded workloads and checks what is left: `npm run test:powerloss`.
import { randomInt } from 'node:crypto'
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { drawPoints, play } from './points.js'
import { compile, proveComplete, readRecording, record } from './recorder.js'

const usage = `npm run test:powerloss -- [--points N] [--seed N] [--dir FOLDER] [--keep]
npm run test:powerloss -- --again RECORDING --point EVENT:SEED
  --points  power cuts in each recording, default 120; the controls get half as many
  --seed    decides workloads and power cuts, default drawn; timing is the machine's own, so runs differ all the same
  --dir     where the files go, default the system's temporary folder
  --keep    leaves the recordings there; they are left in any case when a point failed
  --again   plays one point of a recording that was left`

const { values } = parseArgs({
  options: {
    points: { type: 'string', default: '120' },
    seed: { type: 'string', default: String(randomInt(1, 2 ** 31)) },
    dir: { type: 'string', default: tmpdir() },
    keep: { type: 'boolean', default: false },
    again: { type: 'string' },
    point: { type: 'string', default: '' },
    help: { type: 'boolean', default: false },
  },
})

/**
 * @typedef {import('./workload.js').Plan} Plan
 * @typedef {import('./recorder.js').Recording} Recording
 * @typedef {{ lost: number, repeated: number, broken: number, any: number, points: number }} Tally points with each
 */

/** What must hold: no point may lose (but under `relaxed`), repeat or break anything. @type {Plan[]} */
const promises = [
  { name: 'group-10', pages: 10, processes: 1, durability: 'group', jumps: false },
  { name: 'group-50', pages: 50, processes: 2, durability: 'group', jumps: false },
  { name: 'group-1000', pages: 1000, processes: 2, durability: 'group', jumps: false },
  { name: 'group-leaps', pages: 1000, processes: 1, durability: 'group', jumps: true },
  { name: 'full-50', pages: 50, processes: 1, durability: 'full', jumps: false },
  { name: 'relaxed-1000', pages: 1000, processes: 1, durability: 'relaxed', jumps: true },
]

/**
 * What must fail, in at least this share of its points, or the suite is blind.
 * @type {{ plan: Plan, kind: 'lost' | 'repeated', share: number, leaps?: true }[]}
 */
const faults = [
  {
    plan: {
      name: 'joins-a-running-sync',
      pages: 1000,
      processes: 1,
      durability: 'group',
      jumps: false,
      plant: 'joining',
    },
    kind: 'lost',
    share: 0.1,
  },
  {
    plan: {
      name: 'reserves-unsynced',
      pages: 1000,
      processes: 1,
      durability: 'group',
      jumps: true,
      plant: 'unreserved',
    },
    kind: 'repeated',
    share: 0.05,
    leaps: true,
  },
]
/** The control plays recordings of the first kind on a disk whose syncs do nothing. */
const control = { names: ['group-10', 'group-50', 'group-1000'], share: 0.3 }

const seed = Number(values.seed)
const points = Number(values.points)
let failures = 0

/** Says what is wrong; the run goes on, and fails in the end. */
function fail(/** @type {string} */ text) {
  failures++
  process.stdout.write(`FAILED  ${text}\n`)
}

/**
 * Plays `count` points and counts those that went wrong.
 * @param {Recording} recording
 * @param {import('./points.js').Point[]} drawn
 * @param {boolean} honest
 * @param {(verdict: import('./points.js').Verdict) => void} [heard]
 */
async function tally(recording, drawn, honest, heard) {
  /** @type {Tally} */
  const sum = { lost: 0, repeated: 0, broken: 0, any: 0, points: 0 }
  await play(recording, drawn, { honest }, (verdict) => {
    sum.points++
    if (verdict.wrong.length > 0) sum.any++
    for (const kind of new Set(verdict.wrong.map((one) => one.kind))) sum[kind]++
    heard?.(verdict)
  })
  return sum
}

const columns = [24, 9, 9, 9, 8, 8, 6, 10, 9]
const padded = (/** @type {string | number} */ cell, /** @type {number} */ i) =>
  i === 0 ? String(cell).padEnd(columns[i] ?? 0) : String(cell).padStart(columns[i] ?? 0)
const line = (/** @type {(string | number)[]} */ cells) => `${cells.map(padded).join('')}\n`

/**
 * @param {string} name
 * @param {Recording} recording
 * @param {{ points: number, lost: number, repeated: number, broken: number }} sum
 */
function print(name, { events, syncs, accepted, duringSyncs }, sum) {
  const { points, lost, repeated, broken } = sum
  process.stdout.write(line([name, events.length, syncs, accepted, duringSyncs, points, lost, repeated, broken]))
}

/** Prints what was wrong at a point, and how to look at it again; `relaxed` may lose what was accepted, no more. */
function explain(
  /** @type {string} */ place,
  /** @type {Plan} */ plan,
  /** @type {import('./points.js').Verdict} */ verdict,
) {
  const { point } = verdict
  const wrong = verdict.wrong.filter(({ kind }) => kind !== 'lost' || plan.durability !== 'relaxed')
  if (wrong.length === 0) return
  const texts = wrong.slice(0, 5).map(({ kind, what }) => `          ${kind}: ${what}`)
  const again = `npm run test:powerloss -- --again ${place} --point ${point.at}:${point.seed}`
  fail(`${place}: ${wrong.length} findings after event ${point.at}\n${texts.join('\n')}\n          ${again}`)
}

/** Too little happened to say anything. */
function vacuous(/** @type {Recording} */ { plan, accepted, syncs, duringSyncs }) {
  if (accepted < 1000) fail(`${plan.name}: VACUOUS: only ${accepted} operations were accepted`)
  if (plan.durability !== 'relaxed' && syncs < 100) fail(`${plan.name}: VACUOUS: only ${syncs} syncs`)
  if (plan.durability === 'group' && duringSyncs < 200) {
    fail(`${plan.name}: VACUOUS: only ${duringSyncs} writes fell into a sync of the log`)
  }
}

async function cutEverything() {
  const root = realpathSync(mkdtempSync(join(values.dir, 'piecework-powerloss-')))
  const library = compile(root)
  const startedAt = Date.now()
  process.stdout.write(`seed ${seed}, recordings in ${root}\n`)
  process.stdout.write(
    line(['recording', 'events', 'syncs', 'accepted', 'in sync', 'points', 'lost', 'repeated', 'broken']),
  )
  const make = async (/** @type {Plan} */ plan) => {
    const recording = await record(library, root, plan, seed)
    proveComplete(recording)
    vacuous(recording)
    return recording
  }
  const blind = { points: 0, lost: 0, repeated: 0, broken: 0, any: 0 }
  for (const plan of promises) {
    const recording = await make(plan)
    const drawn = drawPoints(recording, points, seed)
    print(
      plan.name,
      recording,
      await tally(recording, drawn, true, (verdict) => explain(join(root, plan.name), plan, verdict)),
    )
    if (!control.names.includes(plan.name)) continue
    const sum = await tally(recording, drawPoints(recording, points / 2, seed + 1), false)
    print('  with syncs ignored', recording, sum)
    for (const field of /** @type {const} */ (['points', 'lost', 'repeated', 'broken', 'any']))
      blind[field] += sum[field]
  }
  if (blind.any < blind.points * control.share) fail(`VACUOUS: without syncs only ${blind.any} of ${blind.points} lost`)
  for (const { plan, kind, share, leaps = false } of faults) {
    const recording = await make(plan)
    const sum = await tally(recording, drawPoints(recording, points / 2, seed, leaps), true)
    print(`  ${plan.name}`, recording, sum)
    if (sum[kind] < sum.points * share) fail(`VACUOUS: ${plan.name} is not found: ${sum[kind]} of ${sum.points} points`)
  }
  process.stdout.write(`${Math.round((Date.now() - startedAt) / 1000)} s\n`)
  if (failures === 0 && !values.keep) rmSync(root, { recursive: true })
  process.stdout.write(failures === 0 ? 'PASSED\n' : `FAILED  ${failures} times; the recordings are kept\n`)
}

async function playAgain(/** @type {string} */ place) {
  const [at = Number.NaN, ofPoint = Number.NaN] = values.point.split(':').map(Number)
  if (!Number.isInteger(at) || !Number.isInteger(ofPoint)) throw new Error('--point must be EVENT:SEED')
  const recording = readRecording(place)
  await tally(recording, [{ at, seed: ofPoint }], true, (verdict) => explain(place, recording.plan, verdict))
  if (failures === 0) process.stdout.write('nothing wrong\n')
}

if (values.help) process.stdout.write(`${usage}\n`)
else if (values.again !== undefined) await playAgain(values.again)
else await cutEverything()
if (failures > 0) process.exitCode = 1
