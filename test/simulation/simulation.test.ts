// 200 seeds of chaos keep every law, repeat to the byte, and saw enough of every fault and law to say so.
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { type Edit, withCopy } from '../planting/copy.js'
import { hashOf } from './events.js'
import { builtHouse, houseIn } from './house.js'
import { type Plan, planOf } from './plan.js'
import { Coverage, tryPlan } from './trial.js'

const seeds = 200
const house = await builtHouse()

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

it('the same seed gives the same events, to the byte, in another process too', async () => {
  for (const seed of [2, 12, 77]) expect(await hashAt(seed)).toBe(await hashAt(seed))
  const sim = fileURLToPath(new URL('../../scripts/sim.js', import.meta.url))
  const { stdout } = spawnSync(process.execPath, [sim, '--seed', '77', '--trace'], { encoding: 'utf8' })
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

describe.each(files)('%s', (name) => {
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
