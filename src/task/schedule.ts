// When a schedule fires: its slots as arithmetic over wall-clock milliseconds, and the refusal of what never fires.
import { Cron } from 'croner'
import { PieceworkError } from '../ground/errors.js'
import { checkWhole, shown } from './limits.js'

/** What becomes of slots that nobody was there for: the newest one fires late, none does, or all do. */
export const missedChoices = ['latest', 'skip', 'all'] as const
export type Missed = (typeof missedChoices)[number]

/** When it fires, checked: exactly one of cron, everyMs and dueAt says so; dueAt beside everyMs is the first slot. */
export interface Timing {
  cron: string | null
  /** An IANA zone; null unless there is a cron expression. */
  tz: string | null
  everyMs: number | null
  dueAt: number | null
  missed: Missed
}

/** A timing and the instant from which on it holds: no slot lies before, and an interval without dueAt starts there. */
export interface Begun extends Timing {
  since: number
}

/** The task that each slot puts into the schedule's queue: an enqueue's, but for what says when. */
export interface ScheduleTask {
  /** JSON text. */
  payload: string
  type?: string | undefined
  key?: string | undefined
  priority?: number | undefined
  deadlineMs?: number | undefined
  dedupKey?: string | undefined
  /** JSON object text; the schedule's name and slot are added. */
  headers?: string | undefined
}

const timingFields = ['cron', 'tz', 'everyMs', 'dueAt', 'missed'] as const
type Given = Readonly<Partial<Record<(typeof timingFields)[number], unknown>>>

/** Shorter intervals are a loop in a handler. */
const everyMsMin = 100
const everyMsMax = 3650 * 86_400_000
/** Year 2200, as for `dueAt` of a task. */
const instantMax = 7_258_118_400_000
/** `all` gives back the newest so many: more would be work for its own sake, and one commit holds them. */
const missedSlotsMax = 1000

/** Answers the timing; throws PW_SCHEDULE_INVALID, PW_ZONE_UNKNOWN, PW_SCHEDULE_NEVER or PW_OPTION_INVALID. */
export function checkTiming({ cron, tz, everyMs, dueAt, missed = 'latest' }: Given): Timing {
  const says = [cron, everyMs, dueAt].filter((value) => value !== undefined && value !== null).length
  const anchored = cron == null && everyMs != null && dueAt != null
  if (says !== 1 && !anchored) {
    throw invalid('A schedule takes one of cron, everyMs and dueAt; dueAt beside everyMs is its first slot.')
  }
  if (cron == null && tz != null) throw invalid(`tz is ${shown(tz)}; only a cron expression has a time zone.`)
  if (!missedChoices.includes(missed as Missed)) {
    throw invalid(`missed is ${shown(missed)}; it must be one of ${missedChoices.join(', ')}.`)
  }
  const timing: Timing = {
    cron: cron == null ? null : checkCron(cron),
    tz: cron == null ? null : checkZone(tz ?? 'UTC'),
    everyMs: everyMs == null ? null : checkWhole('everyMs', everyMs, everyMsMin, everyMsMax),
    dueAt: dueAt == null ? null : checkWhole('dueAt', dueAt, 0, instantMax),
    missed: missed as Missed,
  }
  if (timing.cron !== null) read(timing.cron, timing.tz as string)
  return timing
}

/** True when both fire at the same instants. */
export const sameTiming = (a: Timing, b: Timing): boolean =>
  a.cron === b.cron && a.tz === b.tz && a.everyMs === b.everyMs && a.dueAt === b.dueAt

/** The first slot after this instant; null when none is left. */
export function slotAfter(begun: Begun, at: number): number | null {
  const { cron, tz, everyMs, dueAt, since } = begun
  if (cron !== null) {
    return new Cron(cron, cronOptions(tz as string)).nextRun(new Date(Math.max(at, since)))?.getTime() ?? null
  }
  if (everyMs === null) return dueAt !== null && dueAt > at ? dueAt : null
  const anchor = dueAt ?? since
  const steps = Math.floor((Math.max(at, since) - anchor) / everyMs) + 1
  return anchor + Math.max(steps, dueAt === null ? 1 : 0) * everyMs
}

/** The newest `max` slots after `after`, up to and with `until`; they rise. */
export function slotsUpTo(begun: Begun, after: number, until: number, max: number): number[] {
  const { cron, tz, everyMs, since } = begun
  const slots: number[] = []
  if (cron !== null && max > 1) {
    for (let at = slotAfter(begun, after); at !== null && at <= until && slots.length <= max; ) {
      slots.push(at)
      at = slotAfter(begun, at)
    }
    if (slots.length <= max) return slots
  }
  if (cron !== null) {
    // It goes back from, and not with, the instant it is given.
    const back = new Cron(cron, cronOptions(tz as string)).previousRuns(max, new Date(until + 1))
    const floor = Math.max(after, since)
    return back
      .map((run) => run.getTime())
      .filter((at) => at > floor)
      .reverse()
  }
  // Of an interval the first one that is wanted can be reckoned.
  const anchor = begun.dueAt ?? since
  const from =
    everyMs === null ? after : Math.max(after, anchor + (Math.floor((until - anchor) / everyMs) - max) * everyMs)
  for (let at = slotAfter(begun, from); at !== null && at <= until; at = slotAfter(begun, at)) slots.push(at)
  return slots
}

/** What to do at an instant: the slots to enqueue, and how the schedule stands afterwards. */
export interface Due {
  slots: number[]
  lastAt: number | null
  nextAt: number | null
}

/** What is due at `now`; `lastAt` is the last slot that was enqueued or skipped. Neither ever goes back. */
export function dueAtInstant(begun: Begun, lastAt: number | null, now: number): Due {
  const after = lastAt ?? Number.NEGATIVE_INFINITY
  const found = slotsUpTo(begun, after, now, begun.missed === 'all' ? missedSlotsMax : 1)
  const newest = found.at(-1)
  if (newest === undefined) return { slots: [], lastAt, nextAt: slotAfter(begun, after) }
  const nextAt = slotAfter(begun, newest)
  const late = begun.missed === 'skip' && now - newest > graceMs(newest, nextAt)
  return { slots: late ? [] : found, lastAt: newest, nextAt }
}

/**
 * How late a slot may be found and still not count as missed: a tenth of the time to the next one, at least the second
 * in which a sweep finds it anyway, at most a minute.
 */
const graceMs = (slot: number, next: number | null) =>
  next === null ? 60_000 : Math.min(60_000, Math.max(1000, (next - slot) / 10))

/** The first `count` slots after `at`; fewer when there are no more. */
export function nextSlots(begun: Begun, at: number, count: number): number[] {
  const slots: number[] = []
  for (let slot = slotAfter(begun, at); slot !== null && slots.length < count; slot = slotAfter(begun, slot)) {
    slots.push(slot)
  }
  return slots
}

/**
 * An expression that names its times (no star and no step in seconds, minutes and hours) means each day once: in a gap
 * at the gap's end, in a fold at the first pass. Any other one goes by the clock on the wall: it has no slots in a gap
 * and those of both passes in a fold.
 */
const cronOptions = (tz: string) => ({ timezone: tz, mode: '5-or-6-parts', fixedTimeRule: 'no-wildcard' }) as const

function checkCron(cron: unknown): string {
  if (typeof cron !== 'string') throw invalid(`cron is ${shown(cron)}; it must be text.`)
  const text = cron.trim()
  // A date would be taken for a single run; it has a word of its own here.
  if (!text.startsWith('@') && ![5, 6].includes(text.split(/\s+/).length)) {
    throw invalid(`cron is ${shown(cron)}; it must have 5 fields, or 6 with seconds first.`)
  }
  return text
}

function checkZone(tz: unknown): string {
  try {
    if (typeof tz !== 'string' || !/^[A-Za-z]/.test(tz)) throw new RangeError('not a name')
    new Intl.DateTimeFormat('en', { timeZone: tz })
    return tz
  } catch (cause) {
    const message = `tz is ${shown(tz)}, which is no time zone of the IANA list.`
    throw new PieceworkError('PW_ZONE_UNKNOWN', message, { tz: shown(tz) }, { cause })
  }
}

/** Throws PW_SCHEDULE_INVALID for what croner cannot read, PW_SCHEDULE_NEVER for what no date fits. */
function read(cron: string, tz: string): void {
  let next: Date | null
  try {
    next = new Cron(cron, cronOptions(tz)).nextRun(new Date(0))
  } catch (cause) {
    const why = cause instanceof Error ? cause.message.replace(/^CronPattern: /, '') : String(cause)
    throw new PieceworkError('PW_SCHEDULE_INVALID', `cron is ${shown(cron)}: ${why}`, { cron }, { cause })
  }
  if (next === null) throw never(`No date fits the cron expression ${shown(cron)}.`, { cron })
}

export const never = (message: string, details: Record<string, unknown>) =>
  new PieceworkError('PW_SCHEDULE_NEVER', message, details)

const invalid = (message: string) => new PieceworkError('PW_SCHEDULE_INVALID', message)
