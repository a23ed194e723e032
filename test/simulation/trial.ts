// One trial: a plan played on a house and judged by every law; and what a whole set of them has seen.
import { judge } from './checker/judge.js'
import type { Violation } from './checker/law.js'
import type { SimEvent } from './events.js'
import type { House } from './house.js'
import { type FaultKind, faultKinds, type Plan } from './plan.js'
import { simulate } from './simulate.js'

export interface Trial {
  plan: Plan
  events: SimEvent[]
  violations: Violation[]
  looks: Map<string, number>
}

export async function tryPlan(plan: Plan, house: House): Promise<Trial> {
  const events = await simulate(plan, house)
  return { plan, events, ...judge(plan, events) }
}

/** What a set of trials has seen; too little of anything proves nothing. */
export class Coverage {
  trials = 0
  events = 0
  readonly faults = new Map<FaultKind, number>(faultKinds.map((kind) => [kind, 0]))
  readonly looks = new Map<string, number>()

  add({ plan, events, looks }: Trial): void {
    this.trials++
    this.events += events.length
    for (const event of events) {
      const kind = felt(event, plan)
      if (kind !== null) this.faults.set(kind, (this.faults.get(kind) ?? 0) + 1)
    }
    for (const [law, count] of looks) this.looks.set(law, (this.looks.get(law) ?? 0) + count)
  }

  /** What fell below its floor; empty when there was enough to judge. */
  vacuous(): string[] {
    const few = (what: string, seen: number, per100: number) =>
      seen >= floorFor(this.trials, per100) ? [] : [`${what}: ${seen} in ${this.trials} seeds, floor ${per100} per 100`]
    return [
      ...Object.entries(faultFloors).flatMap(([kind, floor]) =>
        few(`fault ${kind}`, this.faults.get(kind as FaultKind) ?? 0, floor),
      ),
      ...[...this.looks].flatMap(([law, seen]) => few(`law ${law}`, seen, lawFloors[law] ?? 100)),
    ]
  }

  /** A line for each kind of fault and each law. */
  lines(): string[] {
    const line = (what: string, seen: number, floor: number) =>
      `${what.padEnd(26)}${String(seen).padStart(9)}   (floor ${floor} per 100 seeds)`
    return [
      `${this.trials} seeds, ${this.events} events`,
      ...[...this.faults].map(([kind, seen]) => line(`fault ${kind}`, seen, faultFloors[kind])),
      ...[...this.looks].map(([law, seen]) => line(`law ${law}`, seen, lawFloors[law] ?? 100)),
    ]
  }
}

/** So many seeds meet what their mean says; fewer may by chance meet less of it, but never nothing. */
const enoughTrials = 200
function floorFor(trials: number, per100: number): number {
  const mean = (per100 * trials) / 100
  return trials < enoughTrials ? Math.max(1, mean - 2 * Math.sqrt(mean)) : mean
}

/** How often each kind of fault must have been felt in 100 seeds. */
const faultFloors: Record<FaultKind, number> = {
  ...{ kill: 25, pause: 25, deploy: 25, jump: 25, sleep: 25, slow: 25, busy: 25, fail: 10, full: 25 },
  ...{ lose: 10, twice: 20, starve: 25, late: 25 },
}

/** How many things each law must have judged in 100 seeds, where 100 is not the measure. */
const lawFloors: Record<string, number> = {
  ...{ 'lapsed receipt': 15, suspects: 25, stops: 60, repeats: 30, 'back in a second': 8 },
  ...{ duplicates: 30, 'batch ends': 80, 'follow-up': 50, 'batches finish': 80, 'dead to': 50 },
}

/** Faults that are felt by striking. */
const struck: readonly FaultKind[] = ['kill', 'deploy', 'jump', 'sleep']

/** The kind of fault that this event is the effect of; a fault that found nobody was not felt. */
function felt(event: SimEvent, { policy }: Plan): FaultKind | null {
  if (event.is === 'felt') return event.kind
  if (event.is === 'lost') return 'lose'
  if (event.is === 'ask') return event.copy ? 'twice' : null
  if (event.is === 'refused')
    return event.code === 'PW_DISK_FULL' ? 'full' : event.code === 'PW_STORE_FAILED' ? 'fail' : null
  if (event.is !== 'fault' || event.hits === null) return null
  const { kind, ms } = event.fault
  // A pause that is shorter than the lease is none that a lease could end in.
  if (kind === 'pause') return ms >= policy.leaseMs ? kind : null
  return struck.includes(kind) ? kind : null
}
