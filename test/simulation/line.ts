// The engine as one simulated process holds it: beside the store, or across a wire that delays, loses and doubles.
import type {
  Change,
  ClaimAsk,
  Claimed,
  Engine,
  Enqueued,
  Figures,
  Filter,
  Held,
  Kind,
  NewTask,
  Page,
  Patch,
  Swept,
  Traits,
  Verdict,
  WorkerInfo,
} from '../../dist/engine/contract.js'
import type { Outcome } from '../../dist/task/lifecycle.js'
import { askTold } from './calls.js'
import type { Dice } from './dice.js'
import type { Happening } from './events.js'
import type { Owner, Scheduler } from './scheduler.js'
import type { Store, Verb } from './store.js'

/** What befalls the calls of one process just now; shares are 0 to 1, delays ms. */
export interface Weather {
  lose: number
  twice: number
  /** Delay of every extension and beat. */
  starve: number
  /** Delay of every verdict. */
  late: number
}

export interface LinePorts {
  readonly scheduler: Scheduler
  readonly store: Store
  readonly owner: Owner
  /** Whose the calls under way are: they arrive although their process is gone. */
  readonly air: Owner
  readonly wire: boolean
  readonly weather: Weather
  readonly dice: Dice
  readonly tell: (happening: Happening) => void
  /** What a caller is thrown whose answer did not come. */
  readonly unanswered: () => Error
}

/** After this long the caller of a call across the wire gives its answer up. */
const patienceMs = 800

export class Line implements Engine {
  readonly traits: Traits
  private requests = 0
  private readonly names = new Map<string, string>()

  constructor(private readonly ports: LinePorts) {
    const { wire, store } = ports
    const far = { transactions: 'none', liveness: 'lease', wake: 'poll', threads: false, sweeps: 'clients' } as const
    this.traits = wire ? far : store.engine.traits
  }

  /** Like the engine of a remote store: names its call and sends it again until it was answered. */
  async enqueue(requestId: string | null, tasks: readonly NewTask[]): Promise<Enqueued[]> {
    const { wire, owner } = this.ports
    const request = wire ? `${owner.name} ${++this.requests}` : requestId
    for (;;) {
      try {
        return (await this.send('enqueue', [request, tasks])) as Enqueued[]
      } catch (error) {
        if (!(error instanceof Unanswered)) throw error
      }
    }
  }

  claim = (ask: ClaimAsk) => this.sent<Claimed>('claim', [{ ...ask, worker: this.named(ask.worker) }])

  settle = (by: { worker: string; flush: string | null }, verdicts: readonly Verdict[]) =>
    this.sent<Outcome[]>('settle', [{ ...by, worker: this.named(by.worker) }, verdicts], this.ports.weather.late)

  extend = (worker: string, asks: readonly { receipt: string; leaseMs: number }[]) =>
    this.sent<Held[]>('extend', [this.named(worker), asks], this.ports.weather.starve)

  worker(event: 'join' | 'beat' | 'leave', info: WorkerInfo) {
    const known = { ...info, worker: this.named(info.worker), host: 'host', pid: 1 }
    const delayMs = event === 'beat' ? this.ports.weather.starve : 0
    return this.sent<{ alive: boolean; cancelled: string[] }>('worker', [event, known], delayMs)
  }

  sweep = (max: number) => this.sent<Swept>('sweep', [max])

  amend = (filter: Filter, change: Change, actor: string, bounds: { max: number; dryRun: boolean }) =>
    this.sent<Awaited<ReturnType<Engine['amend']>>>('amend', [filter, change, actor, bounds])

  wait = (queues: readonly string[], ms: number, signal: AbortSignal) =>
    this.back(this.ports.store.engine.wait(queues, ms, signal))
  select = (kind: Kind, filter: Filter, cursor: string | null): Promise<Page> =>
    this.back(this.ports.store.engine.select(kind, filter, cursor))
  measure = (queues: readonly string[] | null, durable: boolean): Promise<Figures> =>
    this.back(this.ports.store.engine.measure(queues, durable))
  configure = (kind: Kind, name: string, patch: Patch | null, actor: string): Promise<Patch> =>
    this.sent<Patch>('configure', [kind, name, patch, actor])

  open = () => Promise.resolve()
  close = () => Promise.resolve()
  migrate = () => Promise.resolve([])
  descriptor = () => null

  /** The runtime's names hold host and pid; the trace must be the same everywhere. */
  private named(worker: string): string {
    const { owner } = this.ports
    const name = this.names.get(worker) ?? `${owner.name}/w${this.names.size + 1}`
    this.names.set(worker, name)
    return name
  }

  private async sent<T>(verb: Verb, args: readonly unknown[], delayMs = 0): Promise<T> {
    try {
      return (await this.send(verb, args, delayMs)) as T
    } catch (error) {
      throw error instanceof Unanswered ? this.ports.unanswered() : error
    }
  }

  private send(verb: Verb, args: readonly unknown[], delayMs = 0): Promise<unknown> {
    const { owner, wire, tell } = this.ports
    if (owner.state === 'gone') return never
    if (delayMs > 0) tell({ is: 'felt', kind: verb === 'settle' ? 'late' : 'starve' })
    return wire ? this.sendByWire(verb, args, delayMs) : this.sendBeside(verb, args, delayMs)
  }

  private sendBeside(verb: Verb, args: readonly unknown[], delayMs: number): Promise<unknown> {
    const { scheduler, owner } = this.ports
    if (delayMs === 0) return this.arrive(verb, args, 0, false)
    return new Promise((resolve, reject) => {
      scheduler.after(owner, delayMs, () => this.arrive(verb, args, 0, false).then(resolve, reject))
    })
  }

  private sendByWire(verb: Verb, args: readonly unknown[], delayMs: number): Promise<unknown> {
    const { scheduler, owner, air, dice, weather, tell } = this.ports
    const wayMs = () => dice.random() * 4
    const lostThere = dice.chance(weather.lose / 2)
    const lostBack = dice.chance(weather.lose / 2)
    const twice = dice.chance(weather.twice)
    const againMs = dice.random() * dice.pick(5, 500, 3000)
    return new Promise((resolve, reject) => {
      const patience = scheduler.after(owner, patienceMs, () => {
        tell({ is: 'lost', process: owner.name, asked: askTold(verb, args) })
        reject(new Unanswered())
      })
      const heard = (end: () => void) => {
        patience.cancel()
        end()
      }
      const arrive = (copy: boolean) =>
        this.arrive(verb, args, wayMs(), copy, copy || lostBack).then(
          (answer) => heard(() => resolve(answer)),
          (error: unknown) => heard(() => reject(error)),
        )
      if (!lostThere) scheduler.after(air, delayMs + wayMs(), () => void arrive(false))
      if (twice) scheduler.after(air, delayMs + againMs, () => void arrive(true))
    })
  }

  /** The call reaches the store; the answer reaches the process `backMs` after it was given, unless it is lost. */
  private arrive(verb: Verb, args: readonly unknown[], backMs: number, copy: boolean, lost = false): Promise<unknown> {
    const { store, owner, wire, tell } = this.ports
    const proof = wire ? null : owner.name
    const { call, answer } = store.hand(verb, args, { process: owner.name, proof, copy })
    if (lost) {
      answer.catch(() => {})
      return never
    }
    return this.back(answer, backMs, () => tell({ is: 'heard', call }))
  }

  /** An answer is heard by a process that runs: not by one that is paused, never by one that is gone. */
  private back<T>(answer: Promise<T>, delayMs = 0, heard = () => {}): Promise<T> {
    const { scheduler, owner } = this.ports
    return new Promise((resolve, reject) => {
      const later = (end: () => void) =>
        scheduler.after(owner, delayMs, () => {
          heard()
          end()
        })
      answer.then(
        (value) => later(() => resolve(value)),
        (error: unknown) => later(() => reject(error)),
      )
    })
  }
}

/** No answer came in time; what the call did nobody here knows. */
class Unanswered extends Error {}

const never = new Promise<never>(() => {})
