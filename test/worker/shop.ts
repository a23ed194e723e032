// A store with workers for the tests of the worker runtime: real engine, real handlers, any clock.
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker as Thread } from 'node:worker_threads'
import { onTestFinished } from 'vitest'
import type { Engine, NewTask } from '../../dist/engine/contract.js'
import { engineFor, type OpenOptions } from '../../dist/engines/open.js'
import { type Clock, systemClock, systemRandom } from '../../dist/ground/clock.js'
import type { StartWorker, Worker, WorkerEvents, WorkerOptions, WorkSpec } from '../../dist/queue/seam.js'
import type { Handler } from '../../dist/task/handler.js'
import { effectivePolicy, type PolicyPatch } from '../../dist/task/limits.js'
import type { HistoryRecord, TaskRecord } from '../../dist/task/records.js'
import type { ManualClock } from '../../dist/testing/manual-clock.js'
import { startWorker } from '../../dist/worker/worker.js'

export const queue = 'mail'

export interface ShopOptions extends OpenOptions {
  /** A file in a folder of its own, or this process's memory. */
  where: 'file' | 'memory'
  policy?: PolicyPatch
  clock?: Clock
}

export interface WorkMore extends WorkerOptions {
  /** Types of the WorkSpec; default null, all of them. */
  only?: readonly string[]
  decode?: WorkSpec['decode']
  prepared?: WorkSpec['prepared']
  stopped?: () => void
  start?: StartWorker
  heartbeat?: 'auto' | 'loop'
}

export type Handlers = Handler<never> | Readonly<Record<string, Handler<never>>>

export interface Shop {
  readonly engine: Engine
  readonly url: string
  enqueue(payloads: readonly unknown[], more?: Partial<NewTask>): Promise<string[]>
  work(handlers: Handlers, more?: WorkMore): Worker
  /** The task as a reader sees it; undefined when its row is gone. */
  task(id: string): Promise<TaskRecord | undefined>
  history(id: string): Promise<HistoryRecord[]>
  /** Figures of the queue over all its types. */
  count(figure: Figure): Promise<number>
  /** A handle of its own on the same file, as another process would have it. */
  other(): Promise<Engine>
}

type Figure = 'ready' | 'scheduled' | 'leased' | 'dead' | 'done' | 'deliveries' | 'failures' | 'stale' | 'expiries'

/** Opens a store; its workers are stopped and it is closed when the test ends. */
export async function openShop(options: ShopOptions): Promise<Shop> {
  const { where, policy = {}, ...rest } = options
  const clock = options.clock ?? systemClock
  const folder = mkdtempSync(join(tmpdir(), 'piecework-worker-'))
  const url = where === 'memory' ? 'sqlite::memory:' : `sqlite:${join(folder, 'work.db')}`
  const engines: Engine[] = []
  const open = async () => {
    const engine = engineFor(url, rest)
    await engine.open()
    engines.push(engine)
    return engine
  }
  const engine = await open()
  await engine.configure('queue', queue, { code: policy }, 'test')
  const workers: Worker[] = []
  onTestFinished(async () => {
    const stopped = Promise.all(workers.map((worker) => worker.stop({ graceMs: 0 })))
    // A clock that is moved by hand has to be moved for handlers that do not end by themselves.
    if ('advance' in clock) await (clock as ManualClock).advance(10_000)
    await stopped
    for (const one of engines) await one.close()
    rmSync(folder, { recursive: true, force: true })
  })
  return {
    engine,
    url,
    other: open,
    async enqueue(payloads, more = {}) {
      const tasks = payloads.map((payload) => ({ queue, payload: JSON.stringify(payload), ...more }))
      return (await engine.enqueue(null, tasks)).map(({ id }) => id)
    },
    work(handlers, more = {}) {
      const worker = employ(engine, clock, policy, handlers, more)
      workers.push(worker)
      return worker
    },
    async task(id) {
      return (await engine.select('task', { ids: [id] }, null)).items[0] as TaskRecord | undefined
    },
    async history(id) {
      return (await engine.select('history', { ids: [id] }, null)).items as unknown as HistoryRecord[]
    },
    async count(figure) {
      const { types } = await engine.measure([queue], false)
      return types.reduce((sum, row) => sum + row[figure], 0)
    },
  }
}

function employ(engine: Engine, clock: Clock, policy: PolicyPatch, handlers: Handlers, more: WorkMore): Worker {
  const { only, decode, prepared, stopped, start, heartbeat, ...options } = more
  const table = typeof handlers === 'function' ? { '*': handlers } : handlers
  return (start ?? startWorker)({
    ports: { engine, clock, random: systemRandom, heartbeat: heartbeat ?? 'auto' },
    queue,
    handlers: new Map(Object.entries(table) as [string, Handler<unknown>][]),
    types: only ?? null,
    decode: decode ?? ((_type, text) => JSON.parse(text)),
    prepared: prepared ?? Promise.resolve(effectivePolicy(policy)),
    options,
    stopped: stopped ?? (() => {}),
  })
}

/** The next event of this kind. */
export const next = <E extends keyof WorkerEvents>(worker: Worker, event: E): Promise<WorkerEvents[E]> =>
  new Promise((resolve) => {
    const listener = (value: WorkerEvents[E]) => {
      worker.off(event, listener)
      resolve(value)
    }
    worker.on(event, listener)
  })

/** The next `count` events of this kind. */
export const several = <E extends keyof WorkerEvents>(
  worker: Worker,
  event: E,
  count: number,
): Promise<WorkerEvents[E][]> =>
  new Promise((resolve) => {
    const heard: WorkerEvents[E][] = []
    const listener = (value: WorkerEvents[E]) => {
      heard.push(value)
      if (heard.length < count) return
      worker.off(event, listener)
      resolve(heard)
    }
    worker.on(event, listener)
  })

export interface Gate {
  readonly passed: Promise<void>
  open(): void
}

/** Something that a handler waits for and the test opens, or the other way round. */
export function gate(): Gate {
  let open = () => {}
  const passed = new Promise<void>((resolve) => {
    open = resolve
  })
  return { passed, open: () => open() }
}

/** Opens once `pass` has been called `count` times. */
export function counter(count: number): { pass(): void; readonly all: Promise<void>; readonly count: number } {
  const { passed, open } = gate()
  let seen = 0
  return {
    pass() {
      if (++seen === count) open()
    },
    all: passed,
    get count() {
      return seen
    },
  }
}

/** Rejects when the signal aborts, with its reason: a handler that listens. */
export const aborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })

export interface Rival {
  /** From now on it takes what is ready; may be called while the loop is about to block. */
  go(): void
  /** Everything it took, once it has ended; `at` is the monotonic clock. */
  stop(): Promise<{ id: string; number: number; at: number }[]>
}

/** A worker in another thread that takes whatever becomes ready, blocked loop here or not. */
export async function openRival(url: string): Promise<Rival> {
  const flags = new Int32Array(new SharedArrayBuffer(8))
  const thread = new Thread(new URL('./rival.js', import.meta.url), { workerData: { url, queue, flags } })
  await once(thread, 'message')
  const taken = once(thread, 'message')
  return {
    go: () => void Atomics.store(flags, 0, 1),
    async stop() {
      Atomics.store(flags, 1, 1)
      return (await taken)[0]
    },
  }
}

/** Keeps the event loop to itself. */
export function block(ms: number): void {
  const until = systemClock.monotonicMs() + ms
  while (systemClock.monotonicMs() < until);
}
