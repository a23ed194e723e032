// Sums the figures of a queue's types into those of the queue.
import type { Figures, TypeFigures } from '../engine/contract.js'
import { type State, states, type Total, totals } from '../task/lifecycle.js'

/** What stats() answers: state counts and totals of one snapshot; an age that is not known is null, never 0. */
export interface QueueStats extends Record<State | Total, number> {
  at: Date
  queue: string
  paused: boolean
  /** Scheduled, waiting, ready and leased are all 0; dead letters may be left. */
  drained: boolean
  /** How long the oldest ready task has been due. */
  backlogAgeMs: number | null
  leaseAgeMaxMs: number | null
  /** Workers that have joined for this queue. */
  workers: number
  types: Omit<TypeFigures, 'queue'>[]
}

/** The figures of one queue; `paused` where the snapshot has no type of it yet. */
export function queueStats(figures: Figures, queue: string, paused: boolean): QueueStats {
  const { types = [], workers = 0 } = byQueue(figures).get(queue) ?? {}
  const sums = Object.fromEntries([...states, ...totals].map((name) => [name, sum(types, name)]))
  return {
    at: new Date(figures.at),
    queue,
    paused,
    drained: openOf(types, 'wait') === 0,
    ...(sums as Record<State | Total, number>),
    backlogAgeMs: greatest(types.map((row) => row.backlogAgeMs)),
    leaseAgeMaxMs: greatest(types.map((row) => row.leaseAgeMaxMs)),
    workers,
    types: types.map(({ queue: _, ...row }) => row),
  }
}

interface OfQueue {
  types: TypeFigures[]
  workers: number
}
const sorted = new WeakMap<Figures, ReadonlyMap<string, OfQueue>>()

/** The rows of one snapshot by queue, sorted once: with thousands of queues a search for each took half a minute. */
function byQueue(figures: Figures): ReadonlyMap<string, OfQueue> {
  const known = sorted.get(figures)
  if (known !== undefined) return known
  const queues = new Map<string, OfQueue>()
  const of = (name: string) => {
    const found = queues.get(name) ?? { types: [], workers: 0 }
    queues.set(name, found)
    return found
  }
  for (const row of figures.types) of(row.queue).types.push(row)
  for (const worker of figures.workers) for (const name of new Set(worker.queues)) of(name).workers++
  sorted.set(figures, queues)
  return queues
}

/** Tasks that a drain waits for. */
export function openOf(types: readonly TypeFigures[], scheduled: 'wait' | 'ignore'): number {
  const open = sum(types, 'waiting') + sum(types, 'ready') + sum(types, 'leased')
  return scheduled === 'wait' ? open + sum(types, 'scheduled') : open
}

export const sum = (types: readonly TypeFigures[], name: State | Total) =>
  types.reduce((total, row) => total + row[name], 0)

const greatest = (ages: readonly (number | null)[]) =>
  ages.reduce<number | null>((most, age) => (age === null ? most : Math.max(age, most ?? 0)), null)
