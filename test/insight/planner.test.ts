// The sizing arithmetic: the worked examples of the lessons, what binds, and when more workers stop helping.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type PlanAsk, plan } from '../../dist/insight/planner.js'

const minute = 60_000
const hour = 60 * minute

describe('a plan', () => {
  it.each([
    ['1 000 000 of 1 s in 30 min', { items: 1_000_000, eachMs: 1000, deadlineMs: 30 * minute }, 556],
    ['2 000 000 of 2 s in 1 h', { items: 2_000_000, eachMs: 2000, deadlineMs: hour }, 1112],
    ['800 000 of 3 s in 20 min', { items: 800_000, eachMs: 3000, deadlineMs: 20 * minute }, 2000],
  ])('sizes %s', (_, ask, workers) => {
    const found = plan(ask)
    expect(found).toMatchObject({ workers, binds: 'workers', meetsDeadline: true, deliveries: ask.items })
    expect(plan({ ...ask, deadlineMs: undefined, workers: workers - 1 }).durationMs).toBeGreaterThan(ask.deadlineMs)
  })

  it.each([
    [1, 1_000_000],
    [10, 100_000],
    [200, 5000],
  ])('says how long %d workers take for 1 000 000 of 1 s', (workers, seconds) => {
    const found = plan({ items: 1_000_000, eachMs: 1000, workers })
    expect(found).toMatchObject({ workers, durationMs: seconds * 1000, binds: 'workers', meetsDeadline: null })
    expect(found.itemsPerSecond).toBeCloseTo(workers)
  })

  it('counts whole waves: ten tasks of a minute keep seven workers for two', () => {
    expect(plan({ items: 10, eachMs: minute, workers: 7 })).toMatchObject({ durationMs: 2 * minute })
    expect(plan({ items: 10, eachMs: minute, workers: 70 })).toMatchObject({ durationMs: minute, workersUsefulMax: 10 })
  })

  it('makes every failed delivery again', () => {
    const found = plan({ items: 1000, eachMs: 1000, workers: 10, failureRate: 0.2 })
    expect(found).toMatchObject({ deliveries: 1250, durationMs: 125_000 })
  })

  it('leaves the longest tasks time to end', () => {
    const ask = { items: 1000, eachMs: 1000, eachP99Ms: 9000, deadlineMs: 58_000 }
    expect(plan(ask)).toMatchObject({ workers: 20, durationMs: 57_600, meetsDeadline: true })
    expect(plan({ ...ask, deadlineMs: 8000 })).toMatchObject({ meetsDeadline: false, workersUsefulMax: 992 })
  })

  it.each([
    ['producers', { enqueuePerSecond: 100 }],
    ['broker', { dispatchPerSecond: 100 }],
    ['downstream', { downstreamPerSecond: 100 }],
  ] as const)('says that %s bind, and how many workers they can keep busy', (binds, ceiling) => {
    const ask = { items: 60_000, eachMs: 500, ...ceiling }
    const missed = plan({ ...ask, deadlineMs: 5 * minute })
    expect(missed).toMatchObject({
      binds,
      workers: 50,
      workersUsefulMax: 50,
      durationMs: 600_000,
      meetsDeadline: false,
    })
    expect(plan({ ...ask, workers: 200 })).toMatchObject({ binds, workers: 200, durationMs: 600_000 })
    expect(plan({ ...ask, workers: 25 })).toMatchObject({ binds: 'workers', durationMs: 1_200_000 })
  })

  it('counts repeats against the store and what is downstream, and not against the producers', () => {
    const ask = { items: 1000, eachMs: 1, workers: 1000, failureRate: 0.5 }
    expect(plan({ ...ask, enqueuePerSecond: 100 }).durationMs).toBe(10_000)
    expect(plan({ ...ask, downstreamPerSecond: 100 }).durationMs).toBe(20_000)
  })

  it('never takes longer with one worker more, and names the fewest that meet a deadline', () => {
    const ask = fc.record({
      items: fc.integer({ min: 1, max: 5000 }),
      eachMs: fc.integer({ min: 1, max: 5000 }),
      failureRate: fc.constantFrom(0, 0.1, 0.9),
      deadlineMs: fc.integer({ min: 1, max: 10_000_000 }),
      downstreamPerSecond: fc.option(fc.integer({ min: 1, max: 1000 }), { nil: undefined }),
    })
    fc.assert(
      fc.property(ask, fc.integer({ min: 0, max: 20_000 }), (given, more) => {
        const whole: PlanAsk = { ...given, eachP99Ms: given.eachMs + more }
        const found = plan(whole)
        const withWorkers = (workers: number) => plan({ ...whole, deadlineMs: undefined, workers }).durationMs
        expect(found.durationMs).toBe(withWorkers(found.workers))
        expect(withWorkers(found.workers + 1)).toBeLessThanOrEqual(found.durationMs)
        expect(withWorkers(found.workersUsefulMax + 5)).toBe(withWorkers(found.workersUsefulMax))
        if (found.meetsDeadline && found.workers > 1) {
          expect(withWorkers(found.workers - 1)).toBeGreaterThan(given.deadlineMs)
        }
        if (!found.meetsDeadline) expect(withWorkers(found.workersUsefulMax)).toBeGreaterThan(given.deadlineMs)
      }),
    )
  })

  it.each([
    [{ items: 0 }, 'items is 0'],
    [{ eachMs: 0 }, 'eachMs is 0'],
    [{ eachP99Ms: 1 }, 'at least eachMs'],
    [{ failureRate: 1 }, 'it never ends'],
    [{ failureRate: Number.NaN }, 'failureRate is NaN'],
    [{ downstreamPerSecond: -1 }, 'downstreamPerSecond is -1'],
    [{ deadlineMs: undefined }, 'deadlineMs or workers'],
    [{ workers: 4 }, 'not both'],
  ])('refuses %j', (wrong, text) => {
    const ask = { items: 10, eachMs: 1000, deadlineMs: minute, ...wrong } as PlanAsk
    expect(() => plan(ask)).toThrow(
      expect.objectContaining({ code: 'PW_OPTION_INVALID', message: expect.stringContaining(text) }),
    )
  })
})
