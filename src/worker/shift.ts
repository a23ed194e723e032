// What the parts of one worker share: its name, its ports, and where they tell of troubles.
import type { Engine } from '../engine/contract.js'
import type { Clock, Random } from '../ground/clock.js'
import { PieceworkError } from '../ground/errors.js'
import type { Events } from './events.js'

export interface Shift {
  /** The worker's name, unique in the store. */
  readonly worker: string
  readonly engine: Engine
  readonly clock: Clock
  readonly random: Random
  readonly events: Events
  /** Aborts when stop() is called or the store can no longer be used. */
  readonly closing: AbortSignal
  /** The store can no longer be used: the worker stops claiming and says so. */
  readonly fatal: (error: PieceworkError) => void
  /** An engine across a wire can lose an answer, so that its calls need a name by which to repeat them. */
  readonly repeats: boolean
}

const fatalCodes: ReadonlySet<string> = new Set([
  'PW_CLOSED',
  'PW_NO_SQLITE',
  'PW_NOT_OURS',
  'PW_SCHEMA_NEW',
  'PW_SCHEMA_OLD',
  'PW_STORE_DAMAGED',
  'PW_STORE_MISSING',
  'PW_STORE_MOVED',
  'PW_STORE_READONLY',
  'PW_SYNC_FAILED',
])

/** True when no later call on this engine can succeed. */
export function isFatal(error: unknown): error is PieceworkError {
  return error instanceof PieceworkError && fatalCodes.has(error.code)
}

/** Milliseconds until the next try after `failures` failures in a row: 25 ms doubling to 5 s, half of it random. */
export function againMs(random: Random, failures: number): number {
  return Math.min(25 * 2 ** Math.min(failures, 8), 5000) * (0.5 + random() / 2)
}
