// Runs one delivery: decodes the payload, calls the handler, and turns the way it ended into a verdict.
import type { Verdict } from '../engine/contract.js'
import { assert } from '../ground/assert.js'
import { PieceworkError } from '../ground/errors.js'
import type { WorkSpec } from '../queue/seam.js'
import { encodePayload } from '../task/payload.js'
import { type Desk, type Run, TaskDelivery } from './delivery.js'
import { errorText, isDefinite, verdictOf } from './failure.js'
import type { Heartbeat } from './heartbeat.js'
import type { Pace } from './pace.js'
import type { Settler } from './settle.js'
import type { Shift } from './shift.js'
import { withStrays } from './stray.js'

type Then = (fulfilled: (value: unknown) => void, rejected: (error: unknown) => void) => unknown

export interface RunnerPorts {
  readonly shift: Shift
  readonly decode: WorkSpec['decode']
  readonly desk: Desk
  readonly heartbeat: Heartbeat
  readonly settler: Settler
  readonly pace: Pace
  /** The handler has ended: its slot is free. `ours`: its verdict was added; else another one stands. */
  readonly over: (run: Run, now: number, ours: boolean) => void
}

export class Runner {
  readonly #ports: RunnerPorts

  constructor(ports: RunnerPorts) {
    this.#ports = ports
  }

  /** Starts the handler; answers the clock after what of it ran at once. Never throws. */
  begin(run: Run, now: number): number {
    const { task } = run
    let payload: unknown
    try {
      payload = this.#ports.decode(task.type, task.payload)
    } catch (error) {
      return this.#undecodable(run, error)
    }
    if (!(payload instanceof Promise)) return this.#call(run, payload, now)
    payload.then(
      (decoded) => this.#call(run, decoded, this.#ports.shift.clock.monotonicMs()),
      (error: unknown) => this.#undecodable(run, error),
    )
    return this.#ports.shift.clock.monotonicMs()
  }

  #call(run: Run, payload: unknown, from: number): number {
    const { shift, desk } = this.#ports
    let result: unknown
    let then: Then | null
    try {
      // A schema that took longer than timeoutMs: the task is no longer ours to start.
      if (run.stage !== 'running') throw run.reason
      const { handler } = run.kind
      assert(handler, `a task of type ${run.task.type} was claimed without a handler for it`)
      run.report = (cause) => this.#stray(run, 'left an error behind', cause)
      result = withStrays(run.report, handler, payload, new TaskDelivery(run, desk))
      then = thenOf(result)
    } catch (error) {
      const now = shift.clock.monotonicMs()
      run.blockMs = now - from
      this.#failed(run, now, error)
      return now
    }
    const now = shift.clock.monotonicMs()
    run.blockMs = now - from
    if (then === null) this.#acked(run, now, result)
    else this.#watch(run, result, then)
    return now
  }

  #watch(run: Run, promise: unknown, then: Then): void {
    const { clock } = this.#ports.shift
    if (promise instanceof Promise && then === Promise.prototype.then) {
      promise.then(
        (value) => this.#acked(run, clock.monotonicMs(), value),
        (error: unknown) => this.#failed(run, clock.monotonicMs(), error),
      )
      return
    }
    this.#watchForeign(run, promise, then)
  }

  /** A thenable may call back twice, or throw after it has called back. */
  #watchForeign(run: Run, thenable: unknown, then: Then): void {
    const { clock } = this.#ports.shift
    let settled = false
    const once = (failed: boolean, value: unknown) => {
      if (settled) {
        this.#stray(run, 'settled twice', value)
        return
      }
      settled = true
      let inner: Then | null = null
      try {
        if (!failed) inner = thenOf(value)
      } catch (error) {
        this.#failed(run, clock.monotonicMs(), error)
        return
      }
      if (inner) this.#watch(run, value, inner)
      else if (failed) this.#failed(run, clock.monotonicMs(), value)
      else this.#acked(run, clock.monotonicMs(), value)
    }
    try {
      then.call(
        thenable,
        (value) => once(false, value),
        (error) => once(true, error),
      )
    } catch (error) {
      once(true, error)
    }
  }

  #undecodable(run: Run, error: unknown): number {
    const now = this.#ports.shift.clock.monotonicMs()
    this.#end(run, now, { receipt: run.receipt, do: 'bury', error: errorText(error) }, error)
    return now
  }

  #failed(run: Run, now: number, error: unknown): void {
    if (run.ask !== null) void this.#confirm(run, { error })
    else this.#end(run, now, this.#verdict(run, error), error)
  }

  /** It acked in a transaction of its own: what became of that decides, whatever the handler did afterwards. */
  async #confirm(run: Run, thrown: { error: unknown } | null): Promise<void> {
    const { shift, desk } = this.#ports
    const acked = await desk.transactions.acked(run)
    const now = shift.clock.monotonicMs()
    const { id, number } = run.task
    if (acked) {
      if (thrown) this.#stray(run, 'failed after its ack had been committed', thrown.error)
      this.#committed(run, now)
      return
    }
    const text = `Delivery ${number} of task ${id} was acked in a transaction that was not committed.`
    const error = thrown?.error ?? new PieceworkError('PW_TX_ROLLED_BACK', text, { id, number })
    this.#end(run, now, this.#verdict(run, error), error)
  }

  /** Nothing is left to be settled. */
  #committed(run: Run, now: number): void {
    const { heartbeat, pace, over, shift } = this.#ports
    const { id, type, number, payload } = run.task
    run.settle('over')
    run.runMs = now - run.startedAt
    pace.ran(run.kind, run.runMs, run.blockMs, payload.length)
    heartbeat.drop(run)
    shift.events.emit('done', { id, type, number, runMs: run.runMs })
    over(run, now, true)
  }

  #acked(run: Run, now: number, value: unknown): void {
    if (run.ask !== null) {
      void this.#confirm(run, null)
      return
    }
    const { receipt } = run
    const verdict: Verdict = { receipt, do: 'ack' }
    if (run.task.keepsResult && value !== undefined) verdict.result = this.#text(run, value)
    this.#end(run, now, verdict, undefined)
  }

  /** The text of what a handler returned; of what JSON cannot hold none: the work is done all the same. */
  #text(run: Run, value: unknown): string {
    try {
      return encodePayload(value)
    } catch (error) {
      this.#stray(run, 'returned what cannot be kept', error)
      return ''
    }
  }

  #end(run: Run, now: number, verdict: Verdict, error: unknown): void {
    const { heartbeat, settler, pace, over } = this.#ports
    const first = run.stage === 'running'
    if (first) run.settle('over')
    const ours = first && heartbeat.changed(run)
    run.runMs = now - run.startedAt
    if (ours) {
      run.failure = error
      pace.ran(run.kind, run.runMs, run.blockMs, run.task.payload.length)
      settler.add(run, verdict)
    } else this.#late(run, verdict, error)
    over(run, now, ours)
  }

  /** It ended after its timeout or stop was settled: whatever it says changes nothing, but must not be lost. */
  #late(run: Run, verdict: Verdict, error: unknown): void {
    const { id, type, number } = run.task
    if (verdict.do === 'ack') this.#ports.shift.events.emit('stale', { id, type, number })
    else if (!isFollowing(run, error)) this.#stray(run, 'failed after its delivery had been settled', error)
  }

  #verdict(run: Run, error: unknown): Verdict {
    // Past the grace time a failure is the worker's doing: the delivery is not charged.
    const stopped = run.reason?.code === 'PW_STOPPING' && !isDefinite(error)
    return stopped ? { receipt: run.receipt, do: 'release', by: 'stop' } : verdictOf(run.receipt, error)
  }

  #stray(run: Run, what: string, cause: unknown): void {
    const { id, number } = run.task
    const said = errorText(cause).text.split('\n', 1)[0]?.slice(0, 200)
    const text = `The handler of task ${id}, delivery ${number}, ${what}: ${said}`
    this.#ports.shift.events.trouble(new PieceworkError('PW_STRAY_ERROR', text, { id, number }, { cause }))
  }
}

/** True for what a handler that listens to its signal rejects with. */
function isFollowing(run: Run, error: unknown): boolean {
  try {
    if (error === run.reason) return true
    return error instanceof Error && (error.name === 'AbortError' || error.cause === run.reason)
  } catch {
    return false
  }
}

/** The `then` of a promise or thenable, else null; throws what its getter throws. */
function thenOf(value: unknown): Then | null {
  if ((typeof value !== 'object' || value === null) && typeof value !== 'function') return null
  const { then } = value as { then?: unknown }
  return typeof then === 'function' ? (then as Then) : null
}
