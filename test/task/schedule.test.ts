// The arithmetic of schedules: gaps and folds of zones by a slow reference, intervals, and what missed slots become.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Begun, checkTiming, dueAtInstant, nextSlots, slotAfter, slotsUpTo } from '../../dist/task/schedule.js'

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour
const at = (iso: string) => Date.parse(iso)
const iso = (slots: readonly number[]) => slots.map((slot) => new Date(slot).toISOString().slice(0, 16))
const begun = (given: Parameters<typeof checkTiming>[0], since = 0): Begun => ({ ...checkTiming(given), since })
const berlin = (cron: string) => begun({ cron, tz: 'Europe/Berlin' })

/** One field of a cron expression as the numbers that it means. */
function numbersOf(field: string, low: number, high: number): Set<number> {
  const all = new Set<number>()
  for (const part of field.split(',')) {
    const [range = '', step = '1'] = part.split('/')
    const [first, last = first] = range === '*' ? [low, high] : range.split('-').map(Number)
    for (let n = first as number; n <= (last as number); n += Number(step)) all.add(n)
  }
  return all
}

/**
 * What the design says, minute by minute over the clock on the wall of that zone: an expression that names its times
 * means each of them once a day, at the end of the gap it fell into or at the first pass of a fold.
 */
function reference(cron: string, tz: string, from: number, until: number): number[] {
  const [minutes, hours, days, months, weekdays] = cron.split(' ') as [string, string, string, string, string]
  const format = new Intl.DateTimeFormat('en-GB', {
    ...{ timeZone: tz, hourCycle: 'h23', year: 'numeric', month: 'numeric', day: 'numeric' },
    ...{ hour: 'numeric', minute: 'numeric' },
  } as const)
  /** The clock on the wall, as if it were UTC. */
  const wallAt = (instant: number) => {
    const parts = Object.fromEntries(format.formatToParts(instant).map(({ type, value }) => [type, Number(value)]))
    return Date.UTC(parts.year as number, (parts.month as number) - 1, parts.day, parts.hour, parts.minute)
  }
  const fits = (wall: number) => {
    const date = new Date(wall)
    const ofMonth = numbersOf(days, 1, 31).has(date.getUTCDate())
    const ofWeek = numbersOf(weekdays, 0, 7).has(date.getUTCDay())
    const ofDay = days === '*' ? ofWeek : weekdays === '*' ? ofMonth : ofMonth || ofWeek
    const ofTime =
      numbersOf(hours, 0, 23).has(date.getUTCHours()) && numbersOf(minutes, 0, 59).has(date.getUTCMinutes())
    return ofTime && ofDay && numbersOf(months, 1, 12).has(date.getUTCMonth() + 1)
  }
  const named = !/[*/]/.test(minutes + hours)
  const found: number[] = []
  let before = wallAt(from - 2 * day - minute)
  let latest = before
  for (let instant = from - 2 * day; instant <= until; instant += minute) {
    const wall = wallAt(instant)
    let slot = false
    if (!named) slot = fits(wall)
    else if (wall > latest)
      for (let each = Math.max(before, latest) + minute; each <= wall; each += minute) slot ||= fits(each)
    latest = Math.max(latest, wall)
    before = wall
    if (slot && instant > from) found.push(instant)
  }
  return found
}

describe('a cron expression', () => {
  it('that names its times means each day once: at the end of a gap, at the first pass of a fold', () => {
    expect(iso(nextSlots(berlin('30 2 * * *'), at('2026-03-27T12:00Z'), 3))).toEqual([
      ...['2026-03-28T01:30', '2026-03-29T01:00', '2026-03-30T00:30'],
    ])
    expect(iso(nextSlots(berlin('0,30 2 * * *'), at('2026-03-28T12:00Z'), 3))).toEqual([
      ...['2026-03-29T01:00', '2026-03-30T00:00', '2026-03-30T00:30'],
    ])
    expect(iso(nextSlots(berlin('30 2 * * *'), at('2026-10-24T12:00Z'), 2))).toEqual([
      ...['2026-10-25T00:30', '2026-10-26T01:30'],
    ])
  })

  it('that goes round with the clock has no slots in a gap, and those of both passes in a fold', () => {
    expect(iso(nextSlots(berlin('*/30 * * * *'), at('2026-03-29T00:10Z'), 3))).toEqual([
      ...['2026-03-29T00:30', '2026-03-29T01:00', '2026-03-29T01:30'],
    ])
    expect(iso(nextSlots(berlin('*/30 2 * * *'), at('2026-10-24T12:00Z'), 5))).toEqual([
      ...['2026-10-25T00:00', '2026-10-25T00:30', '2026-10-25T01:00', '2026-10-25T01:30', '2026-10-26T01:00'],
    ])
  })

  it('agrees with a reference that goes minute by minute, in zones with gaps and folds of any kind', () => {
    const pick = <T>(...of: T[]) => fc.constantFrom(...of)
    /** Around a change of the clocks. */
    const changes = pick(
      ...(['Europe/Berlin 2026-03-29', 'Europe/Berlin 2026-10-25', 'America/New_York 2027-03-14'] as const),
      ...(['America/New_York 2027-11-07', 'Australia/Lord_Howe 2026-10-03', 'Australia/Lord_Howe 2026-04-04'] as const),
      ...(['America/Havana 2026-03-08', 'Asia/Kathmandu 2026-06-01', 'Antarctica/Troll 2026-03-29'] as const),
    )
    const cron = fc
      .tuple(
        pick('0', '30', '*/20', '*', '5,35'),
        pick('0', '1', '2', '3', '*', '*/3', '0-4', '1,2,3'),
        pick('*', '1', '25-31'),
      )
      .chain(([minutes, hours, days]) =>
        fc.tuple(pick('*', '3,10', '4'), pick('*', '0', '1-5')).map(([months, weekdays]) => {
          return [minutes, hours, days, months, weekdays].join(' ')
        }),
      )
    let folds = 0
    fc.assert(
      fc.property(changes, cron, fc.integer({ min: -40, max: 20 }), (change, expression, hours) => {
        const [tz, date] = change.split(' ') as [string, string]
        const from = at(`${date}T00:00Z`) + hours * hour
        const expected = reference(expression, tz, from, from + 2 * day)
        const schedule = begun({ cron: expression, tz })
        expect(slotsUpTo(schedule, from, from + 2 * day, 5000)).toEqual(expected)
        // Backwards it meets the same ones.
        expect(slotsUpTo(schedule, from, from + 2 * day, 2)).toEqual(expected.slice(-2))
        expect(slotsUpTo(schedule, from, from + 2 * day, 1)).toEqual(expected.slice(-1))
        folds += expected.length
      }),
      { numRuns: 60, seed: 7 },
    )
    expect(folds).toBeGreaterThan(400)
  }, 120_000)

  it('is refused when no date ever fits it, and found when one does in decades', () => {
    for (const cron of ['0 0 30 2 *', '0 0 0 31 2,4,6,9,11 *', '0 0 30 2 +1']) {
      expect(() => checkTiming({ cron })).toThrow(expect.objectContaining({ code: 'PW_SCHEDULE_NEVER' }))
    }
    expect(iso(nextSlots(begun({ cron: '0 0 29 2 +1' }), at('2077-01-01T00:00Z'), 1))).toEqual(['2112-02-29T00:00'])
  })
})

describe('an interval', () => {
  it('keeps its beat from where it began, or from its first slot', () => {
    const plain = begun({ everyMs: 1000 }, 500)
    expect([slotAfter(plain, 0), slotAfter(plain, 1500), slotAfter(plain, 1501)]).toEqual([1500, 2500, 2500])
    const anchored = begun({ everyMs: 1000, dueAt: 9_250 }, 500)
    expect(nextSlots(anchored, 0, 2)).toEqual([9250, 10_250])
    expect(slotAfter(begun({ everyMs: 1000, dueAt: 250 }, 7000), 0)).toBe(7250)
    expect(slotsUpTo(plain, 0, 10_000, 3)).toEqual([7500, 8500, 9500])
    expect(slotsUpTo(plain, 8500, 10_000, 3)).toEqual([9500])
  })
})

describe('what is due', () => {
  const every = (everyMs: number, missed: string) => begun({ everyMs, missed })

  it('under `skip` is a slot found at most a tenth of an interval late, a second at least, a minute at most', () => {
    for (const [everyMs, graceMs] of [
      [minute, 6000],
      [2000, 1000],
      [day, minute],
    ] as const) {
      const schedule = every(everyMs, 'skip')
      expect(dueAtInstant(schedule, null, everyMs + graceMs)).toEqual({
        ...{ slots: [everyMs], lastAt: everyMs, nextAt: 2 * everyMs },
      })
      expect(dueAtInstant(schedule, null, everyMs + graceMs + 1)).toMatchObject({ slots: [], lastAt: everyMs })
    }
    const once = begun({ dueAt: hour, missed: 'skip' })
    expect(dueAtInstant(once, null, hour + minute)).toEqual({ slots: [hour], lastAt: hour, nextAt: null })
    expect(dueAtInstant(once, null, hour + minute + 1)).toEqual({ slots: [], lastAt: hour, nextAt: null })
  })

  it('is each slot once and in order, however the instants jump at which somebody looks', () => {
    const steps = fc.array(fc.integer({ min: -3 * minute, max: 4 * minute }), { minLength: 1, maxLength: 30 })
    const kinds = fc.constantFrom(every(7000, 'all'), begun({ cron: '*/7 * * * * *', missed: 'all' }, 0))
    fc.assert(
      fc.property(kinds, steps, (schedule, jumps) => {
        let now = 10 * minute
        let highest = now
        let lastAt: number | null = now
        const given: number[] = []
        for (const jump of jumps) {
          now += jump
          highest = Math.max(highest, now)
          const due = dueAtInstant(schedule, lastAt, now)
          given.push(...due.slots)
          expect(due.nextAt).toBeGreaterThan(Math.max(lastAt ?? 0, due.lastAt ?? 0))
          lastAt = due.lastAt
        }
        expect(given).toEqual(slotsUpTo(schedule, 10 * minute, highest, 5000))
      }),
      { numRuns: 100, seed: 11 },
    )
  })
})
