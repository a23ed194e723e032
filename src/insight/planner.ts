// Sizing arithmetic: how many workers a pile of work needs, how long it takes, and what stops more from helping.
import { PieceworkError } from '../ground/errors.js'
import { checkWhole, shown } from '../task/limits.js'

/** A pile of work, and either a deadline or a number of workers: slots, each of which runs one task at a time. */
export interface PlanAsk {
  items: number
  /** Mean run time of one delivery. */
  eachMs: number
  /** Of 100 deliveries 99 are no longer than this; default: they all take `eachMs`. */
  eachP99Ms?: number | undefined
  deadlineMs?: number | undefined
  workers?: number | undefined
  /** Share of deliveries that fail and are made again, 0 … below 1; default 0. */
  failureRate?: number | undefined
  /** Tasks a second that the producers put in; default: all of them are there at the start. */
  enqueuePerSecond?: number | undefined
  /** Deliveries a second that the store can hand out; default: not what binds. */
  dispatchPerSecond?: number | undefined
  /** Deliveries a second that what the handlers call can take; default: not what binds. */
  downstreamPerSecond?: number | undefined
}

export interface Plan {
  /** With a deadline the fewest that meet it; where none can, as many as help. */
  workers: number
  /** Until the last task is done. */
  durationMs: number
  /** What the pile waits for. */
  binds: Binding
  /** Null without a deadline. */
  meetsDeadline: boolean | null
  /** More workers than this do not end it sooner. */
  workersUsefulMax: number
  /** Deliveries to expect, repeats of the failed ones included. */
  deliveries: number
  itemsPerSecond: number
}
type Binding = 'workers' | 'producers' | 'broker' | 'downstream'

/** Reckons with means; throws PW_OPTION_INVALID for what cannot be reckoned with. */
export function plan(ask: PlanAsk): Plan {
  check(ask)
  const { items, failureRate = 0 } = ask
  // Each delivery that fails is made again, and may fail again: 1 + f + f² + … for each item.
  const deliveries = items / (1 - failureRate)
  const ceilings: [Binding, number][] = [
    ['producers', secondsAt(items, ask.enqueuePerSecond)],
    ['broker', secondsAt(deliveries, ask.dispatchPerSecond)],
    ['downstream', secondsAt(deliveries, ask.downstreamPerSecond)],
  ]
  const [ceiling, ceilingSeconds] = ceilings.reduce((most, one) => (one[1] > most[1] ? one : most))
  const ceilingMs = ceilingSeconds * 1000
  const usefulMax = workersFor(ask, Math.max(ceilingMs, shortestMs(ask)))
  const workers = ask.workers ?? Math.min(workersFor(ask, ask.deadlineMs ?? 0), usefulMax)
  const workersMs = durationOf(ask, workers)
  const durationMs = Math.ceil(Math.max(workersMs, ceilingMs))
  return {
    workers,
    durationMs,
    binds: ceilingMs > 0 && ceilingMs >= workersMs ? ceiling : 'workers',
    meetsDeadline: ask.deadlineMs === undefined ? null : durationMs <= ask.deadlineMs,
    workersUsefulMax: usefulMax,
    deliveries: Math.round(deliveries),
    itemsPerSecond: (items / durationMs) * 1000,
  }
}

const secondsAt = (count: number, perSecond: number | undefined) => (perSecond === undefined ? 0 : count / perSecond)

/** Time for which the last tasks outlast the mean, when some take longer than others. */
const overhangMs = ({ eachMs, eachP99Ms = eachMs }: PlanAsk) => eachP99Ms - eachMs

/** However many workers there are, a task takes its time. */
const shortestMs = (ask: PlanAsk) => ask.eachMs + overhangMs(ask)

/** Equal tasks that all succeed are done in waves; others in the time of their sum, and that of the last. */
function durationOf(ask: PlanAsk, workers: number): number {
  const { items, eachMs, failureRate = 0 } = ask
  const overhang = overhangMs(ask)
  if (failureRate === 0 && overhang === 0) return Math.ceil(items / workers) * eachMs
  const work = Math.max((items / (1 - failureRate)) * eachMs, shortestMs(ask))
  // One worker has the last task within the sum; of many only one has it, while the others have run out of work.
  return Math.max(overhang + (work - overhang) / Math.min(workers, items), shortestMs(ask))
}

/** The fewest workers whose duration is at most `ms`; one for each item when not even those are enough. */
function workersFor(ask: PlanAsk, ms: number): number {
  let few = 1
  let many = ask.items
  while (few < many) {
    const middle = Math.floor((few + many) / 2)
    if (durationOf(ask, middle) <= ms) many = middle
    else few = middle + 1
  }
  return few
}

/** What makes each number one that can be reckoned with. */
function check(ask: PlanAsk): void {
  checkWhole('items', ask.items, 1, Number.MAX_SAFE_INTEGER)
  above('eachMs', ask.eachMs, 0)
  const { eachP99Ms, failureRate } = ask
  if (eachP99Ms !== undefined && !(Number.isFinite(eachP99Ms) && eachP99Ms >= ask.eachMs)) {
    refuse('eachP99Ms', eachP99Ms, `a number of at least eachMs (${ask.eachMs})`)
  }
  if (failureRate !== undefined && !(failureRate >= 0 && failureRate < 1)) {
    refuse('failureRate', failureRate, 'a share from 0 to below 1: if every delivery fails, it never ends')
  }
  for (const rate of ['enqueuePerSecond', 'dispatchPerSecond', 'downstreamPerSecond'] as const) {
    if (ask[rate] !== undefined) above(rate, ask[rate], 0)
  }
  if ((ask.deadlineMs === undefined) === (ask.workers === undefined)) {
    throw new PieceworkError('PW_OPTION_INVALID', 'A plan needs deadlineMs or workers, and not both.')
  }
  if (ask.deadlineMs !== undefined) above('deadlineMs', ask.deadlineMs, 0)
  if (ask.workers !== undefined) checkWhole('workers', ask.workers, 1, Number.MAX_SAFE_INTEGER)
}

function above(what: string, value: unknown, min: number): void {
  if (!(typeof value === 'number' && Number.isFinite(value) && value > min)) refuse(what, value, `above ${min}`)
}

function refuse(what: string, value: unknown, must: string): never {
  throw new PieceworkError('PW_OPTION_INVALID', `${what} is ${shown(value)}; it must be ${must}.`, { what })
}
