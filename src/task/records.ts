// The shapes of the rows that select() answers, one for each kind of thing an engine keeps.
import type { State } from './lifecycle.js'
import type { LimitSettings } from './limiter.js'
import type { Policy } from './limits.js'
import type { ScheduleTask, Timing } from './schedule.js'

/** One task as a reader sees it. Instants are wall-clock milliseconds. */
export interface TaskRecord {
  id: string
  queue: string
  type: string
  state: State
  key: string | null
  batch: string | null
  priority: number
  dedupKey: string | null
  enqueuedAt: number
  dueAt: number | null
  deadlineAt: number | null
  place: number
  number: number
  spent: number
  releases: number
  deaths: number
  fence: number
  worker: string | null
  leaseEndsAt: number | null
  cancelAsked: boolean
  progress: string | null
  headers: string | null
  payload: string
  /** Of a dead letter: why it died, the last error and when. */
  reason: string | null
  code: string | null
  error: string | null
  fingerprint: string | null
  deadAt: number | null
}

/** How a task ended, kept for a while. */
export interface ResultRecord {
  id: string
  queue: string
  type: string
  outcome: 'done' | 'cancelled' | 'dead'
  /** JSON: what its handler returned (empty text: JSON could not hold it); of a dead task what is said of its end. */
  result: string | null
  endedAt: number
}

/** One ended delivery that did not finish its task. */
export interface HistoryRecord {
  task: string
  number: number
  fence: number
  outcome: 'retry' | 'timeout' | 'release' | 'bury' | 'expired' | 'died' | 'redriven'
  code: string | null
  error: string | null
  worker: string | null
  startedAt: number | null
  endedAt: number
}

/** A queue with its three policy layers; `policy` is what is in force. */
export interface QueueRecord {
  name: string
  paused: boolean
  code: Partial<Policy> | null
  operator: Partial<Policy> | null
  policy: Policy
  createdAt: number
}

/**
 * A batch and what became of its tasks so far. `retries` counts failures after which the task was to be delivered
 * again, `returned` deliveries that a lease end or a death gave back.
 */
export interface BatchRecord {
  name: string
  sealed: boolean
  total: number
  done: number
  dead: number
  cancelled: number
  retries: number
  returned: number
  createdAt: number
  /** When it was sealed and its last open task had ended, for ever; null before. */
  finishedAt: number | null
  /** The task that its end enqueues; the id once it has. */
  followUp: { queue: string; type: string; id: string | null } | null
  info: Record<string, unknown>
}

/** A schedule of a queue; instants are wall-clock milliseconds. */
export interface ScheduleRecord extends Timing {
  queue: string
  name: string
  task: ScheduleTask
  /** The next slot; null when none is left. */
  nextAt: number | null
  /** The last slot that was enqueued, or skipped. */
  lastAt: number | null
}

/** Where new tasks of a type go since it was moved. */
export interface RouteRecord {
  queue: string
  type: string
  /** The other queue, and what they are called there. */
  to: string
  toType: string
}

/** A named limit, and what is under it now. */
export interface LimitRecord extends LimitSettings {
  name: string
  /** Deliveries under lease now. */
  leased: number
  /** The queues that draw on it. */
  queues: string[]
  /** The part of its ceilings in force: below 1 while an adaptive limit has shrunk. */
  share: number
  concurrencyNow: number | null
}

/** Who may call a broker: the name it goes by in the audit, what it may do, and in which queues. */
export interface TokenRecord {
  /** The part of the token that is no secret. */
  id: string
  name: string
  /** sha256 of the secret part, base64url. */
  hash: string
  scopes: string[]
  /** Globs of queue names. */
  queues: string[]
  createdAt: number
  expiresAt: number | null
}

/** An ack of a task that had been delivered more than once; kept for seven days. */
export interface RedeliveredRecord {
  /** The task's. */
  id: string
  queue: string
  type: string
  key: string | null
  deliveries: number
  /** Who had it, the first one first, as far as a delivery's end was noted. */
  workers: string[]
  enqueuedAt: number
  /** When the last delivery began. */
  startedAt: number | null
  ackedAt: number
}

/** An operator's act. */
export interface AuditRecord {
  at: number
  actor: string
  action: string
  subject: string
  details: Record<string, unknown>
}

/** A figure as shown and as a full count of the same snapshot has it; they differ only when a promise is broken. */
export interface ProofRecord {
  kind: 'type' | 'batch'
  name: string
  shown: Record<string, number>
  counted: Record<string, number>
}
