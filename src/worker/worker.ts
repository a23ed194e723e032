// The worker: joins, claims, runs handlers and settles, until it is stopped; everything else here is a part of it.
import { hostname } from 'node:os'
import type { Verdict, WorkerInfo } from '../engine/contract.js'
import { pause, type Timer } from '../ground/clock.js'
import { type ErrorCode, errorTable, PieceworkError } from '../ground/errors.js'
import type { StartWorker, Worker, WorkerEvents, WorkSpec } from '../queue/seam.js'
import type { Outcome } from '../task/lifecycle.js'
import type { Policy } from '../task/limits.js'
import { type Alone, thisProcess } from './alone.js'
import { Crew, unansweredMax } from './crew.js'
import type { Run } from './delivery.js'
import { LeaseDesk } from './desk.js'
import { Events } from './events.js'
import { asError } from './failure.js'
import { Fetch } from './fetch.js'
import { type Heartbeat, type MakeHeartbeat, makeHeartbeat } from './heartbeat.js'
import { aheadMax, Pace } from './pace.js'
import type { News } from './pulse.js'
import { Runner } from './run.js'
import { Settler } from './settle.js'
import { againMs, type Shift } from './shift.js'
import { onSignals } from './signals.js'
import { Vigil } from './vigil.js'

/** How long a handler may take to end after its signal aborted with PW_STOPPING; then its task is released anyway. */
export const afterAbortMs = 250
/** How long after the grace time a stopping worker goes on trying to reach a store that does not answer. */
const lastWordsMs = 5000

/** What a simulator replaces beside the ports of the connection. */
export interface WorkerPorts {
  readonly makeHeartbeat: MakeHeartbeat
  /** The workers that die together with this one. */
  readonly alone: Alone
}

/**
 * Makes the function that starts workers.
 * @public for a simulator, which brings ports of its own
 */
export const workerWith =
  (ports: WorkerPorts): StartWorker =>
  (spec) =>
    new TaskWorker(spec, ports)

/** Starts a worker on the real heartbeat; never throws: refusals come through `ready`. */
export const startWorker: StartWorker = workerWith({ makeHeartbeat, alone: thisProcess })

class TaskWorker implements Worker {
  readonly ready: Promise<void>
  readonly #spec: WorkSpec
  readonly #alone: Alone
  readonly #events = new Events()
  readonly #closing = new AbortController()
  readonly #shift: Shift
  readonly #info: WorkerInfo
  readonly #heartbeat: Heartbeat
  readonly #settler: Settler
  readonly #desk: LeaseDesk
  readonly #crew: Crew
  readonly #fetch: Fetch
  readonly #vigil: Vigil
  readonly #graceMs: number
  /** Ends listening to signals. */
  readonly #deaf: () => void
  #joined = false
  #broken = false
  #stopping: Promise<void> | null = null
  #endGrace: () => void = () => {}
  readonly #graceOver = new Promise<void>((resolve) => {
    this.#endGrace = resolve
  })
  readonly #graceTimers: Timer[] = []

  constructor(spec: WorkSpec, ports: WorkerPorts) {
    const { engine, clock, random } = spec.ports
    const { concurrency = 10, prefetch = 'adaptive', graceMs = 25_000, stopOn = [] } = spec.options
    const worker = `${hostname()}-${process.pid}-${Math.floor(random() * 2 ** 40).toString(36)}`
    const { queue, handlers } = spec
    const { signal: closing } = this.#closing
    const repeats = engine.traits.transactions !== 'sync'
    const fatal = (error: PieceworkError) => this.#fatal(error)
    const shift: Shift = { worker, engine, clock, random, events: this.#events, closing, fatal, repeats }
    const pace = new Pace()
    const heldMax = concurrency + (prefetch === 'adaptive' ? aheadMax : prefetch) + unansweredMax
    const tell = (news: News) => this.#hear(news)
    const heartbeat = ports.makeHeartbeat({ engine, clock, heldMax, tell }, spec.ports.heartbeat)
    const hungry = () => this.#fetch.tick()
    const answered = (run: Run, verdict: Verdict, outcome: Outcome) => this.#answered(run, verdict, outcome)
    const settler = new Settler(shift, heartbeat, answered, hungry)
    const desk = new LeaseDesk(shift, heartbeat)
    const { alone } = ports
    const expect = (at: number) => this.#vigil.expect(at)
    const parts = { shift, heartbeat, settler, desk, pace }
    const parked = () => spec.parked?.count ?? 0
    const crew = new Crew({ ...parts, handlers, concurrency, prefetch, graceMs, alone, parked, hungry, expect })
    spec.parked?.onMore(() => crew.turn())
    crew.staff(new Runner({ ...parts, decode: spec.decode, over: (run, now, ours) => crew.over(run, now, ours) }))
    const types = spec.types ?? (handlers.has('*') ? null : [...handlers.keys()])
    this.#spec = spec
    this.#alone = alone
    this.#shift = shift
    this.#graceMs = graceMs
    this.#heartbeat = heartbeat
    this.#settler = settler
    this.#desk = desk
    this.#crew = crew
    this.#fetch = new Fetch({ shift, crew, pace, queue, types })
    this.#vigil = new Vigil(clock, () => crew.check())
    const { pid } = process
    const counts = { concurrency, busy: 0, prefetched: 0 }
    this.#info = { worker, host: hostname(), pid, bootId: clock.bootId, queues: [queue], ...counts, proof: null }
    this.#deaf = onSignals(stopOn, () => this.#signalled())
    this.ready = this.#begin()
    // Whoever does not await it hears of a refusal as an 'error' event.
    this.ready.catch((error: unknown) => {
      if (!closing.aborted) this.#events.trouble(error)
      this.#broken = true
    })
  }

  on<E extends keyof WorkerEvents>(event: E, listener: (value: WorkerEvents[E]) => void): this {
    this.#events.on(event, listener)
    return this
  }

  off<E extends keyof WorkerEvents>(event: E, listener: (value: WorkerEvents[E]) => void): this {
    this.#events.off(event, listener)
    return this
  }

  health(): ReturnType<Worker['health']> {
    const at = this.#fetch.claimedAt
    return {
      live: !this.#broken && !this.#crew.hung,
      ready: this.#joined && !this.#closing.signal.aborted && !this.#crew.hung && this.#fetch.healthy,
      running: this.#crew.running,
      lastClaimAt: at === null ? null : new Date(at),
    }
  }

  stop(options: { graceMs?: number | undefined } = {}): Promise<void> {
    if (!this.#stopping) {
      this.#hurry(options.graceMs ?? this.#graceMs)
      this.#stopping = this.#shutDown()
    } else if (options.graceMs !== undefined) this.#hurry(options.graceMs)
    return this.#stopping
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  async #begin(): Promise<void> {
    const { closing } = this.#shift
    const stopped = new Promise<null>((resolve) => {
      closing.addEventListener('abort', () => resolve(null), { once: true })
    })
    const policy = await Promise.race([this.#spec.prepared, stopped])
    if (policy !== null) await this.#join(policy)
    if (closing.aborted) throw new PieceworkError('PW_STOPPING', 'The worker was stopped before it was ready.')
    this.#alone.join(this.#crew)
    this.#vigil.start()
    this.#fetch.start()
  }

  async #join(policy: Policy): Promise<void> {
    const { engine, clock, random, closing } = this.#shift
    for (let failures = 0; !this.#joined && !closing.aborted; failures++) {
      try {
        await engine.worker('join', this.#info)
        this.#joined = true
      } catch (error) {
        if (!(error instanceof PieceworkError && error.retryable)) throw error
        this.#events.trouble(error)
        await pause(clock, againMs(random, failures), closing)
      }
    }
    if (this.#joined) await this.#heartbeat.start(this.#info, policy.leaseMs)
  }

  #signalled(): void {
    // The second signal says that the first one's patience has ended.
    void this.stop(this.#stopping ? { graceMs: 0 } : {})
  }

  /** The grace time ends in `ms` at the latest. */
  #hurry(ms: number): void {
    if (ms <= 0) this.#endGrace()
    else this.#graceTimers.push(this.#shift.clock.after(ms, this.#endGrace, true))
  }

  async #shutDown(): Promise<void> {
    const { clock, engine, events } = this.#shift
    this.#closing.abort()
    this.#crew.close()
    // Both end by themselves unless the store has stopped answering.
    const wound = Promise.all([this.#ready(), this.#fetch.stop(), this.#windDown()])
    const enough = new AbortController()
    const patience = this.#graceOver.then(() => pause(clock, afterAbortMs + lastWordsMs, enough.signal))
    void patience.then(() => this.#settler.giveUp())
    await Promise.race([wound.then(() => this.#settler.idle()), patience])
    this.#vigil.stop()
    this.#alone.leave(this.#crew)
    await Promise.race([this.#heartbeat.stop(), patience])
    if (this.#joined) {
      await Promise.race([engine.worker('leave', this.#info).catch((error) => events.trouble(error)), patience])
    }
    enough.abort()
    this.#endGrace()
    for (const timer of this.#graceTimers) timer.cancel()
    this.#deaf()
    this.#spec.stopped()
  }

  #ready(): Promise<void> {
    return this.ready.catch(() => {})
  }

  /** Waits for the running handlers: all the grace time, then a moment for those that listen to their signal. */
  async #windDown(): Promise<void> {
    const idle = this.#crew.idle()
    await Promise.race([idle, this.#graceOver])
    if (this.#crew.running > 0) {
      const enough = new AbortController()
      this.#crew.abortAll()
      await Promise.race([idle, pause(this.#shift.clock, afterAbortMs, enough.signal)])
      enough.abort()
      this.#crew.releaseAll()
    }
  }

  #fatal(error: PieceworkError): void {
    if (this.#broken) return
    this.#broken = true
    this.#events.trouble(error)
    this.#closing.abort()
    void this.#fetch.stop()
    this.#crew.close()
  }

  #hear(news: News): void {
    if (news.is === 'dead') {
      this.#crew.loseAll()
      this.#shift.engine.worker('join', this.#info).catch((error: unknown) => this.#events.trouble(error))
      return
    }
    if (news.is === 'failed') {
      const code = Object.hasOwn(errorTable, news.code) ? (news.code as ErrorCode) : 'PW_STORE_FAILED'
      this.#events.trouble(new PieceworkError(code, `The heartbeat failed: ${news.message}`))
      return
    }
    const run = this.#crew.find(news.receipt)
    if (!run) return
    if (news.is === 'extended') run.endsAt = news.endsAt
    else if (news.is === 'lost') this.#desk.lose(run)
    else if (news.is === 'cancelled') run.abort('PW_CANCELLED')
    else {
      this.#crew.timedOut(run)
      this.#answered(run, { receipt: run.receipt, do: 'retry', error: { code: 'PW_TIMEOUT', text: '' } }, news.outcome)
    }
  }

  /** Tells the listeners what became of a delivery. */
  #answered(run: Run, verdict: Verdict, outcome: Outcome): void {
    const events = this.#events
    const { id, type, number } = run.task
    if (verdict.do === 'ack' && outcome === 'done') {
      if (events.heard('done')) events.emit('done', { id, type, number, runMs: run.runMs })
      return
    }
    if (verdict.do === 'release' && verdict.by === 'unstarted') return
    if (outcome === 'stale') events.emit('stale', { id, type, number })
    else if (outcome === 'dead') events.emit('dead', { id, type, number, error: asError(run.failure, run.reason) })
    else if (outcome === 'cancelled') return
    else if (verdict.do === 'release') {
      events.emit('released', { id, type, number, by: verdict.by === 'stop' ? 'stop' : 'handler' })
    } else events.emit('retry', { id, type, number, error: asError(run.failure, run.reason) })
  }
}
