// The engine contract: every noun and verb a store offers. Arrays in and out have equal length and order.
import type { Outcome, State, Total } from '../task/lifecycle.js'

/** A task to be. Durations only: the engine makes every instant but `dueAt` (wall clock). Text is valid Unicode. */
export interface NewTask {
  queue: string
  type?: string | undefined // the queue's name
  payload: string // JSON text
  headers?: string | undefined // JSON object text, never looked into
  priority?: number | undefined // -100..100, 0
  delayMs?: number | undefined
  dueAt?: number | undefined // wall-clock ms
  deadlineMs?: number | undefined // from enqueue
  onDeadline?: 'dead' | 'drop' | undefined // drop: retention of the SQS face
  key?: string | undefined
  weight?: number | undefined // its key's share under `fair`, 1
  dedupKey?: string | undefined
  onDuplicate?: 'keep' | 'replace' | 'delay' | undefined
  batch?: string | undefined
  identity?: string | undefined // once per batch, kept until the batch is forgotten
  keepsResult?: boolean | undefined // somebody waits for its end: kept some minutes whatever the policy says
}
export interface Enqueued { id: string; state: State | 'gone'; duplicate: boolean }

export interface Want { queue: string; types: readonly string[] | null; max: number; perKey?: number | undefined }
export interface ClaimAsk {
  worker: string; requestId: string | null; wants: readonly Want[]; leaseMs?: number | undefined
}
export interface ClaimedTask {
  receipt: string; id: string; queue: string; type: string; key: string | null; batch: string | null
  number: number; fence: number; spent: number; deaths: number; deliveriesMax: number | null
  enqueuedAt: number; waitedMs: number; leaseMs: number; timeoutMs: number | null
  limited: boolean // under a limit: nothing of its queue may be claimed ahead of need
  payload: string; headers: string | null; keepsResult: boolean
}
export type Blocker = { queue: string; by: 'limit' | 'key' | 'pause' | 'breaker' }
export interface Claimed { deliveries: ClaimedTask[]; nextDueMs: number | null; blockedBy: Blocker[] }

/** What is kept of an error: a code if it has one, and at most 4 KiB of text. */
export interface ErrorText { code: string | null; text: string }
export type Verdict =
  | { receipt: string; do: 'ack'; result?: string | undefined }
  | { receipt: string; do: 'retry'; delayMs?: number | undefined; error: ErrorText }
  | { receipt: string; do: 'release'; by: ReleasedBy; delayMs?: number | undefined; error?: ErrorText | undefined }
  | { receipt: string; do: 'bury'; error: ErrorText }
/** stop, unstarted: free; handler: free up to releasesMax; overloaded: that, and limits shrink; counted: spends. */
export type ReleasedBy = 'stop' | 'unstarted' | 'handler' | 'overloaded' | 'counted'
export type Held = 'held' | 'cancelled' | 'stale'

export interface WorkerInfo {
  worker: string; host: string; pid: number; bootId: string; queues: readonly string[]
  concurrency: number; busy: number; prefetched: number; proof: string | null // where its death can be known
}
export interface Swept {
  expired: number; died: number; matured: number; promoted: number; folded: number; nextMs: number | null
}

/** queue: { code, operator, unset, paused }; batch: { sealed, info, followUp: NewTask } */
export type Patch = Record<string, unknown>
/** `proof`: every figure beside a full count, in one snapshot (P12). */
export type Kind =
  | 'queue' | 'batch' | 'limit' | 'schedule' | 'route' | 'token' | 'type' | 'task' | 'result' | 'history' | 'worker'
  | 'audit' | 'redelivered' | 'proof'
/** Fields that are left out match everything; those given must all match. */
export interface Filter {
  ids?: readonly string[] | undefined; queue?: string | undefined; type?: string | undefined; key?: string | undefined
  batch?: string | undefined; states?: readonly State[] | undefined; fingerprint?: string | undefined
  text?: string | undefined; name?: string | undefined; limit?: number | undefined; sinceAt?: number | undefined
}
export interface Page { items: Record<string, unknown>[]; next: string | null } // rows: src/task/records.ts
export type Change =
  | { do: 'cancel' | 'purge' | 'discard' | 'redrive' } | { do: 'edit'; payload: string } | { do: 'move'; to: string }
export interface Amended { changed: number; asked: number; ids: string[] }

/** Figures of one snapshot; a number that is not known is null, never 0. */
export interface TypeFigures extends Record<State | Total, number> {
  queue: string; type: string; paused: boolean; backlogAgeMs: number | null; leaseAgeMaxMs: number | null
}
export interface Figures { at: number; types: TypeFigures[]; workers: (WorkerInfo & { aliveAt: number })[] }

export interface Traits {
  transactions: 'sync' | 'async' | 'none'
  liveness: 'lock' | 'lease' // how a worker's death is known
  wake: 'push' | 'poll'
  threads: boolean // descriptor() opens in a thread or process
  sweeps: 'clients' | 'store' // who has to call sweep: every open connection, or nobody
}
/** Plain data that reopens the same store elsewhere; null when the store lives in this process only. */
export type Descriptor = { engine: string; [field: string]: unknown }

export interface Engine {
  readonly traits: Traits
  open(): Promise<void>
  close(): Promise<void>
  /** Brings the store to this version's format; answers the statements; `dryRun` only lists them. */
  migrate(dryRun: boolean): Promise<string[]>
  descriptor(): Descriptor | null
  /** The same requestId within 10 min: the same answers, or PW_REQUEST_CHANGED for other tasks. `tx`: the caller's. */
  enqueue(requestId: string | null, tasks: readonly NewTask[], tx?: unknown): Promise<Enqueued[]>
  /** At most `max` of each want, lowest place first. The same requestId: the same deliveries while one is leased. */
  claim(ask: ClaimAsk): Promise<Claimed>
  /** (worker, flush) is a requestId to it. Inside a `tx` a stale receipt throws PW_LEASE_LOST. */
  settle(by: { worker: string; flush: string | null }, verdicts: readonly Verdict[], tx?: unknown): Promise<Outcome[]>
  /** New lease lengths from now; may shorten. */
  extend(
    worker: string,
    asks: readonly { receipt: string; leaseMs: number; progress?: string | undefined }[],
  ): Promise<Held[]>
  /** beat answers the receipts that were asked to cancel, and whether this worker still counts as alive. */
  worker(event: 'join' | 'beat' | 'leave', info: WorkerInfo): Promise<{ alive: boolean; cancelled: string[] }>
  /** Ends leases, matures what is due, buries what passed its deadline, folds figures, prunes; at most `max` rows. */
  sweep(max: number): Promise<Swept>
  /** Resolves true when one of the queues may have work, false after `ms` or when the signal aborts. */
  wait(queues: readonly string[], ms: number, signal: AbortSignal): Promise<boolean>
  /** Makes or changes one named thing, in one commit with its audit row; null removes it. Answers what is in force. */
  configure(kind: Kind, name: string, patch: Patch | null, actor: string): Promise<Patch>
  select(kind: Kind, filter: Filter, cursor: string | null): Promise<Page>
  amend(filter: Filter, change: Change, actor: string, bounds: { max: number; dryRun: boolean }): Promise<Amended>
  /** `durable` answers only after everything it counted is synced. */
  measure(queues: readonly string[] | null, durable: boolean): Promise<Figures>
}
