// Makes a failing plan smaller: takes faults, tasks and acts out as long as the same law is still broken.
import type { House } from './house.js'
import type { Plan } from './plan.js'
import { type Trial, tryPlan } from './trial.js'

const lists = ['faults', 'acts', 'items'] as const

/** The smallest plan found within `triesMax` trials; the law that the given one breaks first stays broken. */
export async function shrink(failing: Trial, house: House, triesMax = 400): Promise<Trial> {
  const law = failing.violations[0]?.law
  let best = failing
  let tries = 0
  const better = async (plan: Plan): Promise<boolean> => {
    if (tries++ >= triesMax) return false
    const trial = await tryPlan(plan, house)
    const same = trial.violations.find((violation) => violation.law === law)
    if (same) best = { ...trial, violations: [same, ...trial.violations.filter((other) => other !== same)] }
    return same !== undefined
  }
  for (let before = -1; before !== sizeOf(best.plan) && tries < triesMax; ) {
    before = sizeOf(best.plan)
    for (const list of lists) await thinOut(list, () => best.plan, better)
  }
  return best
}

const sizeOf = (plan: Plan) => lists.reduce((sum, list) => sum + plan[list].length, 0)

/** Takes out runs of neighbours, long ones first, down to single entries. */
async function thinOut(
  list: (typeof lists)[number],
  plan: () => Plan,
  better: (plan: Plan) => Promise<boolean>,
): Promise<void> {
  for (let size = Math.ceil(plan()[list].length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let from = 0; from < plan()[list].length; ) {
      const left = [...plan()[list]]
      left.splice(from, size)
      if (!(await better({ ...plan(), [list]: left }))) from += size
    }
  }
}
