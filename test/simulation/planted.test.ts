// The simulation bites: each bug planted into a copy of the product breaks its law within 200 seeds.
import { describe, expect, it } from 'vitest'
import { withCopy } from '../planting/copy.js'
import { laws } from './checker/judge.js'
import { type House, houseIn } from './house.js'
import { planOf } from './plan.js'
import { planted } from './planted.js'
import { tryPlan } from './trial.js'

const seedsMax = 200

/** The first seed under which the law is broken; null when none is. */
async function caughtAt(law: string, house: House): Promise<number | null> {
  for (let seed = 1; seed <= seedsMax; seed++) {
    const { violations } = await tryPlan(planOf(seed), house)
    if (violations.some((violation) => violation.law === law)) return seed
  }
  return null
}

describe('a planted bug is caught', () => {
  it.each(planted)('$bug: $law', { timeout: 300_000 }, async ({ law, edits }) => {
    const seed = await withCopy(edits, async (folder) => caughtAt(law, await houseIn(folder)))
    expect(seed, `"${law}" did not object within ${seedsMax} seeds`).not.toBeNull()
    console.log(`caught at seed ${seed}`)
  })

  it('and every law has one', () => {
    const woken = new Set(planted.map(({ law }) => law))
    expect(laws.map(({ name }) => name).filter((name) => !woken.has(name))).toEqual([])
  })

  it('and the copy itself is sound', async () => {
    const { violations } = await withCopy([], async (folder) => tryPlan(planOf(1), await houseIn(folder)))
    expect(violations).toEqual([])
  })
})
