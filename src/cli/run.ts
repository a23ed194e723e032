// A run: enqueues the input, works on it with COMMAND, shows how far it is, and stops when it is done or told to.
import { pause } from '../ground/clock.js'
import { PieceworkError } from '../ground/errors.js'
import { openIn } from '../queue/batch.js'
import type { Worker } from '../queue/seam.js'
import type { BatchRecord } from '../task/records.js'
import { type Neighbour, thisProcess } from '../worker/alone.js'
import { openIdsOf, prepareBatch, type RunOf, readBatch } from './batch.js'
import { Caller, type Manner, workWith } from './call.js'
import { Feed } from './feed.js'
import { Gate } from './gate.js'
import { type Failure, type Halt, Halting } from './halt.js'
import type { Input } from './input.js'
import { Launch } from './launch.js'
import { Order } from './order.js'
import { quoted } from './placeholders.js'
import { counted, errorText, exitOf, grouped, type Output, warningText } from './print.js'
import { Progress, type Standing, stderrScreen } from './progress.js'
import { type Again, reportOf, summaryOf } from './report.js'
import { type ResultOptions, Results } from './results.js'
import type { Store } from './store.js'

export interface RunPlan {
  run: RunOf
  manner: Manner
  concurrency: number
  perSecond: number | null
  halt: Halt
  /** What --halt was given. */
  haltRule: string | undefined
  results: ResultOptions
  retryDead: boolean
  again: Again
}

/** Why a run ends before its work does: an exit code, and an error where there was one. */
interface Stop {
  exit: number
  error: PieceworkError | null
}

/** After SIGTERM running COMMANDs get so long before they are ended: whoever sent it does not wait for ever. */
const termGraceMs = 25_000
/** How often it is looked whether the queue is paused. */
const heedEveryMs = 1000
/** A worker may not cut COMMANDs short by itself: Ctrl-C once lets them end. */
const patienceMs = 86_400_000

/** Runs to the end; answers the exit code. */
export async function runBatch(store: Store, plan: RunPlan, input: Input, output: Output): Promise<number> {
  const batch = await prepareBatch(store, plan.run)
  return new Session(store, plan, input, output, batch).run()
}

class Session {
  readonly #store: Store
  readonly #plan: RunPlan
  readonly #input: Input
  readonly #output: Output
  readonly #batch: BatchRecord
  readonly #progress: Progress
  readonly #results: Results
  readonly #gate: Gate
  readonly #caller: Caller
  readonly #feed: Feed
  readonly #halting: Halting
  readonly #startedMs: number
  readonly #stopping = new AbortController()
  #stop: Stop | null = null
  #worker: Worker | null = null

  constructor(store: Store, plan: RunPlan, input: Input, output: Output, batch: BatchRecord) {
    this.#store = store
    this.#plan = plan
    this.#input = input
    this.#output = output
    this.#batch = batch
    const { clock } = store
    this.#startedMs = clock.monotonicMs()
    this.#progress = new Progress(clock, stderrScreen, () => this.#standing())
    const order = new Order(clock, plan.run.keepOrder ? (after) => openIdsOf(store, batch.name, after) : null)
    this.#results = new Results(plan.results, output, this.#progress, order)
    this.#gate = new Gate(clock, plan.concurrency, plan.perSecond)
    this.#caller = new Caller(new Launch(clock, plan.concurrency), plan.manner, this.#gate, this.#results, {
      hopeless: (error) => this.#end('soon', { exit: exitOf(error), error }),
      ended: (failure) => this.#ended(failure),
    })
    this.#feed = new Feed(store, batch)
    this.#halting = new Halting(plan.halt, plan.haltRule)
  }

  async run(): Promise<number> {
    const free = [this.#listen(), this.#makeQuiet()]
    try {
      await this.#open()
      await this.#work()
      return await this.#close()
    } finally {
      this.#progress.stop()
      for (const end of free) end()
    }
  }

  async #open(): Promise<void> {
    const { name, total, done, dead } = this.#batch
    const items =
      this.#input.total === null ? `at least ${grouped(total)} items` : `${grouped(this.#input.total)} items`
    const left = dead > 0 ? `${grouped(done)} done, ${grouped(dead)} dead` : `${grouped(done)} done`
    this.#tell(`piecework: batch ${name} in ${this.#store.file ?? this.#store.url}: ${items}, ${left}`)
    if (this.#plan.retryDead && dead > 0) {
      const { redriven } = await this.#store.client.queue(name).dead.redrive({ batch: name })
      this.#tell(`piecework: ${grouped(redriven)} dead letters sent on their way again`)
    }
  }

  async #work(): Promise<void> {
    if (!this.#plan.results.quiet) this.#progress.start()
    if (openIn(this.#batch) > 0 || (this.#plan.retryDead && this.#batch.dead > 0)) this.#hire()
    const stopped = new Promise<void>((resolve) => {
      this.#stopping.signal.addEventListener('abort', () => resolve(), { once: true })
    })
    await Promise.race([this.#finish(), stopped])
    await this.#worker?.stop({ graceMs: patienceMs })
    await this.#caller.close()
  }

  /** Reads everything, then waits until nothing of it is open. */
  async #finish(): Promise<void> {
    const { signal } = this.#stopping
    try {
      await this.#feed.run(
        this.#input,
        () => !signal.aborted,
        () => this.#hire(),
      )
      // Another run of this batch may have enqueued everything first: then it is shared all the same.
      if (this.#worker === null && openIn(await this.#record()) > 0) this.#hire()
      if (this.#worker === null || signal.aborted) return
      await this.#store.client.queue(this.#batch.name).drained({ signal })
    } catch (error) {
      if (signal.aborted) return
      const known = error instanceof PieceworkError
      this.#end('soon', { exit: exitOf(error), error: known ? error : bug(error) })
    }
  }

  /** Says when the queue is paused, at once and whenever somebody pauses it: nothing else would be seen of that. */
  async #heed(): Promise<void> {
    const { engine, clock } = this.#store
    const { name } = this.#batch
    const resume = quoted(['piecework', 'queue', 'resume', name, ...this.#plan.again.url])
    for (let paused = false; !this.#stopping.signal.aborted; ) {
      const [queue] = (await engine.select('queue', { name }, null)).items
      if (queue?.paused === true && !paused) {
        const text = `Queue ${name} is paused, so no item is started. To go on: ${resume}`
        const warning = Object.assign(new Error(text), { code: 'PW_QUEUE_PAUSED' })
        this.#progress.around(() => this.#output.say(warningText(warning, this.#output.json)))
      }
      paused = queue?.paused === true
      await pause(clock, heedEveryMs, this.#stopping.signal)
    }
  }

  /** Starts the worker with the first task there is. */
  #hire(): void {
    if (this.#worker !== null || this.#stopping.signal.aborted) return
    const { concurrency } = this.#plan
    const { order } = this.#results
    const options = { concurrency, graceMs: patienceMs }
    const worker = workWith(this.#store, this.#batch.name, this.#caller, options, order)
    worker.ready.catch((error) => this.#end('soon', { exit: exitOf(error), error: error as PieceworkError }))
    worker.on('dead', ({ id }) => order.leave(id))
    worker.on('error', (error) => this.#progress.around(() => this.#output.say(warningText(error, this.#output.json))))
    this.#worker = worker
    // The store's troubles are reported by those who work on it.
    this.#heed().catch(() => {})
  }

  #ended(failure: Failure | null): void {
    const verdict = this.#halting.ended(failure)
    if (verdict === null) return
    this.#end(verdict.when, { exit: 4, error: new PieceworkError('PW_HALTED', verdict.why) })
  }

  /** No new tasks from here; `now` ends the running ones, too. The first reason counts. */
  #end(when: 'soon' | 'now', stop: Stop): void {
    if (this.#stop === null) {
      this.#stop = stop
      this.#gate.close()
      this.#results.order.close()
      this.#stopping.abort(stop.error ?? undefined)
    }
    if (when === 'now') this.#caller.stopAll()
  }

  /** Answers what takes the signal handlers away. */
  #listen(): () => void {
    const interrupted = () => {
      this.#caller.struck('SIGINT')
      this.#interrupted(130)
    }
    const terminated = (signal: NodeJS.Signals) => {
      this.#caller.struck(signal)
      if (this.#stop === null) this.#store.clock.after(termGraceMs, () => this.#caller.stopAll())
      this.#interrupted(143)
    }
    const signals: [NodeJS.Signals, (signal: NodeJS.Signals) => void][] = [
      ['SIGINT', interrupted],
      ['SIGTERM', terminated],
      ['SIGHUP', terminated],
    ]
    for (const [signal, listener] of signals) process.on(signal, listener)
    return () => {
      for (const [signal, listener] of signals) process.off(signal, listener)
    }
  }

  /** A suspect runs alone in its process: neither a turn nor a free place is waited for meanwhile. */
  #makeQuiet(): () => void {
    const { order } = this.#results
    const waiting: Neighbour = {
      pause: async () => {
        order.hush(true)
        this.#gate.turnAway()
      },
      resume: () => order.hush(false),
    }
    thisProcess.join(waiting)
    return () => thisProcess.leave(waiting)
  }

  #interrupted(exit: number): void {
    const { running } = this.#caller
    if (this.#stop !== null) {
      this.#tell(`piecework: ending ${running} running`)
      return this.#end('now', this.#stop)
    }
    this.#tell(`piecework: stopping; ${running} running may end, once more ends them`)
    this.#end('soon', { exit, error: null })
  }

  async #close(): Promise<number> {
    const { engine, clock } = this.#store
    this.#progress.stop()
    // Only what is on disk may be told.
    await engine.measure([this.#batch.name], true)
    const batch = await this.#record()
    const ms = clock.monotonicMs() - this.#startedMs
    const complete = this.#feed.ended && openIn(batch) === 0
    if (this.#stop?.error) this.#output.say(errorText(this.#stop.error, this.#output.json))
    const { returned } = this.#results.order
    if (returned > 0) {
      const what = `${counted(returned, 'output')} had no turn before the end`
      this.#tell(`piecework: ${what}: those items were given back and run again, to keep the order`)
    }
    if (complete && this.#worker === null) this.#tell('piecework: nothing new and nothing open: nothing to do')
    const away = this.#stop === null && !complete ? openIn(batch) : 0
    if (away > 0) this.#tell(`piecework: ${this.#elsewhere(away)}`)
    const stdin = this.#input.name !== '-' ? null : this.#feed.ended ? 'read' : 'left'
    this.#output.did(`${batch.done} of ${batch.total} done, ${batch.dead} dead`)
    if (this.#output.json) await this.#output.value(summaryOf(batch, ms))
    else this.#tell(await reportOf(this.#store, batch, ms, this.#plan.again, stdin))
    if (this.#stop !== null && (this.#stop.error !== null || !complete)) return this.#stop.exit
    return batch.dead > 0 || !complete ? 1 : 0
  }

  /** What drained from this queue without an end was moved to another one. */
  #elsewhere(count: number): string {
    const list = quoted(['piecework', 'task', 'list', '--batch', this.#batch.name, ...this.#plan.again.url])
    return `${counted(count, 'item')} of this batch are in other queues, where others have to do them: ${list}`
  }

  /** The batch as it stands now; as it stood, when somebody has forgotten it meanwhile. */
  async #record(): Promise<BatchRecord> {
    return (await readBatch(this.#store, this.#batch.name)) ?? this.#batch
  }

  async #standing(): Promise<Standing> {
    const { total, done, dead, cancelled, retries } = await this.#record()
    const known = this.#input.total ?? this.#feed.read
    return {
      total: Math.max(total, known),
      totalKnown: this.#feed.ended || this.#input.total !== null,
      done,
      dead,
      cancelled,
      retries,
      running: this.#caller.running,
    }
  }

  /** For people only: programs get objects. */
  #tell(text: string): void {
    if (this.#output.json || this.#plan.results.quiet) return
    this.#progress.around(() => this.#output.say(text))
  }
}

const bug = (error: unknown) =>
  new PieceworkError('PW_BUG', error instanceof Error ? error.message : String(error), {}, { cause: error })
