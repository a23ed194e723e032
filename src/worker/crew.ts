// The slots of a worker and what waits before them: starts deliveries, keeps their time, and gives unstarted ones back.
import type { ClaimedTask } from '../engine/contract.js'
import { pause } from '../ground/clock.js'
import { PieceworkError } from '../ground/errors.js'
import type { Handler } from '../task/handler.js'
import type { Alone, Neighbour } from './alone.js'
import { type Kind, Run } from './delivery.js'
import type { LeaseDesk } from './desk.js'
import type { Heartbeat } from './heartbeat.js'
import type { Pace } from './pace.js'
import { leaseEnd } from './pulse.js'
import type { Runner } from './run.js'
import type { Settler } from './settle.js'
import type { Shift } from './shift.js'

/** Handlers started in one turn of the event loop at most so long, then others have a go. */
const turnMs = 5
/** Verdicts without an answer at most; beyond it a store that is slow to sync gets no more tasks to wait for. */
export const unansweredMax = 4000
/** A task claimed ahead that found no slot for so long goes back, for others to take. */
const waitMsMax = 100
/** The same when the loop is blocked, so that the heartbeat has to give it back. */
const stuckMsMax = 1000
/** Deaths that make a task a suspect. */
const suspectDeaths = 2

export interface CrewPorts {
  readonly shift: Shift
  readonly handlers: ReadonlyMap<string, Handler<unknown>>
  readonly concurrency: number
  readonly prefetch: 'adaptive' | number
  readonly graceMs: number
  readonly heartbeat: Heartbeat
  readonly settler: Settler
  readonly pace: Pace
  readonly desk: LeaseDesk
  readonly alone: Alone
  /** Handlers that have done their work and only wait: they take no slot. */
  readonly parked: () => number
  /** There may be room for more tasks. */
  readonly hungry: () => void
  /** Something is to be checked at this instant of the monotonic clock. */
  readonly expect: (at: number) => void
}

export class Crew implements Neighbour {
  readonly #ports: CrewPorts
  readonly #kinds = new Map<string, Kind>()
  readonly #running: Run[] = []
  /** Deliveries that the heartbeat settled and of which it has not told the outcome. */
  readonly #taken = new Set<Run>()
  #runner: Runner | null = null
  #waiting: Run[] = []
  #head = 0
  #suspect: Run | null = null
  #endQuiet: (() => void) | null = null
  #hung = 0
  /** What was claimed ahead found no slot: how fast the slots come free is not known until one does. */
  #misjudged = false
  /** What was claimed last is under a limit: nothing of it is claimed ahead of need. */
  #limited = false
  #paused = false
  #closed = false
  #pumping = false
  #planned = false
  #turnEndsAt = 0
  /** Who waits for the last handler to end; `all`: for a suspect that has yet to start, too. */
  #idlers: { all: boolean; resolve: () => void }[] = []

  constructor(ports: CrewPorts) {
    this.#ports = ports
  }

  /** Crew and runner need each other; nothing is accepted before this. */
  staff(runner: Runner): void {
    this.#runner = runner
  }

  get running(): number {
    return this.#running.length
  }

  /** True when every slot is held by a handler that ran past its timeout. */
  get hung(): boolean {
    return this.#hung >= this.#ports.concurrency
  }

  get #slots(): number {
    return this.#ports.concurrency + this.#ports.parked()
  }

  get #buffered(): number {
    return this.#waiting.length - this.#head
  }

  /** How many tasks to claim now; 0 for none. */
  demand(): number {
    const { prefetch, pace, settler, shift } = this.#ports
    if (this.#closed || this.#paused || this.hung || settler.unanswered >= unansweredMax) return 0
    const free = this.#slots - this.#running.length
    const buffered = this.#buffered
    const now = shift.clock.monotonicMs()
    const adaptive = () => (this.#misjudged ? 0 : pace.ahead(this.#running, free, now))
    const ahead = this.#limited ? 0 : prefetch === 'adaptive' ? adaptive() : prefetch
    const need = free + ahead - buffered
    // While what waits fills all slots, small top-ups would only cost claims.
    return buffered > 0 && buffered >= free && need * 2 <= ahead ? 0 : Math.max(0, need)
  }

  /** Takes what a claim answered; `sentAt` is the monotonic clock before it was sent. Never throws. */
  accept(tasks: readonly ClaimedTask[], sentAt: number): void {
    const { shift, heartbeat, prefetch, pace } = this.#ports
    const now = shift.clock.monotonicMs()
    const stuckAt = now + Math.max(stuckMsMax, 8 * pace.claimMs)
    this.#limited = tasks.some((task) => task.limited)
    for (const task of tasks) {
      const patient = prefetch !== 'adaptive' || task.deaths >= suspectDeaths
      const overdueAt = patient ? Number.POSITIVE_INFINITY : stuckAt
      const run = new Run(task, this.#kind(task.type), leaseEnd(sentAt, task.leaseMs), overdueAt)
      run.heldAt = now
      heartbeat.hold(run)
      if (task.deaths >= suspectDeaths && !this.#suspect && !this.#closed) void this.#runAlone(run)
      else this.#waiting.push(run)
    }
    if (this.#closed || this.#paused) this.giveBack()
    if (!this.#planned) this.#turnEndsAt = now + turnMs
    this.#pump(now)
    if (this.#buffered > 0) this.#ports.expect(this.#backAt(now))
    this.#after(now)
  }

  /** Sends what this turn decided, and asks for more. */
  turn(): void {
    this.#planned = false
    const now = this.#ports.shift.clock.monotonicMs()
    this.#turnEndsAt = now + turnMs
    if (this.#pump(now)) this.#plan(now)
    this.#finish()
  }

  /** The runner's word that a handler has ended. */
  over(run: Run, now: number, ours: boolean): void {
    const last = this.#running.pop() as Run
    if (last !== run) {
      this.#running[run.index] = last
      last.index = run.index
    }
    if (run.stage === 'settled') this.#hung--
    else if (!ours) this.#taken.add(run)
    run.stage = 'over'
    this.#misjudged = false
    this.#clear(run)
    if (this.#pumping) return
    this.#plan(now)
    this.#pump(now)
    this.#after(now)
  }

  /** Aborts what ran too long, saves or aborts what loses its lease; answers when to look again. */
  check(): number {
    const { shift, desk } = this.#ports
    const now = shift.clock.monotonicMs()
    let nextAt = Number.POSITIVE_INFINITY
    for (const run of [...this.#running]) {
      if (run.stage !== 'running') continue
      if (now >= run.overdueAt) this.#timeOut(run)
      else if (now >= run.endsAt && run.reason?.code !== 'PW_LEASE_LOST') desk.lastCall(run)
      else nextAt = Math.min(nextAt, run.overdueAt, run.endsAt)
    }
    const oldest = this.#waiting[this.#head]
    if (!oldest || this.#running.length < this.#slots) return nextAt
    const backAt = this.#backAt(oldest.heldAt)
    if (now < backAt) return Math.min(nextAt, backAt)
    this.#misjudged = true
    this.giveBack()
    return nextAt
  }

  /** Returns every task that no handler has started. */
  giveBack(): void {
    const back = this.#waiting.slice(this.#head)
    this.#waiting = []
    this.#head = 0
    for (const run of back) this.#return(run)
    this.#ports.settler.flush()
  }

  /** The delivery with this receipt, if it is in this worker's hands or its outcome is awaited. */
  find(receipt: string): Run | undefined {
    const has = (run: Run) => run.receipt === receipt
    const held = this.#running.find(has) ?? this.#waiting.find(has) ?? [...this.#taken].find(has)
    return held ?? (this.#suspect?.receipt === receipt ? this.#suspect : undefined)
  }

  /** The heartbeat has settled this delivery as timed out. */
  timedOut(run: Run): void {
    if (run.stage === 'running') this.#timeOut(run)
    // Its handler may have ended before anybody here knew.
    run.abort('PW_TIMEOUT')
    this.#taken.delete(run)
  }

  /** Everything this worker holds belongs to others now. */
  loseAll(): void {
    for (const run of [...this.#running, ...this.#waiting.slice(this.#head)]) this.#ports.desk.lose(run)
    if (this.#suspect?.stage === 'held') this.#ports.desk.lose(this.#suspect)
    this.giveBack()
  }

  pause(): Promise<void> {
    this.#paused = true
    this.giveBack()
    return this.#ended(false)
  }

  resume(): void {
    this.#paused = false
    this.#ports.hungry()
  }

  /** Accepts and starts nothing any more; what waits goes back. */
  close(): void {
    this.#closed = true
    this.giveBack()
  }

  /** Resolves when no handler runs and none is about to. */
  idle(): Promise<void> {
    return this.#ended(true)
  }

  /** Aborts every running handler. */
  abortAll(): void {
    for (const run of [...this.#running]) run.abort('PW_STOPPING')
  }

  /** Releases what still runs, without waiting for the handlers. */
  releaseAll(): void {
    const { heartbeat, settler } = this.#ports
    for (const run of [...this.#running]) {
      if (run.stage !== 'running') continue
      run.settle('settled')
      this.#hung++
      this.#clear(run)
      if (heartbeat.changed(run)) settler.add(run, { receipt: run.receipt, do: 'release', by: 'stop' })
      else this.#taken.add(run)
    }
    settler.flush()
  }

  #kind(type: string): Kind {
    let kind = this.#kinds.get(type)
    if (!kind) {
      const { handlers } = this.#ports
      kind = { handler: handlers.get(type) ?? handlers.get('*'), runMs: Number.NaN }
      this.#kinds.set(type, kind)
    }
    return kind
  }

  /** Fills free slots; true when the turn was over before the work was. */
  #pump(from: number): boolean {
    if (this.#pumping) return false
    this.#pumping = true
    let now = from
    while (this.#buffered > 0 && !this.#paused && this.#running.length < this.#slots) {
      if (now > this.#turnEndsAt) break
      const run = this.#waiting[this.#head++] as Run
      if (this.#buffered === 0) {
        this.#waiting = []
        this.#head = 0
      }
      now = this.#start(run, now)
    }
    this.#pumping = false
    return now > this.#turnEndsAt && this.#buffered > 0
  }

  #start(run: Run, now: number): number {
    const { heartbeat, expect } = this.#ports
    if (now >= run.endsAt || run.reason) {
      this.#return(run)
      return now
    }
    run.stage = 'running'
    run.startedAt = now
    run.overdueAt = now + (run.task.timeoutMs ?? Number.POSITIVE_INFINITY)
    if (!heartbeat.changed(run)) {
      // It waited so long behind a blocked loop that the heartbeat gave it back.
      run.stage = 'over'
      return now
    }
    run.index = this.#running.push(run) - 1
    expect(Math.min(run.overdueAt, run.endsAt))
    return (this.#runner as Runner).begin(run, now)
  }

  /** When a task that has waited for a slot since `heldAt` goes back. */
  #backAt(heldAt: number): number {
    const { prefetch, pace } = this.#ports
    return prefetch === 'adaptive' ? heldAt + Math.max(waitMsMax, 4 * pace.claimMs) : Number.POSITIVE_INFINITY
  }

  /** Starts a suspect when nothing else runs in this process, or its neighbours have had their grace. */
  async #runAlone(run: Run): Promise<void> {
    const { alone, shift, graceMs } = this.#ports
    this.#suspect = run
    const enough = new AbortController()
    const patience = pause(shift.clock, graceMs, AbortSignal.any([enough.signal, shift.closing]))
    const leave = await alone.enter(patience)
    enough.abort()
    if (!this.#closed) {
      this.#endQuiet = leave
      this.#start(run, shift.clock.monotonicMs())
    } else this.#return(run)
    // It never started; had it ended already, `over` would have forgotten it.
    if (this.#suspect === run && run.stage !== 'running') {
      this.#suspect = null
      leave()
    }
    this.#finish()
  }

  /** A suspect is none any more: its neighbours go on, whether its handler has returned or hangs past its end. */
  #clear(run: Run): void {
    if (run !== this.#suspect) return
    this.#suspect = null
    this.#endQuiet?.()
    this.#endQuiet = null
  }

  /** Gives one task back that no handler has started. */
  #return(run: Run): void {
    const { heartbeat, settler } = this.#ports
    run.settle('over')
    if (run.reason?.code !== 'PW_LEASE_LOST' && heartbeat.changed(run))
      settler.add(run, { receipt: run.receipt, do: 'release', by: 'unstarted' })
  }

  #timeOut(run: Run): void {
    const { shift, heartbeat, settler, concurrency } = this.#ports
    run.settle('settled')
    const ours = heartbeat.changed(run)
    run.runMs = shift.clock.monotonicMs() - run.startedAt
    this.#hung++
    this.#clear(run)
    run.abort('PW_TIMEOUT')
    const text = `The handler ran longer than timeoutMs (${run.task.timeoutMs} ms).`
    if (!ours) this.#taken.add(run)
    else settler.add(run, { receipt: run.receipt, do: 'retry', error: { code: 'PW_TIMEOUT', text } })
    if (this.hung) {
      const hung = `Handlers that ran past their timeout and ignore their signal hold all ${concurrency} slots.`
      shift.events.trouble(new PieceworkError('PW_HANDLER_HUNG', hung, { concurrency }))
      this.giveBack()
    }
    settler.flush()
  }

  #plan(now: number): void {
    if (this.#planned) return
    this.#planned = true
    this.#turnEndsAt = now + turnMs
    this.#ports.shift.clock.soon(() => this.turn())
  }

  #after(now: number): void {
    // Nothing more can come in this turn, so there is nothing to wait for.
    if (this.#running.length === 0 && this.#buffered === 0) this.#finish()
    else this.#plan(now)
  }

  #finish(): void {
    this.#ports.settler.flush()
    this.#ports.hungry()
    if (this.#idlers.length === 0 || this.#running.length > 0) return
    const waiting = this.#idlers
    this.#idlers = waiting.filter(({ all }) => all && this.#suspect !== null)
    for (const idler of waiting) if (!this.#idlers.includes(idler)) idler.resolve()
  }

  #ended(all: boolean): Promise<void> {
    if (this.#running.length === 0 && !(all && this.#suspect)) return Promise.resolve()
    return new Promise((resolve) => this.#idlers.push({ all, resolve }))
  }
}
