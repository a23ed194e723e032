// One scheduler for every timer of every simulated process: runs one event, lets promises settle, takes the next.
import type { Clock, Timer } from '../../dist/ground/clock.js'

/** Whose events may be held back or dropped: a process, the store, the wire. */
export class Owner {
  state: 'running' | 'held' | 'gone' = 'running'
  readonly kept: Planned[] = []
  constructor(readonly name: string) {}
}

interface Planned {
  at: number
  order: number
  owner: Owner
  fn: () => void
  cancelled: boolean
}

/** The clocks of one machine, and all that is to happen on it. Instants are ms. */
export class Scheduler {
  /** The monotonic clock. */
  now = 10_000
  /** Events run so far. */
  step = 0
  private wallAhead = 2_000_000_000_000
  private wrongMs = 0
  private asleep = 0
  private orders = 0
  /** Events run since the clock last moved. */
  private here = 0
  private readonly heap: Planned[] = []

  readonly clockOf = (owner: Owner): Clock => ({
    monotonicMs: () => this.now,
    wallMs: () => this.now + this.wallAhead,
    uptimeMs: () => this.now + this.asleep,
    bootId: 'boot-1',
    after: (ms, fn) => this.after(owner, ms, fn),
    soon: (fn) => void this.after(owner, 0, fn),
  })

  after(owner: Owner, ms: number, fn: () => void): Timer {
    const planned = { at: this.now + Math.max(ms, 0), order: ++this.orders, owner, fn, cancelled: false }
    this.plan(planned)
    return {
      cancel: () => {
        planned.cancelled = true
      },
    }
  }

  /** What a wall clock would show that nobody had set wrong. */
  get rightWallMs(): number {
    return this.now + this.wallAhead - this.wrongMs
  }

  /** The wall clock jumps; nothing else moves. */
  jumpWall(ms: number): void {
    this.wallAhead += ms
    this.wrongMs += ms
  }

  /** Somebody sets the wall clock right. */
  setWallRight(): void {
    this.jumpWall(-this.wrongMs)
  }

  /** The machine sleeps: wall clock and uptime go on, monotonic clock and timers stand still. */
  sleep(ms: number): void {
    this.wallAhead += ms
    this.asleep += ms
  }

  /** Nothing of this owner happens until `release`. */
  hold(owner: Owner): void {
    if (owner.state === 'running') owner.state = 'held'
  }

  /** What fell due meanwhile happens now, in its order. */
  release(owner: Owner): void {
    if (owner.state !== 'held') return
    owner.state = 'running'
    for (const planned of owner.kept.splice(0))
      this.plan(Object.assign(planned, { at: this.now, order: ++this.orders }))
  }

  /** Nothing of this owner will ever happen again. */
  drop(owner: Owner): void {
    owner.state = 'gone'
    owner.kept.length = 0
  }

  /** True when something of this owner is still to happen. */
  awaits(owner: Owner): boolean {
    return this.heap.some((planned) => planned.owner === owner && !planned.cancelled)
  }

  /** The answer, run until it is there. What nothing brings any more would be waited for without end: it throws. */
  async answer<T>(what: string, answer: Promise<T>): Promise<T> {
    let there = false
    const come = () => {
      there = true
    }
    answer.then(come, come)
    if (await this.run(this.now + answerMsMax, () => there)) return answer
    throw new Error(`Nothing answered ${what} within ${answerMsMax} ms of simulated time. ${this.outlook()}`)
  }

  /** Runs events until `done` or until none is left before `endAt`; answers whether it was done. */
  async run(endAt: number, done: () => boolean): Promise<boolean> {
    await settled()
    if (done()) return true
    for (let next = this.take(endAt); next; next = this.take(endAt)) {
      if (next.cancelled || next.owner.state === 'gone') continue
      this.move(next)
      if (next.owner.state === 'held') {
        next.owner.kept.push(next)
        continue
      }
      this.step++
      next.fn()
      await (this.step % stepsATurn === 0 ? turned() : settled())
      if (done()) return true
    }
    this.now = Math.max(this.now, endAt)
    return done()
  }

  private move(next: Planned): void {
    this.here = next.at > this.now ? 0 : this.here + 1
    this.now = Math.max(this.now, next.at)
    if (this.here < hereMax) return
    const last = `the last one of ${next.owner.name}`
    throw new Error(`The clock stands still at ${this.now} ms since ${hereMax} events, ${last}. ${this.outlook()}`)
  }

  /** For the story of a run that comes to no end: whose events are to happen. */
  private outlook(): string {
    const owners = new Map<string, number>()
    for (const { owner, cancelled } of this.heap) {
      const name = `${owner.name} (${owner.state})`
      if (!cancelled) owners.set(name, (owners.get(name) ?? 0) + 1)
    }
    const rest = [...owners].map(([name, count]) => `${count} of ${name}`).join(', ')
    return `Still to happen after step ${this.step}: ${rest || 'nothing'}.`
  }

  private plan(planned: Planned): void {
    const { heap } = this
    let at = heap.push(planned) - 1
    while (at > 0) {
      const up = (at - 1) >> 1
      if (before(heap[up] as Planned, planned)) break
      heap[at] = heap[up] as Planned
      at = up
    }
    heap[at] = planned
  }

  private take(endAt: number): Planned | undefined {
    const { heap } = this
    const [first] = heap
    if (!first || first.at > endAt) return undefined
    const last = heap.pop() as Planned
    if (last === first) return first
    let at = 0
    for (;;) {
      let down = 2 * at + 1
      if (down >= heap.length) break
      if (down + 1 < heap.length && before(heap[down + 1] as Planned, heap[down] as Planned)) down++
      if (before(last, heap[down] as Planned)) break
      heap[at] = heap[down] as Planned
      at = down
    }
    heap[at] = last
    return first
  }
}

/** A call of the simulator's own is answered within this, whatever befalls the store. */
const answerMsMax = 60_000
/** More events in one instant than any run has: they only call one another. */
const hereMax = 100_000
/** The event loop must turn now and then, or neither time-outs nor those who watch this process are ever heard. */
const stepsATurn = 1000

const before = (a: Planned, b: Planned) => a.at < b.at || (a.at === b.at && a.order < b.order)

const turned = () => new Promise<void>((resolve) => setImmediate(resolve))

/** Everything that one event started has settled: no promise is left to run, and nothing here waits for the machine. */
const settled = () => new Promise<void>((resolve) => process.nextTick(resolve))
