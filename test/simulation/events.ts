// What a simulated run leaves behind: one stream of events, in order, which is hashed, judged and told as a story.
import { createHash } from 'node:crypto'
import type { Verdict } from '../../dist/engine/contract.js'
import type { State } from '../../dist/task/lifecycle.js'
import type { Fault, FaultKind, Item } from './plan.js'

/** A task's row as SQLite has it; instants are of the engine's clock. */
export interface Row {
  id: string
  queue: string
  type: string
  state: State
  place: number
  dueAt: number
  /** Of a scheduled task when it is due, of a leased one its lease's end. */
  wakeAt: number | null
  number: number
  spent: number
  releases: number
  deaths: number
  fence: number
  nonce: number | null
  /** Who holds it, or held it when the receipt lapsed: number and name; no name when the store forgot the worker. */
  holder: number | null
  worker: string | null
  key: string | null
  priority: number
  dedupKey: string | null
  cancelAsked: boolean
  /** Its batch's name. */
  batch: string | null
  /** Which item of the plan its payload is. */
  item: number
  /** The instant of the slot that it was enqueued for; null when no schedule did. */
  slotAt: number | null
}

/** A batch's row as SQLite has it. */
export interface BatchRow {
  name: string
  sealed: boolean
  finishedAt: number | null
  total: number
  done: number
  dead: number
  cancelled: number
  /** What follows it: the item, the batch in which it has its place, and its task once it is one. */
  follows: number | null
  place: string | null
  followId: string | null
}

/** Calls that may change something; what only reads is not told. */
export type Asked =
  | { verb: 'enqueue'; request: string | null; tasks: AskedTask[] }
  | {
      verb: 'claim'
      queue: string
      worker: string
      request: string | null
      max: number
      types: readonly string[] | null
    }
  | { verb: 'settle'; worker: string; request: string | null; verdicts: AskedVerdict[] }
  | { verb: 'extend'; worker: string; receipts: string[]; leaseMs: number[] }
  | { verb: 'worker'; worker: string; event: 'join' | 'beat' | 'leave' }
  | { verb: 'sweep' }
  | { verb: 'amend'; change: string; ids: readonly string[] | null }
  | { verb: 'configure'; kind: string; name: string; seals: boolean; follows: Followed | null }
/** What was said to follow a batch: the item and its batch. */
export interface Followed {
  item: number
  place: string | null
}
export interface AskedTask {
  item: number
  queue: string
  type: string
  key: string | null
  priority: number
  delayMs: number
  dedupKey: string | null
  onDuplicate: 'keep' | 'replace' | 'delay'
  /** True when it names an instant or a delay. */
  dueNamed: boolean
}
export interface AskedVerdict {
  receipt: string
  do: Verdict['do']
  by: string | null
  delayMs: number | null
}

/** What a call was answered, as far as the laws look at it. */
export type Answer =
  | { verb: 'enqueue'; ids: string[]; duplicates: boolean[] }
  | { verb: 'claim'; deliveries: { receipt: string; id: string; number: number; fence: number }[] }
  | { verb: 'settle'; outcomes: string[] }
  | { verb: 'extend'; held: string[] }
  | { verb: 'worker' | 'sweep' | 'amend' | 'configure' }

export type Happening =
  | { is: 'phase'; phase: 'chaos' | 'heal' | 'closing' | 'over' }
  | { is: 'fault'; fault: Fault; hits: string | null }
  /** A fault that lasts had an effect: a call held up, a sync that took long, a lock that was not to be had. */
  | { is: 'felt'; kind: FaultKind }
  | { is: 'up'; process: string; wire: boolean }
  | { is: 'killed'; process: string; by: string | null }
  | { is: 'paused' | 'resumed' | 'stopping' | 'stopped'; process: string }
  /** The schedule is set for the first time, its first slot at that instant; or removed. */
  | { is: 'beat'; firstAt: number | null; wallMs: number }
  | { is: 'offered'; process: string; item: Item }
  | { is: 'accepted'; process: string; item: number; id: string; duplicate: boolean }
  | { is: 'rejected'; process: string; item: number; code: string }
  /** A call reaches the engine; `copy`: the wire delivered it a second time. */
  | { is: 'ask'; call: number; process: string; copy: boolean; asked: Asked }
  /** The call runs inside a transaction; its changes follow. */
  | { is: 'ran'; call: number; commit: number; now: number; wallMs: number }
  | { is: 'change'; call: number; commit: number; now: number; before: Row | null; after: Row | null }
  | { is: 'batch'; call: number; commit: number; before: BatchRow | null; after: BatchRow }
  /** The engine answers; `commit` is the call's (null: it only read), `synced` the last one that is on the disk. */
  | { is: 'answer'; call: number; commit: number | null; synced: number; answer: Answer }
  | { is: 'refused'; call: number; code: string }
  /** The answer has reached its process. */
  | { is: 'heard'; call: number }
  /** It never will: the wire lost the request or the reply, and the caller has been told so. */
  | { is: 'lost'; process: string; asked: Asked }
  | { is: 'start'; process: string; id: string; number: number; fence: number; running: string[] }
  | { is: 'end'; process: string; id: string; number: number; how: string }
  | { is: 'figures'; types: Figures[]; proof: { name: string; shown: Counts; counted: Counts }[] }

export type Counts = Record<string, number>
export interface Figures {
  queue: string
  type: string
  counts: Counts
}

/** `at` is the monotonic clock in ms; `step` the scheduler's event in which it happened. */
export type SimEvent = Happening & { step: number; at: number }

/** The same for the same run, on every machine. */
export function hashOf(events: readonly SimEvent[]): string {
  const hash = createHash('sha256')
  for (const event of events) hash.update(`${JSON.stringify(event)}\n`)
  return hash.digest('hex').slice(0, 16)
}
