// The main export: connect() over the engines of this package, and everything a program names.
import { type ConnectOptions, open } from './queue/client.js'
import type { Piecework } from './queue/face.js'
import type { EngineName, EngineOf } from './task/transaction.js'
import { startWorker } from './worker/worker.js'

export { type ErrorCode, PieceworkError } from './ground/errors.js'
export type { ConnectOptions } from './queue/client.js'
export type { EnqueuedTask } from './queue/connection.js'
export { type Json, type } from './queue/define.js'
export type { DrainOptions } from './queue/drained.js'
export type { Batch, Piecework, Queue, TypedQueue } from './queue/face.js'
export type { QueueStats } from './queue/figures.js'
export type { BulkOptions, TaskOptions } from './queue/options.js'
export type { Worker, WorkerEvents, WorkerOptions } from './queue/seam.js'
export type { DeadLetter, Task } from './queue/tasks.js'
export { Bury, type Delivery, type Handler, Overloaded, Release, Retry } from './task/handler.js'
export type { Policy, PolicyPatch } from './task/limits.js'

/**
 * Opens a store: a URL (`sqlite:FILE`, `sqlite::memory:`, `postgres://…`, `http://…`), options, or both; default
 * PIECEWORK_URL, else `sqlite:piecework.db`. Makes or migrates the store when it may. Throws PieceworkError. What `tx`
 * may be follows from a literal URL; for a plain string say which: `connect<'postgres'>(url)`.
 */
export function connect<const Url extends string>(url: Url, options?: ConnectOptions): Promise<Piecework<EngineOf<Url>>>
export function connect<E extends EngineName>(url: string, options?: ConnectOptions): Promise<Piecework<E>>
export function connect(options: ConnectOptions & { pool: object }): Promise<Piecework<'postgres'>>
export function connect<const Url extends string>(
  options: ConnectOptions & { url: Url },
): Promise<Piecework<EngineOf<Url>>>
export function connect(options?: ConnectOptions): Promise<Piecework>
export function connect(url?: string, options?: ConnectOptions): Promise<Piecework>
export async function connect(where?: string | ConnectOptions, options?: ConnectOptions): Promise<Piecework> {
  return open(startWorker, where, options)
}
