// What was added to plans later, thrown with dice of its own: what a seed had before, its first dice still decide.
import { seededRandom } from '../../dist/testing/seeded-random.js'
import { Dice } from './dice.js'
import type { BatchPlan, Fault, FaultKind, Item, Plan } from './plan.js'

export function withAdditions(plan: Plan): Plan {
  const dice = new Dice(seededRandom(plan.seed * 104_729 + 3))
  const batches = dice.chance(0.6) ? batchesOf(dice, plan) : []
  const revising = dice.chance(0.6)
  const names = batches.map(({ name }) => name)
  const items = plan.items.map((item) => revised(dice, revising, joining(dice, names, item)))
  const faults = deathsOf(dice, plan)
  return { ...plan, items, batches, faults, deadTo: dice.chance(0.3) }
}

/** Follow-ups have numbers of their own. */
const followUpItem = (batch: number, again: number) => 1000 + batch * 10 + again

/** Up to three, what follows one perhaps in another: that one must wait for it. */
function batchesOf(dice: Dice, { chaosMs, processes }: Plan): BatchPlan[] {
  const any = () => dice.between(0, processes.length - 1)
  const names = ['b0', 'b1', 'b2'].slice(0, dice.between(1, 3))
  return names.map((name, index) => {
    const inside = index > 0 && dice.chance(0.6) ? dice.pick(...names.slice(0, index)) : null
    const says = dice.times(dice.pick(0, 1, 1, 1, 2), (again) => ({
      atMs: again === 0 ? dice.between(0, 300) : dice.between(300, chaosMs),
      process: any(),
      task: followUp(dice, followUpItem(index, again), again > 0 && dice.chance(0.3) ? null : inside),
    }))
    const sealMs = dice.between(chaosMs * 0.2, chaosMs)
    const cancelMs = dice.chance(0.2) ? dice.between(chaosMs * 0.2, chaosMs) : null
    return { name, says, process: any(), sealMs, cancelMs }
  })
}

const followUp = (dice: Dice, item: number, batch: string | null): Item => ({
  ...{ item, atMs: 0, process: 0, type: dice.pick('a', 'b'), priority: dice.pick(0, 0, 5), onWall: false },
  ...{ delayMs: dice.pick(0, 0, 500), key: dice.pick(null, null, 'k1'), dedupKey: null, batch },
  script: { ms: dice.pick(0, 30, 200), how: dice.pick('ack', 'ack', 'ack', 'throw', 'bury'), times: 1, deaf: false },
})

const joining = (dice: Dice, names: readonly string[], item: Item): Item =>
  names.length > 0 && dice.chance(0.5) ? { ...item, batch: dice.pick(...names) } : item

/** Half of what may meet its like changes it; most of that is so alike that it can. */
function revised(dice: Dice, revising: boolean, item: Item): Item {
  if (!revising) return item
  const met = dice.chance(0.2) ? { ...item, dedupKey: dice.pick('d1', 'd2') } : item
  if (met.dedupKey === null || dice.chance(0.3)) return met
  const onDuplicate = dice.pick('replace', 'replace', 'delay')
  const delayMs = onDuplicate === 'delay' && met.delayMs === 0 ? dice.between(1, 1500) : met.delayMs
  return { ...met, ...(dice.chance(0.8) ? { type: 'a', key: null } : {}), onDuplicate, delayMs }
}

/** Whether a dead one's tasks are back in time is judged only where nothing else explains a delay. */
const explaining: readonly FaultKind[] = ['busy', 'fail', 'full', 'lose', 'twice', 'pause']

/** The faults; under leases that outlast the chaos those beside the store die more often, and most of them in peace. */
function deathsOf(dice: Dice, { chaosMs, policy, processes, faults }: Plan): Fault[] {
  if (policy.leaseMs < chaosMs * 2) return faults
  const beside = processes.flatMap(({ wire }, index) => (wire ? [] : [index]))
  const kills = dice.times(3, () => ({
    ...{ kind: 'kill' as const, atMs: dice.between(2, chaosMs / 500) * 500 + dice.between(1, 200), size: 0 },
    ...{ ms: dice.between(50, 2000), process: dice.pick(...beside) },
  }))
  const peace = dice.chance(0.75)
  return [...faults.filter(({ kind }) => !peace || !explaining.includes(kind)), ...kills]
}
