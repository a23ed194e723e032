// Checks the options of every client call against a table, and makes the engine's task from an enqueue's options.
import type { NewTask } from '../engine/contract.js'
import { closest } from '../ground/closest.js'
import { PieceworkError } from '../ground/errors.js'
import { checkName, checkWhole, shown } from '../task/limits.js'
import { loneSurrogate } from '../task/payload.js'
import type { AsyncTx, EngineName } from '../task/transaction.js'
import type { Batch } from './face.js'

/** Options of one enqueue; all may be left out. */
export interface TaskOptions<E extends EngineName = EngineName> {
  /** The task's kind; default: the queue's name. */
  type?: string | undefined
  /** Tasks of one key run in the order they were enqueued, one at a time. */
  key?: string | undefined
  /** -100 … 100, default 0: n jumps ahead of work enqueued less than n x headStartMs earlier. */
  priority?: number | undefined
  /** Not before so many ms from now; at most ten years. */
  delayMs?: number | undefined
  /** Not before this wall-clock instant (a Date or ms since 1970); not together with delayMs. */
  dueAt?: Date | number | undefined
  /** Dead, reason "deadline", when it was not claimed so many ms after its enqueue. */
  deadlineMs?: number | undefined
  /** While a task with this key lives in the queue (and for dedupWindowMs after), the same id is answered. */
  dedupKey?: string | undefined
  /**
   * What this does to the task that has the dedup key, unless that is being worked on: 'keep' (default) nothing;
   * 'replace' gives it this payload and these options, at its old place unless delayMs or dueAt says otherwise
   * (PW_DUPLICATE_DIFFERS for another type or key; its batch stays); 'delay' moves its due instant alone.
   */
  onDuplicate?: 'keep' | 'replace' | 'delay' | undefined
  /** The batch that counts it, by name or as pw.batch() answers it. */
  batch?: string | Batch | undefined
  /** Small texts handed to the handler beside the payload; 64 KiB together. */
  headers?: Readonly<Record<string, string>> | undefined
  /** The caller's own transaction: the task is there if and only if that commits. SQLite: enqueueSync. */
  tx?: AsyncTx<E> | undefined
}

/** Options of one item of enqueueMany. */
export interface BulkOptions<E extends EngineName = EngineName> extends TaskOptions<E> {
  /** What an item that does not fit does: 'throw' (default) ends the call; 'bury' stores it for a worker to bury. */
  onInvalid?: 'throw' | 'bury' | undefined
}

const known = (...fields: readonly string[]): ReadonlySet<string> => new Set(fields)
const taskFields = [
  'type',
  'key',
  'priority',
  'delayMs',
  'dueAt',
  'deadlineMs',
  'dedupKey',
  'onDuplicate',
  'batch',
  'headers',
  'tx',
]

/** The options that each call knows. */
export const options = {
  connect: known('url', 'policy', 'durability', 'pool'),
  enqueue: known(...taskFields),
  enqueueMany: known(...taskFields, 'onInvalid'),
  work: known('concurrency', 'graceMs', 'types', 'prefetch', 'stopOn'),
  drained: known('signal', 'waitMs', 'scheduled'),
  list: known('state', 'type', 'key', 'batch', 'limit', 'cursor'),
  cancel: known('all', 'ids', 'state', 'type', 'key', 'batch'),
  configure: known('force'),
  move: known('to', 'back', 'ids', 'state', 'type', 'key', 'batch'),
  'dead.list': known('type', 'key', 'batch', 'fingerprint', 'text', 'limit', 'cursor'),
  'dead.groups': known('ids', 'type', 'key', 'batch', 'fingerprint', 'text'),
  'dead letters': known('all', 'ids', 'type', 'key', 'batch', 'fingerprint', 'text'),
  schedule: known(
    ...['cron', 'tz', 'everyMs', 'dueAt', 'missed'],
    ...['type', 'key', 'priority', 'deadlineMs', 'dedupKey', 'headers'],
  ),
  redrive: known('perSecond', 'canary', 'dryRun'),
  draft: known(...taskFields.filter((field) => field !== 'tx')),
  batch: known('onDone'),
  done: known('signal', 'waitMs'),
  enqueueAndWait: known('signal', 'waitMs', ...taskFields.filter((field) => field !== 'tx')),
  inline: known('concurrency'),
  'inline call': known('type', 'key', 'headers', 'signal'),
} as const

const day = 86_400_000
/** Ten years: far enough for any plan, and instants stay far below 2^53 microseconds. */
const aheadMsMax = 3650 * day
/** As much as a mail's headers; more belongs in the payload. */
const headersBytesMax = 65_536

/** Throws PW_OPTION_INVALID unless `given` is an object, PW_OPTION_UNKNOWN for a field that is not in the table. */
export function checkOptions(call: keyof typeof options, given: unknown): void {
  if (given === undefined) return
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new PieceworkError('PW_OPTION_INVALID', `The options of ${call} are ${shown(given)}; they must be an object.`)
  }
  const table = options[call]
  for (const field in given) {
    if (table.has(field) || (given as Record<string, unknown>)[field] === undefined) continue
    throw unknownOption(call, field, [...table])
  }
}

/** PW_OPTION_UNKNOWN for one field, with the nearest known one. */
export function unknownOption(call: string, field: string, table: readonly string[]): PieceworkError {
  const near = closest(field, table)
  const hint = near ? `Did you mean "${near}"?` : table.length > 0 ? `It has: ${table.join(', ')}.` : 'It has none.'
  return new PieceworkError('PW_OPTION_UNKNOWN', `${call} has no option ${shown(field)}. ${hint}`, { option: field })
}

/** Answers the value; throws PW_OPTION_INVALID unless it is one of `choices`. */
export function checkChoice<const T extends string>(what: string, value: unknown, choices: readonly T[]): T {
  if ((choices as readonly unknown[]).includes(value)) return value as T
  const list = choices.map((choice) => `"${choice}"`).join(', ')
  throw new PieceworkError('PW_OPTION_INVALID', `${what} is ${shown(value)}; it must be one of ${list}.`, { what })
}

/** The engine's task for valid JSON text and checked fields; throws PW_NAME_INVALID or PW_OPTION_INVALID. */
export function taskOf(queue: string, payload: string, given: TaskOptions | undefined): NewTask {
  const task: NewTask = { queue, payload }
  if (given === undefined) return task
  const { type, key, priority, delayMs, dueAt, deadlineMs, dedupKey, onDuplicate, batch, headers } = given
  if (type !== undefined) task.type = checkName('type', type)
  if (key !== undefined) task.key = checkName('key', key)
  if (priority !== undefined) task.priority = checkWhole('priority', priority, -100, 100)
  if (delayMs !== undefined) task.delayMs = checkWhole('delayMs', delayMs, 0, aheadMsMax)
  if (dueAt !== undefined) task.dueAt = checkInstant(dueAt, delayMs)
  if (deadlineMs !== undefined) task.deadlineMs = checkWhole('deadlineMs', deadlineMs, 1, aheadMsMax)
  if (dedupKey !== undefined) task.dedupKey = checkName('dedupKey', dedupKey)
  if (onDuplicate !== undefined) task.onDuplicate = checkDuplicate(given)
  if (batch !== undefined) task.batch = checkName('batch', typeof batch === 'object' ? batch?.name : batch)
  if (headers !== undefined) task.headers = checkHeaders(headers)
  return task
}

function checkDuplicate({ onDuplicate, dedupKey, delayMs, dueAt }: TaskOptions): 'keep' | 'replace' | 'delay' {
  const what = checkChoice('onDuplicate', onDuplicate, ['keep', 'replace', 'delay'])
  const missing =
    what === 'keep'
      ? null
      : dedupKey === undefined
        ? 'a dedupKey, by which a duplicate is known'
        : what === 'delay' && delayMs === undefined && dueAt === undefined
          ? 'delayMs or dueAt, until when it delays'
          : null
  if (missing === null) return what
  throw new PieceworkError('PW_OPTION_INVALID', `onDuplicate "${what}" needs ${missing}.`, { onDuplicate })
}

function checkInstant(dueAt: unknown, delayMs: number | undefined): number {
  if (delayMs !== undefined) {
    throw new PieceworkError('PW_OPTION_INVALID', 'delayMs and dueAt both say when; give one of them.')
  }
  const at = dueAt instanceof Date ? dueAt.getTime() : dueAt
  // Year 2200: below what instants in microseconds can hold.
  if (typeof at === 'number' && at >= 0 && at <= 7_258_118_400_000) return Math.ceil(at)
  throw new PieceworkError(
    'PW_OPTION_INVALID',
    `dueAt is ${shown(dueAt)}; it must be a Date or milliseconds since 1970, before the year 2200.`,
  )
}

/** The JSON text of headers; throws PW_OPTION_INVALID unless every value is well-formed text. */
function checkHeaders(headers: unknown): string {
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers)) {
    throw new PieceworkError('PW_OPTION_INVALID', `headers is ${shown(headers)}; it must be an object of texts.`)
  }
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value !== 'string' || loneSurrogate(value) >= 0 || loneSurrogate(name) >= 0) {
      throw new PieceworkError(
        'PW_OPTION_INVALID',
        `The header ${shown(name)} is ${shown(value)}; names and values must be text without lone surrogates.`,
        { header: name },
      )
    }
  }
  const text = JSON.stringify(headers)
  const bytes = Buffer.byteLength(text)
  if (bytes <= headersBytesMax) return text
  throw new PieceworkError(
    'PW_OPTION_INVALID',
    `The headers have ${bytes} bytes; at most ${headersBytesMax} are allowed.`,
  )
}
