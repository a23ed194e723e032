// What a program holds in its hands: the connection, its queues, their dead letters and its batches, on one page.
import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { Handler } from '../task/handler.js'
import type { State } from '../task/lifecycle.js'
import type { LimitSettings } from '../task/limiter.js'
import type { Policy, PolicyPatch } from '../task/limits.js'
import type { BatchRecord, LimitRecord } from '../task/records.js'
import type { EngineName, SyncTx } from '../task/transaction.js'
import type { EnqueuedMany } from './bulk.js'
import type { EnqueuedTask } from './connection.js'
import type { Json, SchemasByType } from './define.js'
import type { DrainOptions, WaitOptions } from './drained.js'
import type { QueueStats } from './figures.js'
import type { ErrorGroup } from './groups.js'
import type { Inline, InlineCall, InlineOptions } from './inline.js'
import type { BulkOptions, TaskOptions } from './options.js'
import type { Redriven, RedriveOptions } from './redrive.js'
import type { Schedule, ScheduleOptions } from './schedules.js'
import type { Worker, WorkerOptions } from './seam.js'
import type { DeadLetter, Listing, PastDelivery, Task } from './tasks.js'

/** A connection to one store. A refusal of what queue() or work() was given surfaces at the first awaited call. */
export interface Piecework<E extends EngineName = EngineName> extends AsyncDisposable {
  /** Resolves when the policies of all queues opened so far are declared; rejects with the first refusal. */
  readonly ready: Promise<void>
  /** A queue whose payloads fit one schema: enqueue takes its input, handlers get its output. */
  queue<S extends StandardSchemaV1>(
    name: string,
    options: { schema: S; types?: undefined } & PolicyPatch,
  ): Queue<StandardSchemaV1.InferInput<S>, StandardSchemaV1.InferOutput<S>, E>
  /** A queue with a schema for each task type: `type` is required, and handlers cover all types or name theirs. */
  queue<M extends SchemasByType>(
    name: string,
    options: { types: M; schema?: undefined } & PolicyPatch,
  ): TypedQueue<M, E>
  /** A queue without validation; handlers get what JSON makes of T. */
  // biome-ignore lint/suspicious/noExplicitAny: a queue without a stated type takes and gives any value.
  queue<T = any>(name: string, policy?: { schema?: undefined; types?: undefined } & PolicyPatch): Queue<T, Json<T>, E>
  /** A named set of tasks, counted as one. */
  batch(name: string, options?: BatchOptions): Batch
  /**
   * Declares a named limit that queues share by `uses`: ceilings over the whole fleet. What operators set wins. Without
   * settings it only looks; null when there is none. PW_OPTION_INVALID, PW_NAME_INVALID.
   */
  limit(name: string, settings?: Partial<LimitSettings>): Promise<LimitRecord | null>
  /** Stops this connection's workers gracefully, sends what was enqueued, closes the store. */
  close(): Promise<void>
}

/** A task that is done, while its result is kept. */
export interface DoneTask {
  state: 'done'
  endedAt: Date
  /** What its handler returned, after its trip through JSON; undefined when that was nothing. */
  result: unknown
}

/** What a queue of any typing can do; `Payload` is what its tasks hold: the input after its trip through JSON. */
interface AnyQueue<Payload> {
  readonly name: string
  readonly dead: DeadLetters<Payload>
  /** Resolves with the number of dead letters once nothing is left to do; PW_DRAIN_STUCK, PW_DRAIN_TIMEOUT. */
  drained(options?: DrainOptions): Promise<{ dead: number }>
  stats(): Promise<QueueStats>
  /**
   * The task; `done` with what its handler returned, as long as the policy's resultKeepMs keeps that; `gone` when it
   * ended otherwise, nothing is kept of it, or it never was in this queue. PW_RESULT_LOST.
   */
  get(id: string): Promise<Task<Payload> | DoneTask | { state: 'gone' }>
  /** One page of tasks, the oldest first; `limit` 1 … 1000, default 100. `next` leads to the page after it. */
  list(filter?: TaskListFilter): Promise<Listing<Task<Payload>>>
  /** Ends tasks that nobody holds, asks the holders of the others; PW_FILTER_MISSING for an empty filter. */
  cancel(target: string | TaskFilter | { all: true }): Promise<{ cancelled: number; asked: number }>
  /**
   * Takes tasks to another queue, made if need be: all but the dead, or those the filter picks. Id, type, place, key,
   * batch, deliveries and history go along. Leased ones are `asked`: they follow when their delivery ends without an
   * ack. Picked by `type` alone, they are `routed`: what is enqueued here later follows, until `back: true` ends that
   * and brings the tasks of this type back. A key is in order within each queue, not across the two.
   */
  move(options: MoveOptions | MoveBackOptions): Promise<{ moved: number; asked: number; routed: boolean }>
  /** No claims until resume(); what is leased goes on. */
  pause(): Promise<void>
  resume(): Promise<void>
  /** Lays fields over the code's policy until they are set again; null takes the operator's layer away. */
  configure(policy: PolicyPatch | null, options?: { force?: boolean | undefined }): Promise<Policy>
}

type WaitableOptions = Omit<TaskOptions, 'tx'> & WaitOptions
type SyncOptions<E extends EngineName> = Omit<TaskOptions, 'tx'> & { tx: SyncTx<E> }

/** A queue: producers enqueue, workers of any process take. */
export interface Queue<In, Out = In, E extends EngineName = EngineName> extends AnyQueue<Json<In>> {
  enqueue(payload: In, options?: TaskOptions<E>): Promise<EnqueuedTask>
  /**
   * On SQLite: adds the task to a transaction that is open on `tx`, a better-sqlite3 database of the store's own file.
   * PW_TX_OTHER_DATABASE, PW_TX_NONE, PW_SCHEMA_ASYNC, PW_QUEUE_NOT_READY; what throws has changed nothing.
   */
  enqueueSync(payload: In, options: SyncOptions<E>): EnqueuedTask
  /**
   * Enqueues and waits for the end: resolves with what the handler returned, which is kept for at least ten minutes.
   * Throws PW_TASK_DEAD with the last error, PW_CANCELLED, PW_RESULT_LOST, and PW_WAIT_TIMEOUT after `waitMs` (default:
   * none); the task then goes on.
   */
  enqueueAndWait(payload: In, options?: WaitableOptions): Promise<unknown>
  /** The task of an enqueue that is made later, as `onDone` of a batch does; what is wrong with it surfaces there. */
  draft(payload: In, options?: Omit<TaskOptions, 'tx'>): Draft
  /** Any stream in constant memory. An error names the item's index; what came before it stays enqueued. */
  enqueueMany(
    items: Iterable<In> | AsyncIterable<In>,
    options?: BulkOptions<E> | ((payload: In, index: number) => BulkOptions<E> | undefined),
  ): Promise<EnqueuedMany>
  /**
   * Puts one task into this queue for each slot of the schedule, by whoever has the store open then. Set again, at the
   * next start say, it goes on where it was. Throws PW_SCHEDULE_INVALID, PW_SCHEDULE_NEVER, PW_ZONE_UNKNOWN.
   */
  schedule(name: string, options: ScheduleOptions, payload: In): Promise<Schedule>
  /** Removes it; PW_SCHEDULE_UNKNOWN. */
  schedule(name: string, options: null): Promise<Schedule>
  /** Starts a worker with one handler for all types, or one for each; '*' takes what has none of its own. */
  work(handler: Handler<Out, E> | { readonly [type: string]: Handler<Out, E> }, options?: WorkerOptions): Worker
  /**
   * The same handler without a queue: a function that calls it at once in this process, at most `concurrency` (10) at a
   * time. Payloads are checked as ever; there is one delivery, no lease, no retry, and what it throws is thrown.
   */
  inline(handler: Handler<Out, E> | { readonly [type: string]: Handler<Out, E> }, options?: InlineOptions): Inline<In>
}

/** The payload of each type, as enqueued. */
type InputOf<M extends SchemasByType, N extends keyof M> = StandardSchemaV1.InferInput<M[N]>
/** The payload of each type, as a handler gets it. */
type OutputOf<M extends SchemasByType, N extends keyof M> = StandardSchemaV1.InferOutput<M[N]>
type HandlersFor<M extends SchemasByType, N extends keyof M, E extends EngineName> = {
  readonly [T in N]: Handler<OutputOf<M, T>, E>
}
type Typed<O, N> = Omit<O, 'type'> & { type: N }
type TypedInline<M extends SchemasByType> = <N extends keyof M & string>(
  payload: InputOf<M, N>,
  call: Typed<InlineCall, N>,
) => Promise<unknown>
/** One item of a typed queue's enqueueMany: options that name a type its payload fits. */
type AnyInput<M extends SchemasByType> = { [N in keyof M]: InputOf<M, N> }[keyof M]

/** A queue with a schema for each type of task. */
export interface TypedQueue<M extends SchemasByType, E extends EngineName = EngineName>
  extends AnyQueue<Json<AnyInput<M>>> {
  enqueue<N extends keyof M & string>(payload: InputOf<M, N>, options: Typed<TaskOptions<E>, N>): Promise<EnqueuedTask>
  enqueueSync<N extends keyof M & string>(payload: InputOf<M, N>, options: Typed<SyncOptions<E>, N>): EnqueuedTask
  enqueueAndWait<N extends keyof M & string>(
    payload: InputOf<M, N>,
    options: Typed<WaitableOptions, N>,
  ): Promise<unknown>
  draft<N extends keyof M & string>(payload: InputOf<M, N>, options: Typed<Omit<TaskOptions, 'tx'>, N>): Draft
  enqueueMany<N extends keyof M & string>(
    items: Iterable<InputOf<M, N>> | AsyncIterable<InputOf<M, N>>,
    options: Typed<BulkOptions<E>, N>,
  ): Promise<EnqueuedMany>
  enqueueMany<I extends AnyInput<M>>(
    items: Iterable<I> | AsyncIterable<I>,
    options: (payload: I, index: number) => Typed<BulkOptions<E>, keyof M & string>,
  ): Promise<EnqueuedMany>
  schedule<N extends keyof M & string>(
    name: string,
    options: Typed<ScheduleOptions, N>,
    payload: InputOf<M, N>,
  ): Promise<Schedule>
  schedule(name: string, options: null): Promise<Schedule>
  work(handlers: HandlersFor<M, keyof M, E>, options?: WorkerOptions): Worker
  work<N extends keyof M & string>(
    handlers: HandlersFor<M, N, E>,
    options: WorkerOptions & { types: readonly N[] },
  ): Worker
  work(handlers: Partial<HandlersFor<M, keyof M, E>> & { '*': Handler<unknown, E> }, options?: WorkerOptions): Worker
  work(handler: Handler<OutputOf<M, keyof M>, E>, options?: WorkerOptions): Worker
  inline(
    handlers: HandlersFor<M, keyof M, E> | Handler<OutputOf<M, keyof M>, E>,
    options?: InlineOptions,
  ): TypedInline<M>
}

/** Which tasks a call means; fields that are left out match all. */
export interface TaskFilter {
  ids?: readonly string[] | undefined
  state?: State | readonly State[] | undefined
  type?: string | undefined
  key?: string | undefined
  batch?: string | undefined
}

export interface MoveOptions extends TaskFilter {
  /** The other queue. */
  to: string
}

export interface MoveBackOptions {
  /** The type that was moved away. */
  type: string
  back: true
}

interface PageOptions {
  limit?: number | undefined
  /** The `next` of the page before. */
  cursor?: string | null | undefined
}
export type TaskListFilter = Omit<TaskFilter, 'ids'> & PageOptions

/** Which dead letters a call means. */
export interface DeadFilter extends Omit<TaskFilter, 'state'> {
  /** Errors alike, as DeadLetter.fingerprint says. */
  fingerprint?: string | undefined
  /** Text in the error. */
  text?: string | undefined
}

/** The dead letters of one queue, to look at, send on their way again or discard. */
export interface DeadLetters<Payload = unknown> {
  /** One page of dead letters, the oldest task first; `limit` 1 … 1000, default 100. `next` leads to the page after. */
  list(filter?: Omit<DeadFilter, 'ids'> & PageOptions): Promise<Listing<DeadLetter<Payload>>>
  /** One dead letter with the history of its deliveries; null when this task is not dead in this queue. */
  get(id: string): Promise<(DeadLetter<Payload> & { history: PastDelivery[] }) | null>
  /** The kinds of errors behind them, the most frequent first: 4 812 tasks, 3 distinct errors. */
  groups(filter?: DeadFilter): Promise<ErrorGroup[]>
  /** Gives one another payload, which the schema checks; redrive it then. PW_TASK_NOT_DEAD, PW_PAYLOAD_INVALID. */
  edit(id: string, payload: unknown): Promise<void>
  /** Makes them ready again with a new budget; at a rate, or a few first. PW_FILTER_MISSING, PW_TASK_NOT_DEAD. */
  redrive(filter: DeadFilter | { all: true }, options?: RedriveOptions): Promise<Redriven>
  /** Removes them for good, audited. PW_FILTER_MISSING for an empty filter. */
  discard(filter: DeadFilter | { all: true }): Promise<{ discarded: number }>
}

/** A task that has been made and checked, and is enqueued later: `queue.draft()` answers it. */
export interface Draft {
  readonly queue: string
}

export interface BatchOptions {
  /**
   * Enqueued exactly once, in the commit that marks the batch finished. The newest one counts until then;
   * PW_BATCH_FINISHED for another one afterwards. In a batch of its own it keeps that one open from now on.
   */
  onDone?: Draft | undefined
}

/** How a batch stands. */
export interface BatchStats extends Omit<BatchRecord, 'createdAt' | 'finishedAt' | 'info'> {
  /** Tasks that have not ended. */
  open: number
  /** The share of its tasks that have ended, 0 … 1; null while it has none. */
  progress: number | null
  /** By what ended since an earlier stats() of this object; null until that is known. */
  etaMs: number | null
  createdAt: Date
  /** When it was sealed and its last open task had ended, for ever; null before. */
  finishedAt: Date | null
}

/** A named set of tasks, counted as one; tasks join with enqueue({ batch }). */
export interface Batch {
  readonly name: string
  /** Its counts so far; null when nothing has joined or sealed it. */
  stats(): Promise<BatchStats | null>
  /** Says that nothing will be added any more: enqueues and a second seal are refused with PW_BATCH_SEALED. */
  seal(): Promise<void>
  /** Seals it, cancels what is open and asks the holders of the rest; what follows it comes all the same. */
  cancel(): Promise<{ cancelled: number; asked: number }>
  /**
   * Resolves once it has finished: it was sealed and no task of it was open; from synced state only. Dead letters count
   * as ended, and a redrive makes no finished batch wait again. PW_DRAIN_TIMEOUT.
   */
  done(options?: WaitOptions): Promise<{ total: number; done: number; dead: number; cancelled: number }>
}
