// A clock that stands still until a test moves it: timers fire in order, and promises settle between the steps.
import { assert } from '../ground/assert.js'
import { type Clock, systemClock } from '../ground/clock.js'

/** A Clock for tests. All durations are milliseconds. */
export interface ManualClock extends Clock {
  /** Lets `ms` pass on every clock; timers that fall due fire in order, and what they start settles in between. */
  advance(ms: number): Promise<void>
  /** Sets the wall clock ahead (or back, below 0); nothing else moves. */
  jumpWall(ms: number): void
  /** The machine sleeps: wall clock and uptime go on, the monotonic clock and the timers stand still. */
  sleep(ms: number): void
  /** The machine starts again: another boot id, monotonic clock and uptime from 0; its timers never fire. */
  reboot(): void
  /** Resolves when nothing is left of what `soon` was given and of the promises that follow from it. */
  settle(): Promise<void>
  /** Timers that have not fired. */
  readonly pending: number
}

interface Planned {
  atMs: number
  fn: () => void
}

/** Turns of the event loop without work after which everything that a timer started is taken to be settled. */
const quietTurns = 2

/** A manual clock; `wallMs` is what its wall clock shows at first (default: a moment in 2033). */
export function manualClock(wallMs = 2_000_000_000_000): ManualClock {
  let monotonic = 10_000
  let wall = wallMs
  let uptime = 10_000
  let boots = 1
  let timers: Planned[] = []
  let soon = 0

  const pass = (ms: number) => {
    monotonic += ms
    wall += ms
    uptime += ms
  }
  const settle = async () => {
    for (let quiet = 0; quiet < quietTurns; quiet++) {
      if (soon > 0) quiet = 0
      await new Promise<void>((resolve) => systemClock.soon(resolve))
    }
  }
  const first = () => timers.reduce<Planned | null>((a, b) => (a === null || b.atMs < a.atMs ? b : a), null)

  return {
    monotonicMs: () => monotonic,
    wallMs: () => wall,
    uptimeMs: () => uptime,
    get bootId() {
      return `boot-${boots}`
    },
    after(ms, fn) {
      const timer = { atMs: monotonic + Math.max(ms, 0), fn }
      timers.push(timer)
      return {
        cancel() {
          timers = timers.filter((other) => other !== timer)
        },
      }
    },
    soon(fn) {
      soon++
      systemClock.soon(() => {
        soon--
        fn()
      })
    },
    async advance(ms) {
      assert(ms >= 0, 'time goes forward')
      const endMs = monotonic + ms
      await settle()
      for (let next = first(); next !== null && next.atMs <= endMs; next = first()) {
        const fired = next
        timers = timers.filter((timer) => timer !== fired)
        pass(Math.max(0, fired.atMs - monotonic))
        fired.fn()
        await settle()
      }
      pass(Math.max(0, endMs - monotonic))
      await settle()
    },
    jumpWall(ms) {
      wall += ms
    },
    sleep(ms) {
      wall += ms
      uptime += ms
    },
    reboot() {
      boots++
      monotonic = 0
      uptime = 0
      timers = []
    },
    settle,
    get pending() {
      return timers.length
    },
  }
}
