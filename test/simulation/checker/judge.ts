// Judges one run by every law: FAIL with what was broken; what each law looked at is counted, for VACUOUS.
import type { SimEvent } from '../events.js'
import type { Plan } from '../plan.js'
import type { Law, Violation } from './law.js'
import { back } from './laws/back.js'
import { batchCounts, batchEnds, batchesFinish, followUps } from './laws/batches.js'
import { budget } from './laws/budget.js'
import { clockLaw } from './laws/clock.js'
import { counters } from './laws/counters.js'
import { deadTo } from './laws/dead-to.js'
import { dedup } from './laws/dedup.js'
import { duplicates } from './laws/duplicates.js'
import { finish, kept } from './laws/ends.js'
import { holder, keptLease } from './laws/holder.js'
import { keys } from './laws/keys.js'
import { limit } from './laws/limit.js'
import { numbers } from './laws/numbers.js'
import { keepsPlace, places } from './laws/places.js'
import { lapsed, newest } from './laws/receipts.js'
import { repeats } from './laws/repeats.js'
import { slots } from './laws/slots.js'
import { stops } from './laws/stops.js'
import { suspects } from './laws/suspects.js'
import { synced } from './laws/synced.js'
import { World } from './world.js'

export const laws: readonly Law[] = [
  ...[kept, synced, holder, keptLease, newest, lapsed, numbers, budget, suspects, dedup, places, keepsPlace, keys],
  ...[limit, counters, repeats, stops, back, clockLaw, slots, finish, duplicates],
  ...[batchEnds, followUps, batchCounts, batchesFinish, deadTo],
]

export interface Judgement {
  violations: Violation[]
  /** How much each law looked at. */
  looks: Map<string, number>
}

/** Enough of one law to understand a broken run; a storm of the same complaint says no more. */
const violationsMax = 5

export function judge(plan: Plan, events: readonly SimEvent[]): Judgement {
  const world = new World(plan)
  const looks = new Map(laws.map(({ name }) => [name, 0]))
  const watchers = laws.map((law) => ({
    law: law.name,
    watcher: law.watch(plan, () => looks.set(law.name, (looks.get(law.name) ?? 0) + 1)),
  }))
  const violations: Violation[] = []
  const complain = (law: string, event: number, texts: Iterable<string> | undefined) => {
    for (const text of texts ?? []) {
      const before = violations.filter((violation) => violation.law === law).length
      if (before < violationsMax) violations.push({ law, text, event })
    }
  }
  for (const [index, event] of events.entries()) {
    const change = event.is === 'change' ? world.meaning(event) : null
    for (const { law, watcher } of watchers) {
      complain(law, index, watcher.see?.(event, world))
      if (change) complain(law, index, watcher.change?.(change, world))
    }
    world.apply(event)
  }
  for (const { law, watcher } of watchers) complain(law, events.length - 1, watcher.end?.(world))
  return { violations, looks }
}
