// How much of a limit is free: a ceiling on what runs, a rate, what adapts both, and the breaker, as arithmetic alone.

/** The settings of a limit; null is "no ceiling". */
export interface LimitSettings {
  /** Deliveries under lease at once, over the whole fleet. */
  concurrencyMax: number | null
  /** Deliveries handed out in a second. */
  perSecondMax: number | null
  /** Shrinks both while what is behind it is overloaded, and lets them grow back. */
  adaptive: boolean
}

/** When a queue's claims pause because its work fails: see library.md's `breaker`. */
export interface Breaker {
  failures: number
  distinctTasks: number
  windowMs: number
}

/** What a limit remembers between two claims. Instants are ms on the engine's clock. */
export interface LimitState {
  /** Up to here the rate is used up; in the past when there is something saved. */
  paidAt: number
  /** The part of the ceilings that was in force at `shrunkAt`; it has grown since. */
  share: number
  shrunkAt: number
  /** The usual run time of what is behind an adaptive limit; 0 before any is known. */
  usualMs: number
  /** Run times since `seenAt`: how many, and their sum. */
  seenAt: number
  seen: number
  seenMs: number
  /** Failures that the breaker looks at, the oldest first. */
  failed: [fingerprint: string, task: string, at: number][]
  /** The breaker is open since then; null: closed. */
  openAt: number | null
  /** No probe before this instant. */
  probeAt: number
}

/** What happened under a limit since its state was last written. */
export interface LimitNote {
  at: number
  /** Deliveries given back before anybody started them. */
  refunds: number
  overloads: number
  /** Acks, with the sum of their run times. */
  done: number
  doneMs: number
  failed: [fingerprint: string, task: string][]
}

export interface Room {
  /** How many more may be handed out now. */
  free: number
  by: 'limit' | 'breaker'
  /** When time alone makes room; null: a delivery has to end first. */
  againMs: number | null
}

/** The part of a second's ceiling that may be handed out at once after a pause; at least one. */
const burstShare = 0.1
/** A limit that was halved is whole again after half of this. */
const recoverMs = 60_000
/** Refusals that come together are one: what was handed out before the first of them fails with it. */
const shrinkEveryMs = 1000
const shareMin = 0.01
/** Run times are compared in groups of so many, or of so long. */
const seenMin = 10
const seenEveryMs = 1000
/** Run times this many times the usual count as overload; a few ms more or less do not. */
const slowFactor = 2
const slowMsMin = 20
/** How fast what was slow becomes the usual. */
const usualGrowth = 1.05
/** Fingerprints and failures a breaker keeps at most; settings ask for no more distinct tasks. */
export const breakerFailuresMax = 1000

export const freshLimit: LimitState = {
  ...{ paidAt: 0, share: 1, shrunkAt: 0, usualMs: 0, seenAt: 0, seen: 0, seenMs: 0 },
  ...{ failed: [], openAt: null, probeAt: 0 },
}

export const emptyNote = (at: number): LimitNote => ({ at, refunds: 0, overloads: 0, done: 0, doneMs: 0, failed: [] })

/** The part of an adaptive limit's ceilings in force now: it grows evenly with time. */
export function shareAt({ share, shrunkAt }: LimitState, now: number): number {
  return Math.min(1, share + Math.max(0, now - shrunkAt) / recoverMs)
}

/** How many deliveries may be under lease now; null: any number. */
export function concurrencyAt(settings: LimitSettings, state: LimitState, now: number): number | null {
  if (settings.concurrencyMax === null) return null
  if (!settings.adaptive) return settings.concurrencyMax
  return Math.max(1, Math.floor(settings.concurrencyMax * shareAt(state, now)))
}

/** What may be handed out under a limit with so many deliveries under lease. */
export function roomUnder(settings: LimitSettings, state: LimitState, leased: number, now: number): Room {
  const ceiling = concurrencyAt(settings, state, now)
  const slots = ceiling === null ? Number.POSITIVE_INFINITY : Math.max(0, ceiling - leased)
  const everyMs = intervalMs(settings, state, now)
  if (everyMs === null || slots === 0) return { free: slots, by: 'limit', againMs: null }
  const savedMs = Math.max(1, (1000 / everyMs) * burstShare) * everyMs
  const paidAt = Math.max(state.paidAt, now)
  // Sums of fractions: without the crumb, a whole delivery would be 0.9999 of one.
  const free = Math.floor((now + savedMs - paidAt) / everyMs + 1e-6)
  return {
    free: Math.max(0, Math.min(slots, free)),
    by: 'limit',
    againMs: Math.max(0, paidAt + everyMs - savedMs - now),
  }
}

/** What an open breaker lets through: one probe at a time. */
export function roomUnderBreaker(state: LimitState, leased: number, now: number): Room {
  if (state.openAt === null) return { free: Number.POSITIVE_INFINITY, by: 'breaker', againMs: null }
  if (leased > 0) return { free: 0, by: 'breaker', againMs: null }
  return { free: now >= state.probeAt ? 1 : 0, by: 'breaker', againMs: Math.max(0, state.probeAt - now) }
}

/** The tighter of two. */
export function tighter(a: Room, b: Room): Room {
  return b.free < a.free ? b : a
}

/** Charges so many deliveries that were handed out. */
export function charged(settings: LimitSettings, state: LimitState, count: number, now: number): LimitState {
  const everyMs = intervalMs(settings, state, now)
  return everyMs === null ? state : { ...state, paidAt: Math.max(state.paidAt, now) + count * everyMs }
}

/** The state after what a note tells; `opened` is true when that opened the breaker. */
export function noted(
  { settings, breaker }: { settings: LimitSettings; breaker: Breaker | null },
  before: LimitState,
  note: LimitNote,
): { state: LimitState; opened: boolean } {
  let state = before
  const everyMs = intervalMs(settings, state, note.at)
  if (note.refunds > 0 && everyMs !== null) state = { ...state, paidAt: state.paidAt - note.refunds * everyMs }
  if (settings.adaptive && note.done > 0) state = withRunTimes(state, note)
  if (settings.adaptive && note.overloads > 0) state = shrunk(state, note.at)
  return breaker === null ? { state, opened: false } : withFailures(breaker, state, note)
}

function intervalMs({ perSecondMax, adaptive }: LimitSettings, state: LimitState, now: number): number | null {
  return perSecondMax === null ? null : 1000 / (perSecondMax * (adaptive ? shareAt(state, now) : 1))
}

function shrunk(state: LimitState, now: number): LimitState {
  if (now - state.shrunkAt < shrinkEveryMs) return state
  return { ...state, share: Math.max(shareMin, shareAt(state, now) / 2), shrunkAt: now }
}

/** Run times that rise well above the usual are the first sign of overload, before anything is refused. */
function withRunTimes(before: LimitState, { at, done, doneMs }: LimitNote): LimitState {
  const seenAt = before.seen === 0 ? at : before.seenAt
  const state = { ...before, seenAt, seen: before.seen + done, seenMs: before.seenMs + doneMs }
  if (state.seen < seenMin || at - seenAt < seenEveryMs) return state
  const meanMs = state.seenMs / state.seen
  const { usualMs } = state
  const next = {
    ...state,
    seen: 0,
    seenMs: 0,
    usualMs: usualMs === 0 ? meanMs : Math.min(meanMs, usualMs * usualGrowth),
  }
  const slow = usualMs > 0 && meanMs > usualMs * slowFactor && meanMs - usualMs > slowMsMin
  return slow ? shrunk(next, at) : next
}

function withFailures(breaker: Breaker, before: LimitState, note: LimitNote): { state: LimitState; opened: boolean } {
  if (note.done > 0) {
    const calm = before.failed.length === 0 && before.openAt === null
    return { state: calm ? before : { ...before, failed: [], openAt: null, probeAt: 0 }, opened: false }
  }
  if (note.failed.length === 0) return { state: before, opened: false }
  const { windowMs } = breaker
  const failed = [
    ...before.failed.filter(([, , at]) => note.at - at < windowMs),
    ...note.failed.map(([print, task]): LimitState['failed'][number] => [print, task, note.at]),
  ].slice(-breakerFailuresMax)
  // A probe that failed: the next one comes when a window has passed.
  if (before.openAt !== null) return { state: { ...before, failed: [], probeAt: note.at + windowMs }, opened: false }
  if (!failsAlike(breaker, failed)) return { state: { ...before, failed }, opened: false }
  return { state: { ...before, failed: [], openAt: note.at, probeAt: note.at + windowMs }, opened: true }
}

function failsAlike({ failures, distinctTasks }: Breaker, failed: LimitState['failed']): boolean {
  const prints = new Set(failed.map(([print]) => print))
  return [...prints].some((print) => {
    const alike = failed.filter(([other]) => other === print)
    return alike.length >= failures && new Set(alike.map(([, task]) => task)).size >= distinctTasks
  })
}
