// A clock that stands still until a test moves it: timers fire in order, and promises settle between the steps.
import { assert } from '../ground/assert.js'
import { type Clock, systemClock, type Timer } from '../ground/clock.js'

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
  return new Manual(wallMs)
}

class Manual implements ManualClock {
  private monotonic = 10_000
  private uptime = 10_000
  private boots = 1
  private timers: Planned[] = []
  /** Callbacks of `soon` that have not run. */
  private queued = 0

  constructor(private wall: number) {}

  // Functions of their own, so that a test can take the clock apart.
  readonly monotonicMs = () => this.monotonic
  readonly wallMs = () => this.wall
  readonly uptimeMs = () => this.uptime

  get bootId(): string {
    return `boot-${this.boots}`
  }

  get pending(): number {
    return this.timers.length
  }

  after(ms: number, fn: () => void): Timer {
    const timer = { atMs: this.monotonic + Math.max(ms, 0), fn }
    this.timers.push(timer)
    return { cancel: () => this.drop(timer) }
  }

  soon(fn: () => void): void {
    this.queued++
    systemClock.soon(() => {
      this.queued--
      fn()
    })
  }

  async settle(): Promise<void> {
    for (let quiet = 0; quiet < quietTurns; quiet++) {
      if (this.queued > 0) quiet = 0
      await new Promise<void>((resolve) => systemClock.soon(resolve))
    }
  }

  async advance(ms: number): Promise<void> {
    assert(ms >= 0, 'time goes forward')
    const endMs = this.monotonic + ms
    await this.settle()
    for (let next = this.first(); next !== null && next.atMs <= endMs; next = this.first()) {
      this.drop(next)
      this.pass(next.atMs - this.monotonic)
      next.fn()
      await this.settle()
    }
    this.pass(endMs - this.monotonic)
    await this.settle()
  }

  jumpWall(ms: number): void {
    this.wall += ms
  }

  sleep(ms: number): void {
    this.wall += ms
    this.uptime += ms
  }

  reboot(): void {
    this.boots++
    this.monotonic = 0
    this.uptime = 0
    this.timers = []
  }

  /** The timer that falls due first; of equal ones the one that was set first. */
  private first(): Planned | null {
    return this.timers.reduce<Planned | null>((a, b) => (a === null || b.atMs < a.atMs ? b : a), null)
  }

  private drop(timer: Planned): void {
    this.timers = this.timers.filter((other) => other !== timer)
  }

  private pass(ms: number): void {
    this.monotonic += Math.max(ms, 0)
    this.wall += Math.max(ms, 0)
    this.uptime += Math.max(ms, 0)
  }
}
