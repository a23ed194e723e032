// The clock and the chance that tests put in: they move only when told, and in order.
import { manualClock, seededRandom } from 'piecework/testing'
import { describe, expect, it } from 'vitest'

describe('manualClock', () => {
  it('stands still until it is moved, and moves all three clocks', async () => {
    const clock = manualClock(5_000_000)
    const before = [clock.monotonicMs(), clock.uptimeMs()] as const
    await clock.settle()
    expect(clock.wallMs()).toBe(5_000_000)
    await clock.advance(1500)
    expect(clock.wallMs()).toBe(5_001_500)
    expect([clock.monotonicMs(), clock.uptimeMs()]).toEqual([before[0] + 1500, before[1] + 1500])
  })

  it('fires timers in the order they fall due, each at its instant, also those set on the way', async () => {
    const clock = manualClock(0)
    const seen: string[] = []
    const note = (name: string) => () => seen.push(`${name} at ${clock.wallMs()}`)
    clock.after(300, note('c'))
    clock.after(100, note('a'))
    clock.after(100, note('b'))
    clock.after(100, () => clock.after(50, note('late')))
    const cancelled = clock.after(120, note('never'))
    cancelled.cancel()
    clock.after(301, note('not yet'))
    await clock.advance(300)
    expect(seen).toEqual(['a at 100', 'b at 100', 'late at 150', 'c at 300'])
    expect(clock.pending).toBe(1)
  })

  it('lets promises and soon-callbacks settle between two timers', async () => {
    const clock = manualClock(0)
    const seen: string[] = []
    clock.after(1, () => {
      seen.push('first')
      clock.soon(() => void Promise.resolve().then(() => clock.soon(() => seen.push('what follows from it'))))
    })
    clock.after(2, () => seen.push('second'))
    await clock.advance(2)
    expect(seen).toEqual(['first', 'what follows from it', 'second'])
  })

  it('jumps, sleeps and reboots as a machine does', async () => {
    const clock = manualClock(1_000_000)
    const monotonic = clock.monotonicMs()
    let fired = 0
    clock.after(10, () => fired++)
    clock.jumpWall(-5000)
    expect([clock.wallMs(), clock.monotonicMs()]).toEqual([995_000, monotonic])
    clock.sleep(60_000)
    expect([clock.wallMs(), clock.monotonicMs(), clock.uptimeMs()]).toEqual([1_055_000, monotonic, monotonic + 60_000])
    const boot = clock.bootId
    clock.reboot()
    expect(clock.bootId).not.toBe(boot)
    expect([clock.monotonicMs(), clock.uptimeMs()]).toEqual([0, 0])
    await clock.advance(1000)
    expect(fired).toBe(0)
  })
})

describe('seededRandom', () => {
  it('repeats for a seed, differs between seeds, and is spread evenly over [0, 1)', () => {
    const draw = (seed: number) => Array.from({ length: 10_000 }, seededRandom(seed))
    expect(draw(7)).toEqual(draw(7))
    expect(draw(7)).not.toEqual(draw(8))
    const numbers = draw(7)
    expect(numbers.every((n) => n >= 0 && n < 1)).toBe(true)
    for (let tenth = 0; tenth < 10; tenth++) {
      const share = numbers.filter((n) => Math.floor(n * 10) === tenth).length
      expect(share).toBeGreaterThan(850)
      expect(share).toBeLessThan(1150)
    }
  })
})
