// What can happen in a random history, as fast-check arbitraries that shrink to few, small moves.
import fc from 'fast-check'
import type { Rules } from './model.js'

/** Numbers named `pick` choose among what exists when the move is made, 0 the newest. */
export interface TaskDraft {
  queue: string
  type: string | undefined
  key: string | undefined
  priority: number | undefined
  delayMs: number | undefined
  dueInMs: number | undefined
  deadlineMs: number | undefined
  onDeadline: 'dead' | 'drop' | undefined
  dedupKey: string | undefined
  batch: string | undefined
  identity: string | undefined
  keepsResult: boolean | undefined
  onDuplicate: 'keep' | 'replace' | 'delay' | undefined
}
export interface VerdictDraft {
  pick: number
  /** Choose among the receipts that still act; else among all that ever were. */
  acting: boolean
  how: 'ack' | 'retry' | 'timeout' | 'release' | 'bury'
  by: 'stop' | 'unstarted' | 'handler' | 'overloaded' | 'counted'
  delayMs: number | undefined
}
export interface FilterDraft {
  pick: number | undefined
  queue: string | undefined
  type: string | undefined
  key: string | undefined
  batch: string | undefined
  dead: boolean
}
export type Move =
  | { do: 'enqueue'; tasks: TaskDraft[]; again: boolean }
  | {
      do: 'claim'
      worker: number
      queue: string
      types: string[] | null
      max: number
      leaseMs?: number
      again: boolean
    }
  | { do: 'settle'; worker: number; verdicts: VerdictDraft[]; again: boolean }
  | { do: 'extend'; picks: number[]; acting: boolean; leaseMs: number; progress: boolean }
  | {
      do: 'amend'
      change: 'cancel' | 'purge' | 'move' | 'discard' | 'redrive' | 'edit'
      filter: FilterDraft
      max: number
      dryRun: boolean
    }
  | { do: 'pause'; queue: string; type: string | null; paused: boolean }
  | { do: 'route'; queue: string; type: string | null; on: boolean }
  | { do: 'seal' | 'forget'; batch: string }
  | { do: 'follow'; batch: string; task: { type?: string; key?: string; delayMs?: number; batch?: string } }
  | { do: 'join' | 'leave' | 'beat'; worker: number }
  | { do: 'die'; worker: number; noticed: boolean }
  | { do: 'sweep'; max: number }
  | { do: 'pass'; ms: number }
  | { do: 'jump' | 'sleep'; ms: number }
  | { do: 'repeat'; pick: number }
  | { do: 'reopen' }
  | { do: 'together'; moves: Move[] }

/** A whole history: which settings the queues have, and what happens. */
export interface History {
  rules: Rules
  moves: Move[]
}

/** Left out `n` times as often as given. */
const maybe = <T>(arb: fc.Arbitrary<T>, n: number): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight: n, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: arb })
const queue = fc.constantFrom('q', 'q', 'q', 'other')
const type = fc.constantFrom('a', 'b')
const key = fc.constantFrom('k1', 'k2')
const batch = fc.constantFrom('b1', 'b2', 'b3')
const recent = fc.nat({ max: 11 }).map((n) => (n > 7 ? n * 2 : n))
const worker = fc.nat({ max: 3 })
const again = fc.constantFrom(false, false, false, true)

const draft: fc.Arbitrary<TaskDraft> = fc.record({
  queue,
  type: maybe(type, 2),
  key: maybe(key, 1),
  priority: maybe(fc.constantFrom(1, -1, 50), 4),
  delayMs: maybe(fc.constantFrom(0, 1, 500, 30_000), 3),
  dueInMs: maybe(fc.constantFrom(1000, -500, 3_600_000), 8),
  deadlineMs: maybe(fc.constantFrom(1000, 20_000), 6),
  onDeadline: maybe(fc.constantFrom('dead', 'drop'), 2),
  dedupKey: maybe(fc.constantFrom('d1', 'd2', 'd3'), 4),
  batch: maybe(batch, 2),
  identity: maybe(fc.constantFrom('i1', 'i2', 'i3'), 4),
  keepsResult: maybe(fc.constant(true), 5),
  onDuplicate: maybe(fc.constantFrom('keep', 'replace', 'delay'), 2),
})

const verdict: fc.Arbitrary<VerdictDraft> = fc.record({
  pick: recent,
  acting: fc.constantFrom(true, true, false),
  how: fc.constantFrom('ack', 'ack', 'retry', 'release', 'bury', 'timeout'),
  by: fc.constantFrom('handler', 'stop', 'counted', 'overloaded', 'unstarted'),
  delayMs: maybe(fc.constantFrom(0, 300), 3),
})

const filter: fc.Arbitrary<FilterDraft> = fc.record({
  pick: maybe(recent, 1),
  queue: maybe(queue, 1),
  type: maybe(type, 5),
  key: maybe(key, 5),
  batch: maybe(batch, 5),
  dead: fc.boolean(),
})

const enqueue = fc.record({
  do: fc.constant('enqueue' as const),
  tasks: fc.array(draft, { minLength: 1, maxLength: 4 }),
  again,
})
const claim = fc.record(
  {
    do: fc.constant('claim' as const),
    worker,
    queue,
    types: fc.oneof(
      fc.constant(null),
      fc.constant(null),
      fc.uniqueArray(fc.constantFrom('a', 'q', 'b', 'none'), { minLength: 1 }),
    ),
    max: fc.constantFrom(1, 2, 3, 5),
    leaseMs: fc.constantFrom(1000, 60_000),
    again,
  },
  { requiredKeys: ['do', 'worker', 'queue', 'types', 'max', 'again'] },
)
const settle = fc.record({
  do: fc.constant('settle' as const),
  worker,
  verdicts: fc.array(verdict, { minLength: 1, maxLength: 3 }),
  again,
})
const extend = fc.record({
  do: fc.constant('extend' as const),
  picks: fc.array(recent, { minLength: 1, maxLength: 2 }),
  acting: fc.boolean(),
  leaseMs: fc.constantFrom(100, 5000),
  progress: fc.boolean(),
})
const amend = fc.record({
  do: fc.constant('amend' as const),
  change: fc.constantFrom('redrive', 'cancel', 'discard', 'purge', 'edit', 'move'),
  filter,
  // Four of them still fit into one transaction.
  max: fc.constantFrom(400, 1, 2),
  dryRun: fc.constantFrom(false, false, false, true),
})
const pause = fc.record({
  do: fc.constant('pause' as const),
  queue,
  type: fc.constantFrom(null, 'a', 'b'),
  paused: fc.boolean(),
})
/** Between the two queues; `null`: of tasks of no type of their own. */
const route = fc.record({
  do: fc.constant('route' as const),
  queue,
  type: fc.constantFrom(null, 'a', 'b'),
  on: fc.constantFrom(true, true, false),
})
const batchMove = fc.record({
  do: fc.constantFrom('seal' as const, 'seal' as const, 'forget' as const),
  batch: fc.constantFrom('b1', 'b2', 'b3'),
})
const follow = fc.record({
  do: fc.constant('follow' as const),
  batch,
  task: fc.record(
    { type, key, delayMs: fc.constantFrom(0, 500), batch: fc.constantFrom('b1', 'b2', 'b3') },
    { requiredKeys: [] },
  ),
})
const workerMove = fc.record({ do: fc.constantFrom('join' as const, 'beat' as const, 'leave' as const), worker })
const die = fc.record({ do: fc.constant('die' as const), worker, noticed: fc.constantFrom(true, true, false) })
const sweep = fc.record({ do: fc.constant('sweep' as const), max: fc.constantFrom(1000, 1000, 1, 2) })
const pass = fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(1, 500, 1000, 5000, 30_000, 700_000) })
const jump = fc.record({ do: fc.constant('jump' as const), ms: fc.constantFrom(3_600_000, -3_600_000, 200) })
const sleep = fc.record({ do: fc.constant('sleep' as const), ms: fc.constantFrom(20_000, 2000) })
const repeat = fc.record({ do: fc.constant('repeat' as const), pick: recent })
const reopen = fc.record({ do: fc.constant('reopen' as const) })

/** Calls that meet in one transaction of the engine. */
const together: fc.Arbitrary<Move> = fc.record({
  do: fc.constant('together' as const),
  moves: fc.array(fc.oneof<fc.Arbitrary<Move>[]>(enqueue, claim, settle, extend, amend), {
    minLength: 2,
    maxLength: 4,
  }),
})

const move = (file: boolean): fc.Arbitrary<Move> =>
  fc.oneof(
    { weight: 12, arbitrary: enqueue as fc.Arbitrary<Move> },
    { weight: 18, arbitrary: claim as fc.Arbitrary<Move> },
    { weight: 16, arbitrary: settle as fc.Arbitrary<Move> },
    { weight: 4, arbitrary: extend },
    { weight: 6, arbitrary: amend as fc.Arbitrary<Move> },
    { weight: 1, arbitrary: pause },
    { weight: 2, arbitrary: route },
    { weight: 2, arbitrary: batchMove },
    { weight: 2, arbitrary: follow as fc.Arbitrary<Move> },
    { weight: 4, arbitrary: workerMove },
    { weight: 6, arbitrary: die },
    { weight: 5, arbitrary: sweep },
    { weight: 9, arbitrary: pass },
    { weight: 1, arbitrary: jump },
    { weight: 1, arbitrary: sleep },
    { weight: 3, arbitrary: repeat },
    { weight: file ? 2 : 0, arbitrary: reopen },
    { weight: 3, arbitrary: together },
  )

const rules: fc.Arbitrary<Rules> = fc.record({
  leaseMs: fc.constantFrom(1000, 30_000),
  deliveriesMax: fc.constantFrom(3, 1, 2, 5, 8, null),
  releasesMax: fc.constantFrom(100, 0, 1),
  baseMs: fc.constantFrom(1000, 0),
  factor: fc.constant(3),
  maxMs: fc.constant(20_000),
  headStartMs: fc.constantFrom(60_000, 0),
  width: fc.constantFrom(1, 2),
  onDead: fc.constantFrom('continue', 'hold'),
  dedupWindowMs: fc.constantFrom(0, 5000),
  resultKeepMs: fc.constantFrom(0, 0, 5000),
  deadTo: fc.constantFrom(null, null, 'other'),
})

/** Histories on a store that can be closed and opened again (`file`), or on one in memory. */
export const histories = (file: boolean): fc.Arbitrary<History> =>
  fc.record({ rules, moves: fc.array(move(file), { minLength: 1, maxLength: 80, size: 'max' }) })
