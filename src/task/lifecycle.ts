// The life cycle of a task as data: which event takes a task from which state to which, and what it counts.

/** Where a task can be. Done, cancelled and discarded tasks have no state: their row is gone. */
export const states = ['scheduled', 'waiting', 'ready', 'leased', 'dead'] as const
export type State = (typeof states)[number]

/** Totals that only rise; one set for each (queue, type), one for each batch. */
export const totals = [
  'enqueued',
  'deliveries',
  'done',
  'failures',
  'releases',
  'expiries',
  'deaths',
  'cancelled',
  'redrives',
  'discarded',
  'moved',
  'stale',
] as const
export type Total = (typeof totals)[number]

interface Transition {
  /** States the event may find the task in; null: there is no task yet. */
  readonly from: readonly (State | null)[]
  /** States it may leave the task in; null: the row is gone. */
  readonly to: readonly (State | null)[]
  readonly counts: Total | null
  /** What the event does to a receipt that was live before it. */
  readonly receipt: 'new' | 'kept' | 'lapsed' | 'spent'
}

const open = ['scheduled', 'waiting', 'ready'] as const

/** Every event of the design, one line each; the model in the tests and the picture in the docs are made from it. */
export const lifecycle = {
  enqueue: { from: [null], to: open, counts: 'enqueued', receipt: 'spent' },
  promote: { from: ['waiting'], to: ['ready'], counts: null, receipt: 'spent' },
  due: { from: ['scheduled'], to: ['ready', 'waiting'], counts: null, receipt: 'spent' },
  claim: { from: ['ready'], to: ['leased'], counts: 'deliveries', receipt: 'new' },
  extend: { from: ['leased', 'ready'], to: ['leased'], counts: null, receipt: 'kept' },
  ack: { from: ['leased', 'ready'], to: [null], counts: 'done', receipt: 'spent' },
  retry: { from: ['leased'], to: ['scheduled', 'dead', null], counts: 'failures', receipt: 'spent' },
  release: { from: ['leased'], to: ['ready', 'scheduled', 'dead', null], counts: 'releases', receipt: 'spent' },
  bury: { from: ['leased'], to: ['dead', null], counts: 'failures', receipt: 'spent' },
  expire: { from: ['leased'], to: ['ready', 'dead', null], counts: 'expiries', receipt: 'lapsed' },
  die: { from: ['leased'], to: ['ready', 'dead', null], counts: 'deaths', receipt: 'lapsed' },
  deadline: { from: open, to: ['dead'], counts: null, receipt: 'spent' },
  cancel: { from: open, to: [null], counts: 'cancelled', receipt: 'spent' },
  redrive: { from: ['dead'], to: ['ready', 'waiting'], counts: 'redrives', receipt: 'spent' },
  discard: { from: ['dead'], to: [null], counts: 'discarded', receipt: 'spent' },
  edit: { from: ['dead'], to: ['dead'], counts: null, receipt: 'spent' },
  purge: { from: open, to: [null], counts: 'cancelled', receipt: 'spent' },
  replace: { from: open, to: open, counts: null, receipt: 'spent' },
  delay: { from: open, to: open, counts: null, receipt: 'spent' },
  deadTo: { from: ['dead'], to: ['ready', 'waiting'], counts: 'moved', receipt: 'spent' },
  move: { from: [...open, 'dead'], to: [...open, 'dead'], counts: 'moved', receipt: 'spent' },
} as const satisfies Record<string, Transition>

export type LifeEvent = keyof typeof lifecycle

/** True when the table knows this step; engines assert it before they write. */
export function allows(event: LifeEvent, from: State | null, to: State | null): boolean {
  const step: Transition = lifecycle[event]
  return step.from.includes(from) && step.to.includes(to)
}

/** What a settle answers: where the task is now, or `stale` when the receipt no longer acts. */
export type Outcome = 'done' | 'scheduled' | 'ready' | 'dead' | 'cancelled' | 'stale'
