// How many tasks are claimed ahead, from what was measured.
import { describe, expect, it } from 'vitest'
import { aheadMax, Pace } from '../../dist/worker/pace.js'

const now = 1_000_000
const kind = () => ({ runMs: Number.NaN })
/** A task of this kind that has run for so long. */
const inWork = (of: { runMs: number }, forMs: number) => ({ kind: of, startedAt: now - forMs })

function paceOf(claimMs: number, runMs: number, blockMs = 0, characters = 100) {
  const pace = new Pace()
  const measured = kind()
  pace.claimed(claimMs)
  pace.ran(measured, runMs, blockMs, characters)
  return { pace, measured }
}

describe('claiming ahead', () => {
  it('is nothing before a claim and a run were measured', () => {
    const pace = new Pace()
    expect(pace.ahead([], 10, now)).toBe(0)
    pace.claimed(5)
    expect(pace.ahead([inWork(kind(), 1)], 10, now)).toBe(0)
    expect(pace.claimMs).toBe(5)
  })

  it.each([
    // ten slots, a claim of 4 ms: what ends while it is on its way
    [4, 1, 40],
    [4, 8, 5],
    [4, 39, 1],
    [4, 41, 0],
    [4, 30_000, 0],
    [100, 10, 100],
    [100, 0.0001, aheadMax],
  ])('a claim of %d ms and runs of %d ms: %i for ten slots', (claimMs, runMs, ahead) => {
    const { pace, measured } = paceOf(claimMs, runMs)
    expect(pace.ahead([], 10, now)).toBe(ahead)
    const running = Array.from({ length: 10 }, () => inWork(measured, 0))
    expect(pace.ahead(running, 0, now)).toBe(ahead)
  })

  it('counts each running task as its own type, and as no faster than it has already run', () => {
    const { pace, measured: fast } = paceOf(10, 1)
    const slow = { runMs: 30_000 }
    const running = (fasts: number, forMs: number) => [
      ...Array.from({ length: fasts }, () => inWork(fast, 0)),
      ...Array.from({ length: 10 - fasts }, () => inWork(slow, forMs)),
    ]
    expect(pace.ahead(running(2, 0), 0, now)).toBe(20)
    expect(pace.ahead(running(0, 0), 0, now)).toBe(0)
    expect(
      pace.ahead(
        Array.from({ length: 10 }, () => inWork(fast, 5000)),
        0,
        now,
      ),
    ).toBe(0)
    expect(pace.ahead([inWork(kind(), 0)], 0, now)).toBe(0)
  })

  it('a slow type in the mix takes the appetite away, and many fast ones give it back', () => {
    const { pace, measured: fast } = paceOf(10, 1)
    const slow = kind()
    expect(pace.ahead([], 10, now)).toBe(100)
    pace.ran(slow, 30_000, 0, 100)
    expect(pace.ahead([], 10, now)).toBe(0)
    for (let i = 0; i < 120; i++) pace.ran(fast, 1, 0, 100)
    expect(pace.ahead([], 10, now)).toBeGreaterThan(50)
  })

  it('handlers that block the loop run one by one, however many slots there are', () => {
    expect(paceOf(10, 2, 2).pace.ahead([], 10, now)).toBe(5)
  })

  it('large payloads are claimed ahead only as far as they fit into memory', () => {
    expect(paceOf(100, 0.1, 0, 1024 * 1024).pace.ahead([], 10, now)).toBe(8)
  })
})
