// One open store as the client sees it: its ports, its batch of single enqueues, its sweeps, its workers, its end.
import { hostname } from 'node:os'
import type { Engine, Enqueued, NewTask } from '../engine/contract.js'
import type { SyncEngine } from '../engine/transactions.js'
import { type Batcher, batcher } from '../ground/batcher.js'
import type { Clock, Random } from '../ground/clock.js'
import { errorTable, PieceworkError } from '../ground/errors.js'
import { warn } from '../ground/warn.js'
import { bulkTasksMax } from '../task/limits.js'
import { Maintenance } from './maintenance.js'
import type { Ports, StartWorker, Worker } from './seam.js'

/** What an enqueue answers. */
export interface EnqueuedTask {
  id: string
  /** True when a task with this dedup key was there already: `id` is that task's. */
  duplicate: boolean
}

export interface ConnectionOptions {
  engine: Engine
  clock: Clock
  random: Random
  startWorker: StartWorker
  /** `strict` refuses a queue whose stored policy another build declared; default: the later start wins. */
  policy?: 'strict' | undefined
  /** Who the audit says did it; default: this process. */
  actor?: string | undefined
  heartbeat?: Ports['heartbeat'] | undefined
}

/** As much of a connection as an operation needs; a broker acts in the name of who called it. */
export type Acting = Pick<Connection, 'engine' | 'actor' | 'ports'>

/** Everything the faces (queues, batches, command line) share; the engine is open when it is made. */
export class Connection {
  readonly ports: Ports
  readonly startWorker: StartWorker
  readonly actor: string
  readonly strict: boolean
  readonly maintenance: Maintenance
  readonly #singles: Batcher<NewTask, EnqueuedTask | PieceworkError>
  readonly #workers = new Set<Worker>()
  readonly #preparing = new Map<string, () => Promise<unknown>>()
  readonly #declared = new Map<string, Promise<void>>()
  readonly #coming = new Set<Promise<unknown>>()
  #state: 'open' | 'closing' | 'closed' = 'open'
  #closed: Promise<void> | null = null
  #heard: ((id: string) => void) | null = null

  constructor(options: ConnectionOptions) {
    const { engine, clock, random } = options
    this.ports = { engine, clock, random, heartbeat: options.heartbeat ?? 'auto' }
    this.startWorker = options.startWorker
    this.actor = options.actor ?? `process ${process.pid} on ${hostname()}`
    this.strict = options.policy === 'strict'
    this.maintenance = new Maintenance(engine, clock, random, warn)
    // From the start, not from the first task: whoever merely watches is there to find a dead worker as well (P8).
    if (engine.traits.sweeps === 'clients') this.maintenance.start()
    this.#singles = batcher(clock, bulkTasksMax, (tasks) => enqueueTurn(engine, tasks))
  }

  /** The open engine; throws PW_CLOSED. */
  engine(): Engine {
    if (this.#state === 'closed') throw new PieceworkError('PW_CLOSED', 'This connection was closed.')
    return this.ports.engine
  }

  /** Adds one task; all tasks of one turn of the event loop share a commit. */
  enqueue(task: NewTask): Promise<EnqueuedTask> {
    this.engine()
    if (task.delayMs !== undefined) this.maintenance.expect(task.delayMs)
    return this.#singles.add(task).then(unwrap)
  }

  /** Adds many tasks in one commit, or to the caller's transaction; answers in order. */
  async enqueueAll(tasks: readonly NewTask[], tx?: unknown): Promise<EnqueuedTask[]> {
    const engine = this.engine()
    const answers = tx === undefined ? await engine.enqueue(null, tasks) : await engine.enqueue(null, tasks, tx)
    return answers.map(answerOf)
  }

  /** Adds a task to the caller's transaction on SQLite. */
  enqueueSync(engine: SyncEngine, task: NewTask, tx: unknown): EnqueuedTask {
    if (task.delayMs !== undefined) this.maintenance.expect(task.delayMs)
    return answerOf(engine.enqueueSync([task], tx)[0] as Enqueued)
  }

  /** Registers what `ready` waits for; the same `what` once, as a program may open its queue for every request. */
  prepares(what: string, prepare: () => Promise<unknown>): void {
    this.#preparing.set(what, prepare)
  }

  /**
   * Runs `declare` once for all queues opened with the same words: the later start wins, not the later call.
   * What failed is tried again next time.
   */
  declareOnce(what: string, declare: () => Promise<void>): Promise<void> {
    let declared = this.#declared.get(what)
    if (!declared) {
      declared = declare().then(
        () => void this.#preparing.delete(what),
        (error) => {
          this.#declared.delete(what)
          throw error
        },
      )
      this.#declared.set(what, declared)
    }
    return declared
  }

  /** An enqueue that waits for what has to be declared first: close() lets it come. */
  coming<T>(enqueue: Promise<T>): Promise<T> {
    this.#coming.add(enqueue)
    const over = () => void this.#coming.delete(enqueue)
    enqueue.then(over, over)
    return enqueue
  }

  /** Resolves when the policies of all queues opened so far are declared; rejects with the first refusal. */
  async ready(): Promise<void> {
    this.engine()
    await Promise.all([...this.#preparing.values()].map((prepare) => prepare()))
  }

  /** Keeps a worker to stop at close(). */
  employ(worker: Worker): void {
    this.#workers.add(worker)
    this.#listen(worker)
  }

  /** From now on `heard` is called with the id of each task that a worker of this connection has ended. */
  hearEnds(heard: (id: string) => void): void {
    this.#heard = heard
    for (const worker of this.#workers) this.#listen(worker)
  }

  /** An event that nobody hears is not made at all: until somebody waits, nobody listens. */
  #listen(worker: Worker): void {
    const heard = this.#heard
    if (heard) worker.on('done', ({ id }) => heard(id)).on('dead', ({ id }) => heard(id))
  }

  dismiss(worker: Worker): void {
    this.#workers.delete(worker)
  }

  /** Throws PW_CLOSED once close() was called: its workers are stopping, and no other may start. */
  hiring(): void {
    if (this.#state !== 'open') throw new PieceworkError('PW_CLOSED', 'This connection is closing or was closed.')
  }

  /** Stops the workers gracefully, sends what was enqueued, closes the store. */
  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    // Not closed yet: a handler in its grace time may still enqueue.
    this.#state = 'closing'
    const stops = await Promise.allSettled([...this.#workers].map((worker) => worker.stop()))
    await Promise.allSettled(this.#coming)
    this.#state = 'closed'
    await this.#singles.idle()
    await this.maintenance.stop()
    await this.ports.engine.close()
    const failed = stops.find((stop) => stop.status === 'rejected')
    if (failed) throw failed.reason
  }
}

const answerOf = ({ id, duplicate }: Enqueued): EnqueuedTask => ({ id, duplicate })

function unwrap(answer: EnqueuedTask | PieceworkError): EnqueuedTask {
  if (answer instanceof PieceworkError) throw answer
  return answer
}

/** One commit for several callers; when the store refuses it for one task (its batch is sealed), each goes alone. */
async function enqueueTurn(engine: Engine, tasks: readonly NewTask[]): Promise<(EnqueuedTask | PieceworkError)[]> {
  try {
    return (await engine.enqueue(null, tasks)).map(answerOf)
  } catch (error) {
    // A store that failed may have kept them (a sync that was refused): sent again they could be there twice.
    if (tasks.length === 1 || !(error instanceof PieceworkError) || 'exit' in errorTable[error.code]) throw error
  }
  // Called in order, so that ids still rise in call order.
  const alone = await Promise.allSettled(tasks.map((task) => engine.enqueue(null, [task])))
  return alone.map((outcome) => {
    if (outcome.status === 'fulfilled') return answerOf(outcome.value[0] as Enqueued)
    if (outcome.reason instanceof PieceworkError) return outcome.reason
    throw outcome.reason
  })
}
