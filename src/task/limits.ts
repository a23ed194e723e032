// Every default and bound of the product, with its unit and reason, and the policy of a queue made from them.
import * as v from 'valibot'
import { closest } from '../ground/closest.js'
import { PieceworkError } from '../ground/errors.js'
import { type Breaker, breakerFailuresMax, type LimitSettings } from './limiter.js'

/** 1 MiB: larger data belongs in a file or object store, with a reference in the queue. */
export const payloadBytesMax = 1_048_576
/** Deep enough for any real document, shallow enough for every recursive parser. */
export const payloadDepthMax = 64
const nameLengthMax = 200
/** Text kept of one error. */
export const errorBytesMax = 4096
/** Tasks in one engine call of enqueueMany, and rows of one sweep: a few milliseconds of the write lock. */
export const bulkTasksMax = 1000
/** How long a repeated call with one request id is answered as the first time. */
export const answerKeepMs = 600_000
/** How long acks of redelivered tasks are listed. */
export const redeliveredKeepMs = 604_800_000
/** How often leases, due tasks and dead workers are looked for at the latest; half of what P8 promises. */
export const sweepEveryMs = 400

export interface Backoff {
  baseMs: number
  factor: number
  maxMs: number
  /** `full`: anywhere between 0 and the computed delay, so that tasks that failed together come back apart. */
  jitter: 'full' | 'none'
}

export interface PerKey {
  /** Tasks of one key that may be ready or leased at once; 1 is strict order. */
  width: number
  fair: boolean
  onDead: 'continue' | 'hold'
}

/** The settings of a queue. Durations are milliseconds; null is "no limit". */
export interface Policy {
  leaseMs: number
  timeoutMs: number | null
  deliveriesMax: number | null
  releasesMax: number
  backoff: Backoff
  headStartMs: number
  perKey: PerKey
  dedupWindowMs: number
  /** Ceilings of this queue over all workers of the store. */
  concurrencyMax: number | null
  perSecondMax: number | null
  /** Named limits it draws on. */
  uses: string[]
  /** When its claims pause because its work fails. */
  breaker: Breaker | null
  resultKeepMs: number
  /** How long effect keys are kept, and longer while their task is there. */
  effectKeepMs: number
  /** The queue that receives the dead as tasks. */
  deadTo: string | null
}

export const policyDefaults: Policy = {
  leaseMs: 30_000, // a crash whose death cannot be seen stalls its tasks this long; extension carries longer work
  timeoutMs: 900_000, // a handler that hangs must not hold its slot for ever
  deliveriesMax: 5, // transient faults pass within a few tries; a poison task stops after them
  releasesMax: 100, // a downstream that is away for hours ends in the dead letters, not in an endless loop
  backoff: { baseMs: 2000, factor: 3, maxMs: 3_600_000, jitter: 'full' },
  headStartMs: 60_000, // one step of priority is worth a minute of waiting
  perKey: { width: 1, fair: false, onDead: 'continue' },
  dedupWindowMs: 0, // dropping a wanted task is worse than a second one
  concurrencyMax: null,
  perSecondMax: null,
  uses: [],
  breaker: null,
  resultKeepMs: 0, // nobody may ever ask, and every kept result is a row to write and to remove
  effectKeepMs: 2_592_000_000, // 30 days: whatever sends a task again, a restored backup too, does so within them
  deadTo: null, // the dead letters of a queue are where people look for them
}

/** What a breaker is that says only some of it. */
export const breakerDefaults: Breaker = { failures: 20, distinctTasks: 20, windowMs: 10_000 }

/** A number of a setting; its refusal says what it has to be. */
function whole(min: number, max: number, what = 'a whole number', none = '') {
  const wanted = `it must be ${what} from ${min} to ${max}${none}`
  return v.pipe(v.number(wanted), v.integer(wanted), v.minValue(min, wanted), v.maxValue(max, wanted))
}
const ms = (min: number, max: number, none = '') => whole(min, max, 'whole milliseconds', none)
const orNone = ', or null for none (command line: none)'
function oneOf<const Words extends readonly string[]>(...words: Words) {
  return v.picklist(words, `it must be ${words.map((word) => JSON.stringify(word)).join(' or ')}`)
}
const day = 86_400_000

/** Slower than one in a quarter of an hour is a schedule, not a rate. */
const rate = `it must be a number from 0.001 to 1000000${orNone}`
const perSecond = v.pipe(v.number(rate), v.minValue(0.001, rate), v.maxValue(1_000_000, rate))
const concurrency = whole(1, 1_000_000, undefined, orNone)

const limitSchema = v.strictObject({
  concurrencyMax: v.optional(v.nullable(concurrency)),
  perSecondMax: v.optional(v.nullable(perSecond)),
  adaptive: v.optional(v.boolean('it must be true or false')),
})

export const limitFields = Object.keys(limitSchema.entries)

const uses = 'it must be at most 16 names of limits (command line: uses=db,api)'
const factor = 'it must be a number from 1 to 100'
const policySchema = v.strictObject({
  leaseMs: v.optional(ms(100, 43_200_000)),
  timeoutMs: v.optional(v.nullable(ms(1, 365 * day, orNone))),
  deliveriesMax: v.optional(v.nullable(whole(1, 1_000_000, undefined, orNone))),
  releasesMax: v.optional(whole(0, 1_000_000_000)),
  backoff: v.optional(
    v.strictObject(
      {
        baseMs: v.optional(ms(0, 30 * day)),
        factor: v.optional(v.pipe(v.number(factor), v.minValue(1, factor), v.maxValue(100, factor))),
        maxMs: v.optional(ms(0, 365 * day)),
        jitter: v.optional(oneOf('full', 'none')),
      },
      'it has parts: baseMs, factor, maxMs, jitter (command line: backoff.base=1s)',
    ),
  ),
  headStartMs: v.optional(ms(0, 30 * day)),
  perKey: v.optional(
    v.strictObject(
      {
        width: v.optional(whole(1, 1000)),
        fair: v.optional(v.literal(false, 'this version has no fair shares: it must be false')),
        onDead: v.optional(oneOf('continue', 'hold')),
      },
      'it has parts: width, fair, onDead (command line: per-key.width=4)',
    ),
  ),
  dedupWindowMs: v.optional(ms(0, 365 * day)),
  concurrencyMax: v.optional(v.nullable(concurrency)),
  perSecondMax: v.optional(v.nullable(perSecond)),
  // A claim looks at each of them.
  uses: v.optional(v.pipe(v.array(v.pipe(v.string(uses), v.minLength(1, uses)), uses), v.maxLength(16, uses))),
  breaker: v.optional(
    v.nullable(
      v.strictObject(
        {
          failures: v.optional(whole(1, breakerFailuresMax), breakerDefaults.failures),
          distinctTasks: v.optional(whole(1, breakerFailuresMax), breakerDefaults.distinctTasks),
          windowMs: v.optional(ms(100, day), breakerDefaults.windowMs),
        },
        'it has parts: failures, distinctTasks, windowMs (command line: breaker.failures=20), or is null',
      ),
    ),
  ),
  resultKeepMs: v.optional(whole(0, 365 * day)),
  effectKeepMs: v.optional(ms(0, 3650 * day)),
  deadTo: v.optional(v.nullable(v.string())),
})

/** What one layer of policy says; fields left out come from the layer below, inside `backoff` and `perKey` too. */
export type PolicyPatch = { [F in keyof Policy]?: Patched<Policy[F]> | undefined }
type Patched<T> = T extends readonly unknown[] ? T : T extends object ? { [G in keyof T]?: T[G] | undefined } : T

/** Answers the patch without undefined fields; throws PW_OPTION_UNKNOWN with a suggestion, or PW_OPTION_INVALID. */
export function checkPolicy(patch: Record<string, unknown>): PolicyPatch {
  const policy = checked('A queue', Object.keys(policyDefaults), policySchema, patch) as PolicyPatch
  if (policy.deadTo != null) checkName('deadTo', policy.deadTo)
  return policy
}

/** The same for the settings of a limit. */
export const checkLimit = (patch: Record<string, unknown>) =>
  checked('A limit', limitFields, limitSchema, patch) as Partial<LimitSettings>

function checked(
  whose: string,
  known: readonly string[],
  schema: v.GenericSchema,
  patch: Record<string, unknown>,
): Record<string, unknown> {
  for (const field of Object.keys(patch)) {
    if (!known.includes(field) && patch[field] !== undefined) throw noSetting(whose, field, known)
  }
  const result = v.safeParse(schema, patch)
  if (!result.success) {
    const issue = result.issues[0]
    const steps = issue.path?.map((step) => String((step as { key?: unknown }).key)) ?? []
    const path = steps.join('.')
    const [outer = '', inner = ''] = steps
    // What a strict object says of a member that it does not have.
    if (issue.expected === 'never') throw noPart(outer, inner, path)
    const value = typeof issue.input === 'object' && issue.input ? JSON.stringify(issue.input) : shown(issue.input)
    throw new PieceworkError('PW_OPTION_INVALID', `${path} is ${value}; ${issue.message}.`, { field: path })
  }
  return JSON.parse(JSON.stringify(result.output)) as Record<string, unknown>
}

function noPart(outer: string, inner: string, path: string): PieceworkError {
  const parts = { breaker: breakerDefaults, backoff: policyDefaults.backoff, perKey: policyDefaults.perKey }
  const known = Object.keys(parts[outer as 'breaker' | 'backoff' | 'perKey'] ?? {})
  return new PieceworkError('PW_OPTION_INVALID', noSetting(outer, inner, known).message, { field: path })
}

/** The field that was meant; the command line's names go without their unit. */
function nearField(field: string, known: readonly string[]): string | undefined {
  const bare = (name: string) => name.replace(/(Ms|Max)$/, '')
  return closest(field, known) ?? known.find((name) => closest(field, [bare(name)]) !== null)
}

/** The refusal of a setting that `owner` does not have, with those it has. */
export function noSetting(owner: string, field: string, known: readonly string[]): PieceworkError {
  const near = nearField(field, known)
  const hint = near ? `Did you mean "${near}"?` : `It has: ${known.join(', ')}.`
  return new PieceworkError('PW_OPTION_UNKNOWN', `${owner} has no setting "${field}". ${hint}`, { field })
}

/** A stored layer; fields that another version wrote and this one cannot read count as not set. */
export function storedPolicy(text: string | null): PolicyPatch | null {
  if (text === null) return null
  const kept: Record<string, unknown> = {}
  for (const [field, value] of Object.entries(JSON.parse(text) as Record<string, unknown>)) {
    if (field in policyDefaults && v.is(policySchema, { [field]: value })) kept[field] = value
  }
  return kept as PolicyPatch
}

/** Lays the operator's layer over the code's over the defaults. */
export function effectivePolicy(...layers: readonly (PolicyPatch | null)[]): Policy {
  const policy = structuredClone(policyDefaults)
  for (const layer of layers) {
    const { backoff, perKey, ...flat } = layer ?? {}
    Object.assign(policy, flat)
    Object.assign(policy.backoff, backoff)
    Object.assign(policy.perKey, perKey)
  }
  return policy
}

/** Answers the name; throws PW_NAME_INVALID with the offset of what cannot be in it. `what` says whose name it is. */
export function checkName(what: string, name: unknown): string {
  if (typeof name !== 'string') {
    throw new PieceworkError('PW_NAME_INVALID', `The ${what} is ${shown(name)}; it must be text.`, { what })
  }
  if (name.length === 0) throw new PieceworkError('PW_NAME_INVALID', `The ${what} is empty.`, { what })
  if (name.length > nameLengthMax && [...name].length > nameLengthMax) {
    throw new PieceworkError(
      'PW_NAME_INVALID',
      `The ${what} has ${[...name].length} characters; at most ${nameLengthMax} are allowed.`,
      { what },
    )
  }
  for (let i = 0; i < name.length; i++) {
    const code = name.charCodeAt(i)
    const paired = code >= 0xd800 && code <= 0xdbff && (name.charCodeAt(i + 1) & 0xfc00) === 0xdc00
    if (paired) i++
    else if (code < 0x20 || (code >= 0x7f && code <= 0x9f) || (code >= 0xd800 && code <= 0xdfff)) {
      const kind = code >= 0xd800 ? 'a lone surrogate' : 'a control character'
      const point = `U+${code.toString(16).toUpperCase().padStart(4, '0')}`
      throw new PieceworkError('PW_NAME_INVALID', `The ${what} has ${kind} (${point}) at offset ${i}.`, {
        what,
        offset: i,
      })
    }
  }
  return name
}

/** Answers the number; throws PW_OPTION_INVALID unless it is a whole number from `min` to `max`. */
export function checkWhole(what: string, value: unknown, min: number, max: number): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value
  throw new PieceworkError(
    'PW_OPTION_INVALID',
    `${what} is ${shown(value)}; it must be a whole number from ${min} to ${max}.`,
    { what, value: shown(value) },
  )
}

/** The instant (ms) of ISO 8601 text with a zone; null for any other text. */
export function isoInstant(text: string): number | null {
  const at = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(at) ? null : at
}

/** A value as it can stand in an error: short, and never an exception of its own. */
export function shown(value: unknown): string {
  try {
    const text =
      typeof value === 'string' ? JSON.stringify(value) : typeof value === 'bigint' ? `${value}n` : String(value)
    return text.length > 80 ? `${text.slice(0, 77)}…` : text
  } catch {
    return typeof value
  }
}
