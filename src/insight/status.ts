// The figures of `status` in the shape that --json promises: what is known now; what is not is null, never 0.
import type { Engine, Figures } from '../engine/contract.js'
import type { Clock } from '../ground/clock.js'
import { queueStats } from '../queue/figures.js'
import type { QueueRecord } from '../task/records.js'

export interface Status {
  at: string
  queues: QueueStatus[]
  workers: Record<string, unknown>[]
  /** The difference between the busiest worker and the idlest; null below two workers. */
  utilisationSpread: number | null
}

export interface QueueStatus {
  [figure: string]: unknown
  queue: string
  paused: boolean
  ready: number
  scheduled: number
  waiting: number
  leased: number
  dead: number
  drained: boolean
  backlogAgeMs: number | null
  enqueuedPerSecond: number | null
  donePerSecond: number | null
  etaMs: number | null
}

/** What was counted at one moment, to make rates of two. */
export interface Counted {
  atMs: number
  totals: ReadonlyMap<string, { enqueued: number; done: number }>
}

/** Reads all queues, or one; `before` is an earlier count, without which rates are unknown. */
export async function statusOf(
  store: { readonly engine: Engine; readonly clock: Clock },
  queue: string | null,
  before: Counted | null,
): Promise<{ status: Status; counted: Counted }> {
  const figures = await store.engine.measure(queue === null ? null : [queue], false)
  const atMs = store.clock.monotonicMs()
  const records = (await store.engine.select('queue', queue === null ? {} : { name: queue }, null)).items
  const rows = (records as unknown as QueueRecord[]).map(({ name, paused }) => queueStats(figures, name, paused))
  const totals = new Map(rows.map((row) => [row.queue, { enqueued: row.enqueued, done: row.done }]))
  const counted = { atMs, totals }
  const workers = figures.workers.filter((worker) => queue === null || worker.queues.includes(queue)).map(workerOf)
  const shares = workers.map((worker) => worker.utilisation)
  const status: Status = {
    at: new Date(figures.at).toISOString(),
    queues: rows.map((row) => queueOf(row, rateBetween(before, counted, row.queue))),
    workers,
    utilisationSpread: shares.length < 2 ? null : Math.max(...shares) - Math.min(...shares),
  }
  return { status, counted }
}

interface Rates {
  enqueued: number | null
  done: number | null
}

function rateBetween(before: Counted | null, now: Counted, queue: string): Rates {
  const [first, last] = [before?.totals.get(queue), now.totals.get(queue)]
  const seconds = before === null ? 0 : (now.atMs - before.atMs) / 1000
  if (first === undefined || last === undefined || seconds <= 0) return { enqueued: null, done: null }
  return { enqueued: (last.enqueued - first.enqueued) / seconds, done: (last.done - first.done) / seconds }
}

function queueOf(row: ReturnType<typeof queueStats>, rates: Rates): QueueStatus {
  const { queue, paused, ready, scheduled, waiting, leased, dead, drained, backlogAgeMs, leaseAgeMaxMs, workers } = row
  const open = ready + scheduled + waiting + leased
  const net = rates.done === null || rates.enqueued === null ? null : rates.done - rates.enqueued
  return {
    queue,
    paused,
    ready,
    scheduled,
    waiting,
    leased,
    dead,
    drained,
    backlogAgeMs,
    leaseAgeMaxMs,
    enqueuedPerSecond: rates.enqueued,
    donePerSecond: rates.done,
    etaMs: net === null || net <= 0 || open === 0 ? null : Math.round((open / net) * 1000),
    workers,
    // Deliveries that a lease end or a death took back.
    redeliveries: row.expiries + row.deaths,
    types: row.types.map(typeOf),
  }
}

function typeOf({ type, ready, leased, backlogAgeMs }: ReturnType<typeof queueStats>['types'][number]) {
  return {
    type,
    ready,
    leased,
    backlogAgeMs,
    waitP50Ms: null,
    waitP99Ms: null,
    runP50Ms: null,
    runP99Ms: null,
    ackP50Ms: null,
    ackP99Ms: null,
    headroom: null,
  }
}

function workerOf({ worker, host, pid, queues, concurrency, busy, prefetched, aliveAt }: Figures['workers'][number]) {
  const utilisation = concurrency === 0 ? 0 : busy / concurrency
  return {
    worker,
    host,
    pid,
    queues,
    concurrency,
    busy,
    prefetched,
    utilisation,
    aliveAt: new Date(aliveAt).toISOString(),
  }
}
