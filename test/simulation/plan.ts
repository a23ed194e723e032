// The plan of one simulated run as plain data: who works, what is enqueued, which faults strike; a seed makes one.
import type { PolicyPatch } from '../../dist/task/limits.js'
import { seededRandom } from '../../dist/testing/seeded-random.js'
import { withAdditions } from './additions.js'
import { Dice } from './dice.js'

/** What a task's handler does: takes `ms`, ends its first `times` deliveries as `how` says and later ones well. */
export interface Script {
  ms: number
  how: 'ack' | 'throw' | 'release' | 'snooze' | 'bury' | 'kill'
  times: number
  /** Does not listen to its signal. */
  deaf: boolean
}

export interface Item {
  item: number
  atMs: number
  process: number
  type: 'a' | 'b'
  priority: number
  delayMs: number
  /** Due at a wall-clock instant instead of after a delay. */
  onWall: boolean
  key: string | null
  dedupKey: string | null
  onDuplicate?: 'replace' | 'delay'
  batch?: string | null
  script: Script
}

/** A batch that tasks join by their enqueue: who says what follows it and when, who seals and who cancels it. */
export interface BatchPlan {
  name: string
  /** The newest that was said while it is open counts. */
  says: { atMs: number; process: number; task: Item }[]
  process: number
  sealMs: number
  cancelMs: number | null
}

export const faultKinds = [
  ...(['kill', 'pause', 'deploy', 'jump', 'sleep'] as const),
  ...(['slow', 'busy', 'fail', 'full'] as const),
  ...(['lose', 'twice', 'starve', 'late'] as const),
]
export type FaultKind = (typeof faultKinds)[number]

/** What strikes one process names it; what lasts has a length. `size` means what its kind says. */
export interface Fault {
  kind: FaultKind
  atMs: number
  /** For how long; of a kill, until the process is back. */
  ms: number
  /** Whom; none for what befalls the store or the machine. */
  process?: number
  /** jump, sleep: ms of the clock; slow: ms of a sync; lose, twice: the share of calls; starve, late: ms of delay. */
  size: number
}

/** What an operator does meanwhile. */
export interface Act {
  atMs: number
  do: 'redrive' | 'cancel'
  /** Of a cancel: which task, counted from the first that was accepted. */
  pick: number
}

/** A schedule that every process sets when it starts; its first slot is so long after the start of the run. */
export interface Beat {
  firstMs: number
  everyMs: number
  missed: 'latest' | 'skip' | 'all'
}

export interface Plan {
  seed: number
  policy: PolicyPatch & { leaseMs: number; deliveriesMax: number; dedupWindowMs: number; headStartMs: number }
  width: number
  processes: { wire: boolean; concurrency: number; prefetch: 'adaptive' | number; graceMs: number }[]
  items: Item[]
  faults: Fault[]
  acts: Act[]
  chaosMs: number
  beat?: Beat | null
  batches?: BatchPlan[]
  /** The dead of the queue go on in another one, where the same programs work. */
  deadTo?: boolean
}

export function planOf(seed: number): Plan {
  const dice = new Dice(seededRandom(seed * 7919 + 1))
  const chaosMs = dice.between(2000, 5000)
  // What happens takes its measure from short leases; those of some runs are so long that no dead one's ends by time.
  const paceMs = dice.pick(400, 600, 1000)
  const leaseMs = dice.chance(0.2) ? longLeaseMs : paceMs
  // Work for more hands than there are: whoever comes back late finds its task still unclaimed.
  const crowded = dice.chance(0.25)
  const processes = dice.times(dice.between(2, 4), (index) => ({
    wire: index > 0 && dice.chance(0.5),
    concurrency: crowded ? 1 : dice.pick(1, 2, 4),
    prefetch: dice.pick<'adaptive' | number>('adaptive', 'adaptive', 3),
    graceMs: dice.pick(0, 200, 1000),
  }))
  const policy = {
    leaseMs,
    timeoutMs: dice.pick(null, 1000),
    deliveriesMax: dice.pick(2, 3, 5),
    releasesMax: dice.pick(1, 3),
    backoff: { baseMs: 100, factor: 2, maxMs: 1000, jitter: 'full' as const },
    headStartMs: dice.pick(1000, 60_000),
    perKey: { width: dice.pick(1, 1, 2) },
    dedupWindowMs: dice.pick(0, 1500),
  }
  const poison = dice.chance(leaseMs === longLeaseMs ? 0.7 : 0.3)
  const items = dice.times(dice.between(12, 32), (item) =>
    itemOf(dice, { item, chaosMs, paceMs, crowded, poison, processes }),
  )
  const faults = faultKinds
    .filter((kind) => dice.chance(0.4) || (kind === 'kill' && leaseMs === longLeaseMs))
    .flatMap((kind) => dice.times(dice.between(1, 2), () => faultOf(dice, kind, { chaosMs, paceMs, processes })))
  const acts = dice.times(dice.between(0, 3), () => ({
    atMs: dice.between(500, chaosMs),
    do: dice.pick('redrive', 'cancel'),
    pick: dice.between(0, 30),
  }))
  const limited = { ...policy, concurrencyMax: dice.pick(null, null, 2, 3) }
  const beat = dice.chance(0.6) ? beatOf(dice, faults) : null
  const { width } = policy.perKey
  return withAdditions({ seed, policy: limited, width, processes, items, faults, acts, chaosMs, beat })
}

/** One that gives back all that was missed is slow where the clock jumps by an hour: a pile of tasks proves no more. */
function beatOf(dice: Dice, faults: readonly Fault[]): Beat {
  const missed = dice.pick('latest', 'skip', 'all')
  const hours = faults.some(({ kind, size }) => kind === 'jump' && Math.abs(size) > 60_000)
  const everyMs = missed === 'all' && hours ? 300_000 : dice.pick(300, 700, 1500)
  return { firstMs: dice.between(0, 1500), everyMs, missed }
}

/** Longer than any run of chaos: a lease that only its holder or its holder's death can end. */
const longLeaseMs = 30_000

interface Frame {
  chaosMs: number
  paceMs: number
  processes: Plan['processes']
}

function itemOf(dice: Dice, frame: Frame & { item: number; crowded: boolean; poison: boolean }): Item {
  const { item, chaosMs, paceMs, crowded, poison, processes } = frame
  const long = [Math.round(paceMs * 0.9), paceMs * 2]
  const end = dice.pick<Script['how']>(...often, 'throw', 'throw', 'release', 'snooze', 'bury')
  const how = poison && dice.chance(0.08) ? 'kill' : end
  return {
    item,
    // Bursts, so that claims of several and tasks that wait are everyday.
    atMs: dice.chance(0.5)
      ? Math.floor(dice.between(0, chaosMs * 0.8) / burstMs) * burstMs
      : dice.between(0, chaosMs * 0.8),
    process: dice.between(0, processes.length - 1),
    type: dice.pick('a', 'a', 'b'),
    priority: dice.chance(0.2) ? dice.pick(-2, 1, 5) : 0,
    delayMs: dice.chance(0.2) ? dice.between(1, 2000) : 0,
    onWall: dice.chance(0.3),
    key: dice.chance(0.25) ? dice.pick('k1', 'k2') : null,
    dedupKey: dice.chance(0.25) ? dice.pick('d1', 'd2', 'd3') : null,
    script: {
      ms: dice.pick(...(crowded ? long : [0, 5, 30, 200, ...long])),
      how,
      times: how === 'kill' ? 99 : dice.pick(1, 1, 2, 99),
      deaf: dice.chance(0.3),
    },
  }
}

/** How far apart bursts of work are. */
const burstMs = 500

/** Most work succeeds. */
const often = Array.from({ length: 6 }, () => 'ack' as const)

function faultOf(dice: Dice, kind: FaultKind, { chaosMs, paceMs, processes }: Frame): Fault {
  // Half of what strikes does so when a burst of work has just begun.
  const anyMs = dice.between(200, chaosMs)
  const atMs = dice.chance(0.5) ? anyMs : Math.floor(anyMs / burstMs) * burstMs + dice.between(1, 100)
  const process = dice.between(0, processes.length - 1)
  const onWire = processes.map(({ wire }, index) => (wire ? index : -1)).filter((index) => index >= 0)
  switch (kind) {
    case 'kill':
      return { kind, atMs, ms: dice.between(50, 2000), process, size: 0 }
    case 'pause':
      return { kind, atMs, ms: dice.between(paceMs, paceMs * 3), process, size: 0 }
    case 'deploy':
      return { kind, atMs, ms: 0, process, size: 0 }
    case 'jump':
      return { kind, atMs, ms: 0, size: dice.pick(3_600_000, -3_600_000, 700, -700) }
    case 'sleep':
      return { kind, atMs, ms: 0, size: dice.between(1200, 60_000) }
    case 'slow':
      return { kind, atMs, ms: dice.between(200, 2000), size: dice.between(20, 800) }
    case 'busy':
      return { kind, atMs, ms: dice.between(50, paceMs * 1.5), size: 0 }
    case 'fail':
      return { kind, atMs, ms: dice.between(20, 500), size: 0 }
    case 'full':
      return { kind, atMs, ms: dice.between(100, 1500), size: 0 }
    case 'lose':
    case 'twice':
      return { kind, atMs, ms: dice.between(500, 2500), process: dice.pick(...onWire, process), size: 0.3 }
    case 'starve':
    case 'late':
      return { kind, atMs, ms: dice.between(500, 2000), process, size: dice.between(paceMs * 0.5, paceMs * 2) }
  }
}
