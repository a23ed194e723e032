// Limits as both SQL engines keep them: what a queue draws on, what its claims may take, and what operators set.
import type { Patch } from '../engine/contract.js'
import { PieceworkError } from '../ground/errors.js'
import {
  type Breaker,
  concurrencyAt,
  freshLimit,
  type LimitNote,
  type LimitSettings,
  type LimitState,
  type Room,
  roomUnder,
  roomUnderBreaker,
  shareAt,
  tighter,
} from '../task/limiter.js'
import { checkLimit, type Policy } from '../task/limits.js'
import type { LimitRecord } from '../task/records.js'

export interface LimitRow {
  id: number
  /** Null: the own limit of a queue. */
  name: string | null
  queue: number | null
  settings: string
}

/** A limit as the claims of one queue meet it. */
export interface Limit {
  id: number
  /** The queue (id) whose own it is; null: a named one. */
  queue: number | null
  settings: LimitSettings
  breaker: Breaker | null
}

const noCeilings: LimitSettings = { concurrencyMax: null, perSecondMax: null, adaptive: false }

/** What programs declare, and what operators set over it. */
interface LimitLayers {
  code: Partial<LimitSettings> | null
  operator: Partial<LimitSettings> | null
}

const layersOf = (text: string): LimitLayers => ({ code: null, operator: null, ...JSON.parse(text) })

export function limitSettings(row: Pick<LimitRow, 'settings'>): LimitSettings {
  const { code, operator } = layersOf(row.settings)
  return { ...noCeilings, ...code, ...operator }
}

/** True when a queue with this policy needs a limit of its own to remember things in. */
export const needsOwn = ({ concurrencyMax, perSecondMax, breaker }: Policy): boolean =>
  concurrencyMax !== null || perSecondMax !== null || breaker !== null

/** What a queue draws on: its own limit and the named ones, in the order in which all take them. */
export function drawn(queue: number, policy: Policy, rows: readonly LimitRow[]): Limit[] {
  const { concurrencyMax, perSecondMax, breaker, uses } = policy
  const own: LimitSettings = { concurrencyMax, perSecondMax, adaptive: false }
  const limits = rows.flatMap((row): Limit[] => {
    if (row.queue === queue) return needsOwn(policy) ? [{ id: row.id, queue, settings: own, breaker }] : []
    if (row.name === null || !uses.includes(row.name)) return []
    return [{ id: row.id, queue: null, settings: limitSettings(row), breaker: null }]
  })
  return limits.sort((a, b) => a.id - b.id)
}

/** What the queue's claims may take now under all its limits, each with its state and its deliveries under lease. */
export function roomUnderAll(
  limits: readonly Limit[],
  stateOf: (limit: number) => LimitState,
  leasedOf: (limit: number) => number,
  now: number,
): Room {
  let room: Room = { free: Number.POSITIVE_INFINITY, by: 'limit', againMs: null }
  for (const { id, settings, breaker } of limits) {
    const state = stateOf(id)
    const leased = leasedOf(id)
    room = tighter(room, roomUnder(settings, state, leased, now))
    if (breaker !== null) room = tighter(room, roomUnderBreaker(state, leased, now))
  }
  return room
}

export interface Allowance extends Room {
  /** None of it may be claimed ahead of need. */
  limited: boolean
}

/** Which limits change by what happens under them: the others need not hear of it. */
export const heeds: Record<'refunds' | 'overloads' | 'done' | 'failed', (limit: Limit) => boolean> = {
  refunds: ({ settings }) => settings.perSecondMax !== null,
  overloads: ({ settings }) => settings.adaptive,
  done: ({ settings, breaker }) => settings.adaptive || breaker !== null,
  failed: ({ breaker }) => breaker !== null,
}

/** What the audit says of a breaker that opened. */
export const openedBy = ({ failed }: LimitNote): Patch => ({ fingerprint: failed.at(-1)?.[0] })

/** True when nothing of this queue may be claimed ahead of need: it would hold what others could use. */
export const holdsBack = (limits: readonly Limit[], stateOf: (limit: number) => LimitState): boolean =>
  limits.some(({ id, settings, breaker }) => {
    const ceilings = settings.concurrencyMax !== null || settings.perSecondMax !== null
    return ceilings || (breaker !== null && stateOf(id).openAt !== null)
  })

export const limitState = (text: string | undefined): LimitState => ({
  ...freshLimit,
  ...(JSON.parse(text ?? '{}') as Partial<LimitState>),
})

/** The layers of a named limit as a patch leaves them: `code` is replaced, `operator` merged in or, null, dropped. */
export function patchedLimit(row: LimitRow | undefined, { code, operator }: Patch): string {
  const layers = layersOf(row?.settings ?? '{}')
  if (code !== undefined) layers.code = checkLimit(code as Patch)
  if (operator === null) layers.operator = null
  else if (operator !== undefined) layers.operator = { ...layers.operator, ...checkLimit(operator as Patch) }
  return JSON.stringify(layers)
}

/** What the audit says of it. */
export const changeOf = (row: LimitRow | undefined, text: string): Patch => ({
  from: row ? limitSettings(row) : null,
  to: limitSettings({ settings: text }),
})

/** Throws PW_LIMIT_UNKNOWN for a name that no limit has. */
export function refuseUnknownLimits(uses: readonly string[], limits: readonly LimitRow[]): void {
  const names = limits.flatMap(({ name }) => (name === null ? [] : [name]))
  const unknown = uses.find((name) => !names.includes(name))
  if (unknown === undefined) return
  const known = names.length === 0 ? 'There is none yet.' : `There are: ${names.join(', ')}.`
  throw new PieceworkError('PW_LIMIT_UNKNOWN', `There is no limit "${unknown}". ${known}`, { name: unknown })
}

/** The named limit that is to be removed; throws PW_LIMIT_UNKNOWN, or PW_LIMIT_IN_USE. */
export function limitToRemove(row: LimitRow | undefined, name: string, queues: readonly string[]): LimitRow {
  if (row === undefined) throw new PieceworkError('PW_LIMIT_UNKNOWN', `There is no limit "${name}".`, { name })
  if (queues.length === 0) return row
  throw new PieceworkError('PW_LIMIT_IN_USE', `"${name}" is used by ${queues.join(', ')}.`, { name, queues })
}

export function limitRecord(
  name: string,
  settings: LimitSettings,
  state: LimitState,
  { leased, queues, now }: { leased: number; queues: string[]; now: number },
): LimitRecord {
  const share = settings.adaptive ? shareAt(state, now) : 1
  return { name, ...settings, leased, queues, share, concurrencyNow: concurrencyAt(settings, state, now) }
}
