// What the client asks of the worker runtime, so that queue and worker need not know each other's files.

import type { Engine } from '../engine/contract.js'
import type { Clock, Random } from '../ground/clock.js'
import type { Handler } from '../task/handler.js'
import type { Policy } from '../task/limits.js'

/** The ports of one connection: everything that a simulator replaces. */
export interface Ports {
  readonly engine: Engine
  readonly clock: Clock
  readonly random: Random
  /** Makes the heartbeat of this connection's workers: `thread` where the engine opens in threads, else `loop`. */
  readonly heartbeat: 'auto' | 'loop'
}

/** Options of one worker. */
export interface WorkerOptions {
  /** Handlers that run at once; default 10. */
  concurrency?: number | undefined
  /** How long stop() lets running handlers go on, in ms; default 25 000. */
  graceMs?: number | undefined
  /** Claim only these types; default: those of the handler map, or all. */
  types?: readonly string[] | undefined
  /** Tasks claimed ahead of need; default 'adaptive': about one claim round trip of measured work. */
  prefetch?: 'adaptive' | number | undefined
  /** Signals that stop this worker gracefully; default none. */
  stopOn?: readonly NodeJS.Signals[] | undefined
}

export interface WorkerEvents {
  done: { id: string; type: string; number: number; runMs: number }
  retry: { id: string; type: string; number: number; error: Error }
  dead: { id: string; type: string; number: number; error: Error }
  released: { id: string; type: string; number: number; by: 'stop' | 'handler' }
  stale: { id: string; type: string; number: number }
  /** Something outside a task's own verdict went wrong: the store, a listener, a rejection left behind. */
  error: Error
}

/** A running worker. */
export interface Worker extends AsyncDisposable {
  /** Resolves once it has joined and claims; rejects when the queue or the store refuses. */
  readonly ready: Promise<void>
  /** Resolves when nothing of it runs any more; unstarted tasks go back at once, running ones after the grace time. */
  stop(options?: { graceMs?: number | undefined }): Promise<void>
  on<E extends keyof WorkerEvents>(event: E, listener: (value: WorkerEvents[E]) => void): this
  off<E extends keyof WorkerEvents>(event: E, listener: (value: WorkerEvents[E]) => void): this
  health(): { live: boolean; ready: boolean; running: number; lastClaimAt: Date | null }
}

/** Handlers that have done their work and only wait until it may be told. */
export interface Parked {
  readonly count: number
  /** Calls back when there are more than before. */
  onMore(listener: () => void): void
}

/** What `queue.work()` hands to the runtime. */
export interface WorkSpec {
  readonly ports: Ports
  readonly queue: string
  /** Already validated and decoded payload goes in; the '*' entry takes types without one of their own. */
  readonly handlers: ReadonlyMap<string, Handler<unknown>>
  /** Types to claim; null for all. */
  readonly types: readonly string[] | null
  /** Turns stored text into the handler's payload: JSON, then the schema of the type. Throws to bury the task. */
  readonly decode: (type: string, text: string) => unknown | Promise<unknown>
  /** Resolves when the queue's policy is declared and the engine is open; rejects with the refusal. */
  readonly prepared: Promise<Policy>
  readonly options: WorkerOptions
  /** Handlers that take no slot, so that others may run meanwhile; default none. */
  readonly parked?: Parked | undefined
  /** Called once when the worker has fully stopped. */
  readonly stopped: () => void
}

export type StartWorker = (spec: WorkSpec) => Worker
