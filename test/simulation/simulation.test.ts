// 200 seeds of chaos keep every law, repeat to the byte, and saw enough of every fault and law to say so.
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, describe, expect, it } from 'vitest'
import { copyOf, type Edit, withCopy } from '../planting/copy.js'
import { hashOf } from './events.js'
import { houseIn } from './house.js'
import { type Plan, planOf } from './plan.js'
import { Owner, Scheduler } from './scheduler.js'
import { Coverage, tryPlan } from './trial.js'

const seeds = 200
// Of a copy, which Node loads by itself: of what vitest loads, each opening of a store asks vitest's main process for
// SQLite again, and a play must wait for nothing but its own scheduler.
const copy = copyOf([])
afterAll(copy.remove)
const house = await houseIn(copy.folder)

it(`${seeds} seeds keep every law`, { timeout: 600_000 }, async () => {
  const coverage = new Coverage()
  const broken: string[] = []
  for (let seed = 1; seed <= seeds; seed++) {
    const trial = await tryPlan(planOf(seed), house)
    coverage.add(trial)
    broken.push(...trial.violations.map(({ law, text }) => `seed ${seed} breaks "${law}": ${text}`))
  }
  console.log(coverage.lines().join('\n'))
  expect(broken, 'npm run sim -- --seed N shrinks and keeps it').toEqual([])
  expect(coverage.vacuous(), 'VACUOUS').toEqual([])
})

const hashAt = async (seed: number) => hashOf((await tryPlan(planOf(seed), house)).events)

const run = promisify(execFile)

it('the same seed gives the same events, to the byte, in another process too', { timeout: 180_000 }, async () => {
  for (const seed of [2, 12, 77]) expect(await hashAt(seed)).toBe(await hashAt(seed))
  const sim = fileURLToPath(new URL('../../scripts/sim.js', import.meta.url))
  // One that does not end is ended, and tells what it said so far; waiting for it blocks nobody.
  const bounds = { timeout: 120_000, killSignal: 'SIGKILL', maxBuffer: 2 ** 26 } as const
  const { stdout } = await run(process.execPath, [sim, '--seed', '77', '--trace'], bounds).catch((error) => {
    throw new Error(`${error.message}\nIt said last: ${String(error.stdout).slice(-2000)}`)
  })
  expect(stdout).toContain(`hash ${await hashAt(77)}`)
})

it('another seed gives other events', async () => {
  expect(await hashAt(2)).not.toBe(await hashAt(12))
})

it('a run that saw nothing is VACUOUS', async () => {
  const coverage = new Coverage()
  coverage.add(await tryPlan({ ...planOf(1), items: [], faults: [], acts: [] }, house))
  expect(coverage.vacuous().length).toBeGreaterThan(20)
})

it('an answer that nothing brings, and a clock that stands still, end with a story instead of never', async () => {
  const scheduler = new Scheduler()
  const owner = new Owner('p9')
  await expect(scheduler.answer('a call', new Promise(() => {}))).rejects.toThrow(/Nothing answered a call/)
  const again = () => void scheduler.after(owner, 0, again)
  again()
  await expect(scheduler.run(scheduler.now + 10, () => false)).rejects.toThrow(
    /clock stands still.* the last one of p9/,
  )
})

it('the event loop turns while a run is under way, so that time-outs and reporters are heard', async () => {
  const scheduler = new Scheduler()
  const owner = new Owner('p9')
  let turns = 0
  const turn = () => setImmediate(() => ++turns < 3 && turn())
  const again = () => void scheduler.after(owner, 1, again)
  again()
  turn()
  await scheduler.run(scheduler.now + 5000, () => false)
  expect(turns).toBe(3)
})

const kept = new URL('seeds/', import.meta.url)
const files = readdirSync(kept).filter((name) => name.endsWith('.json'))

interface Kept {
  law: string
  /** Whose fault it was, what happened and what mended it. */
  story: string
  /** Puts a fault of the product back; there is none where the simulation itself was wrong. */
  fault?: Edit[]
  plan: Plan
}

describe.each(files)('%s', { timeout: 120_000 }, (name) => {
  const { law, story, fault, plan } = JSON.parse(readFileSync(new URL(name, kept), 'utf8')) as Kept

  it('once broke a law and does so no more', async () => {
    const { violations } = await tryPlan(plan, house)
    expect(violations).toEqual([])
  })

  it('says whose fault it was, and a fault of the product breaks the law again', async () => {
    expect(story).toMatch(fault ? /^Product: .+\.$/ : /^(Simulator|Checker): .+\.$/)
    if (!fault) return
    const { violations } = await withCopy(fault, async (folder) => tryPlan(plan, await houseIn(folder)))
    expect(violations.map((violation) => violation.law)).toContain(law)
  })
})
