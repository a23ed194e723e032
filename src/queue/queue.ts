// One queue of a connection: checks what it is given, turns payloads into tasks, starts workers, reads and operates.
import type { NewTask } from '../engine/contract.js'
import { PieceworkError } from '../ground/errors.js'
import { checkName, checkPolicy, type Policy, type PolicyPatch, policyDefaults, shown } from '../task/limits.js'
import { encodePayload } from '../task/payload.js'
import type { TaskRecord } from '../task/records.js'
import { amendAll } from './amend.js'
import { BatchClient } from './batch.js'
import { type BulkTask, type EnqueuedMany, enqueueAll } from './bulk.js'
import type { Connection, EnqueuedTask } from './connection.js'
import { DeadLettersClient } from './dead.js'
import { Definition } from './define.js'
import { TaskDraft } from './draft.js'
import { checkWait, type DrainOptions, drained, type WaitOptions } from './drained.js'
import type { DoneTask, MoveBackOptions, MoveOptions, Queue, TaskFilter, TaskListFilter } from './face.js'
import { type QueueStats, queueStats } from './figures.js'
import { checkWorkerOptions, type HandlerPlan, planHandlers } from './handlers.js'
import { type Inline, type InlineOptions, inlineOf } from './inline.js'
import { type Moved, moveBack, moveTasks } from './move.js'
import { type BulkOptions, checkChoice, checkOptions, type TaskOptions, taskOf, unknownOption } from './options.js'
import { configureQueue, declarePolicy, pauseQueue, policyInForce, readQueue } from './policy.js'
import { readEnd, resultOf, returned } from './results.js'
import {
  removeSchedule,
  type Schedule,
  type ScheduleOptions,
  scheduleFrom,
  scheduleOf,
  setSchedule,
} from './schedules.js'
import type { Worker, WorkerOptions } from './seam.js'
import { checkMeant, filterFor, type Listing, type Task, taskFrom } from './tasks.js'
import { syncOf } from './transactions.js'

/** What queue() was given, checked. */
interface Terms {
  name: string
  definition: Definition
  /** The code's layer; null when no field of a policy was given. */
  policy: PolicyPatch | null
}

export class QueueClient implements Queue<unknown> {
  readonly name: string
  readonly dead: DeadLettersClient
  readonly #connection: Connection
  readonly #terms: Terms | PieceworkError
  /** What this queue declares, in the words of its terms. */
  readonly #words: string
  #declared = false

  /** Throws nothing: what is wrong with the arguments surfaces at the first awaited call. */
  constructor(connection: Connection, name: string, given: Record<string, unknown> | undefined) {
    this.#connection = connection
    this.name = name
    this.#terms = termsOf(name, given)
    this.#declared = !(this.#terms instanceof PieceworkError) && this.#terms.policy === null
    this.dead = new DeadLettersClient(
      connection,
      () => this.#ready(),
      () => this.#agreed().definition,
    )
    this.#words = JSON.stringify(
      this.#terms instanceof PieceworkError ? this.#terms.message : [name, this.#terms.policy],
    )
    if (!this.#declared) connection.prepares(this.#words, () => this.#prepare())
  }

  enqueue(payload: unknown, options?: TaskOptions): Promise<EnqueuedTask> {
    // Not an async function: on this path each promise counts.
    try {
      const prepared = BatchClient.preparing(options?.batch)
      const task = this.#task(payload, options)
      if (prepared !== null) return this.#sendAfter(prepared, task, options?.tx)
      if (task instanceof Promise) return task.then((made) => this.#send(made, options?.tx))
      return this.#send(task, options?.tx)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  enqueueSync(payload: unknown, options: Omit<TaskOptions, 'tx'> & { tx: unknown }): EnqueuedTask {
    const engine = syncOf(this.#connection.engine(), 'enqueueSync')
    const prepared = BatchClient.preparing(options?.batch)
    const task = this.#task(payload, options as TaskOptions)
    if (prepared !== null || !this.#declared) {
      prepared?.catch(() => {})
      throw new PieceworkError('PW_QUEUE_NOT_READY', `The queue ${shown(this.name)} or its batch is not declared yet.`)
    }
    if (task instanceof Promise) {
      task.catch(() => {})
      throw new PieceworkError('PW_SCHEMA_ASYNC', `The schema of ${shown(this.name)} returned a promise.`)
    }
    return this.#connection.enqueueSync(engine, task, options?.tx)
  }

  draft(payload: unknown, options?: TaskOptions): TaskDraft {
    return new TaskDraft(this.name, async () => {
      checkOptions('draft', options)
      const task = this.#task(payload, options)
      await BatchClient.preparing(options?.batch)
      await this.#ready()
      return task
    })
  }

  async enqueueAndWait(payload: unknown, options: Omit<TaskOptions, 'tx'> & WaitOptions = {}): Promise<unknown> {
    checkWait('enqueueAndWait', options)
    const { signal, waitMs, ...given } = options
    signal?.throwIfAborted()
    await BatchClient.preparing(given.batch)
    await this.#ready()
    const task = await this.#task(payload, given)
    const { id } = await this.#connection.enqueue({ ...task, keepsResult: true })
    return resultOf(this.#connection, id, { signal, waitMs })
  }

  inline(handler: unknown, options?: InlineOptions): Inline<unknown> {
    const { definition } = this.#agreed()
    const { handlers } = planHandlers(handler, definition.types, undefined)
    return inlineOf(this.#connection.ports, () => this.#agreed(), handlers, options)
  }

  async enqueueMany(
    items: Iterable<unknown> | AsyncIterable<unknown>,
    given?: BulkOptions | ((payload: unknown, index: number) => BulkOptions | undefined),
  ): Promise<EnqueuedMany> {
    await this.#ready()
    if (typeof given !== 'function') checkOptions('enqueueMany', given)
    return enqueueAll(this.#connection, items, (payload, index) => {
      const options = typeof given === 'function' ? given(payload, index) : given
      if (typeof given === 'function') checkOptions('enqueueMany', options)
      const prepared = BatchClient.preparing(options?.batch)
      if (prepared !== null) return prepared.then(() => this.#bulkTask(payload, options))
      return this.#bulkTask(payload, options)
    })
  }

  work(handler: unknown, options: WorkerOptions = {}): Worker {
    const { ports } = this.#connection
    let plan: HandlerPlan = { handlers: new Map(), types: [] }
    let prepared: Promise<Policy>
    let sound: WorkerOptions = {}
    try {
      this.#connection.hiring()
      const { definition } = this.#agreed()
      checkWorkerOptions(options)
      sound = options ?? {}
      plan = planHandlers(handler, definition.types, options.types)
      prepared = this.#prepare().then(() => policyInForce(this.#connection, this.name))
    } catch (error) {
      prepared = Promise.reject(error)
    }
    // Whoever awaits worker.ready hears it.
    prepared.catch(() => {})
    const worker: Worker = this.#connection.startWorker({
      ports,
      queue: this.name,
      ...plan,
      decode: (type, text) => this.#agreed().definition.decode(type, text),
      prepared,
      // What was refused is not built on: a board of the size asked for may be larger than the memory.
      options: sound,
      stopped: () => this.#connection.dismiss(worker),
    })
    this.#connection.employ(worker)
    return worker
  }

  async drained(options?: DrainOptions): Promise<{ dead: number }> {
    return drained(this.#connection, await this.#ready(), options)
  }

  async stats(): Promise<QueueStats> {
    const name = await this.#ready()
    const figures = await this.#connection.engine().measure([name], false)
    return queueStats(figures, name, (await readQueue(this.#connection, name))?.paused ?? false)
  }

  async get(id: string): Promise<Task | DoneTask | { state: 'gone' }> {
    const name = await this.#ready()
    const page = await this.#connection.engine().select('task', { ids: [checkName('id', id)] }, null)
    const row = page.items[0] as TaskRecord | undefined
    if (row !== undefined) return row.queue === name ? taskFrom(row) : { state: 'gone' }
    const end = await readEnd(this.#connection, id)
    if (end?.outcome !== 'done' || end.queue !== name) return { state: 'gone' }
    return { state: 'done', endedAt: new Date(end.endedAt), result: returned(end) }
  }

  async list(filter: TaskListFilter = {}): Promise<Listing<Task>> {
    const name = await this.#ready()
    checkOptions('list', filter)
    const { cursor, ...rest } = filter
    const page = await this.#connection.engine().select('task', filterFor(name, rest), cursor ?? null)
    return { items: (page.items as unknown as TaskRecord[]).map(taskFrom), next: page.next }
  }

  async cancel(target: string | TaskFilter | { all: true }): Promise<{ cancelled: number; asked: number }> {
    const name = await this.#ready()
    const given: Record<string, unknown> = typeof target === 'string' ? { ids: [target] } : { ...target }
    checkOptions('cancel', typeof target === 'string' ? given : target)
    checkMeant('cancel', given)
    const filter = filterFor(name, given)
    const states = filter.states ?? ['scheduled', 'waiting', 'ready', 'leased']
    const done = await amendAll(this.#connection, { ...filter, states }, { do: 'cancel' }, false)
    return { cancelled: done.changed, asked: done.asked }
  }

  async move(options: MoveOptions | MoveBackOptions): Promise<Moved> {
    const name = await this.#ready()
    checkOptions('move', options ?? null)
    const { to, back, ...fields } = options as MoveOptions & MoveBackOptions
    const filter = filterFor(name, { ...fields })
    if (back === undefined) return moveTasks(this.#connection, name, filter, to, false)
    if (back !== true || to !== undefined) {
      throw new PieceworkError('PW_OPTION_INVALID', 'move takes either to, or back: true with a type.')
    }
    return moveBack(this.#connection, name, filter, false)
  }

  async schedule(name: string, options: ScheduleOptions | null, payload?: unknown): Promise<Schedule> {
    const queue = await this.#ready()
    if (options === null) return scheduleFrom(await removeSchedule(this.#connection, queue, name))
    const { definition } = this.#agreed()
    definition.checkType(options?.type)
    const patch = scheduleOf(queue, options, await definition.encode(options?.type, payload))
    const schedule = scheduleFrom(await setSchedule(this.#connection, queue, name, patch))
    if (schedule.nextAt !== null) {
      const { clock } = this.#connection.ports
      this.#connection.maintenance.expect(schedule.nextAt.getTime() - clock.wallMs())
    }
    return schedule
  }

  async pause(): Promise<void> {
    await pauseQueue(this.#connection, await this.#ready(), true)
  }

  async resume(): Promise<void> {
    await pauseQueue(this.#connection, await this.#ready(), false)
  }

  async configure(policy: PolicyPatch | null, options?: { force?: boolean | undefined }): Promise<Policy> {
    checkOptions('configure', options)
    return configureQueue(this.#connection, await this.#ready(), policy, options)
  }

  /** The terms; throws what queue() was refused for. */
  #agreed(): Terms {
    if (this.#terms instanceof PieceworkError) throw this.#terms
    return this.#terms
  }

  /** The queue's name once its policy is declared. */
  async #ready(): Promise<string> {
    const { name } = this.#agreed()
    if (!this.#declared) await this.#prepare()
    return name
  }

  /** Declares the code's policy, if there is one and this connection has not done so. */
  async #prepare(): Promise<void> {
    const { name, policy } = this.#agreed()
    if (policy === null) return
    await this.#connection.declareOnce(this.#words, () => declarePolicy(this.#connection, name, policy))
    this.#declared = true
  }

  /** The engine's task; a promise only when the schema is asynchronous. */
  #task(payload: unknown, options: TaskOptions | undefined): NewTask | Promise<NewTask> {
    const { name, definition } = this.#agreed()
    if (options !== undefined) checkOptions('enqueue', options)
    definition.checkType(options?.type)
    const text = definition.encode(options?.type, payload)
    if (text instanceof Promise) return text.then((checked) => taskOf(name, checked, options))
    return taskOf(name, text, options)
  }

  #send(task: NewTask, tx: unknown): Promise<EnqueuedTask> {
    if (!this.#declared) return this.#connection.coming(this.#prepare().then(() => this.#send(task, tx)))
    if (tx === undefined) return this.#connection.enqueue(task)
    return this.#connection.enqueueAll([task], tx).then((answers) => answers[0] as EnqueuedTask)
  }

  #sendAfter(prepared: Promise<void>, task: NewTask | Promise<NewTask>, tx: unknown): Promise<EnqueuedTask> {
    const sent = Promise.all([task, prepared]).then(([made]) => this.#send(made, tx))
    return task instanceof Promise ? sent : this.#connection.coming(sent)
  }

  #bulkTask(payload: unknown, options: BulkOptions | undefined): BulkTask | Promise<BulkTask> {
    const { name, definition } = this.#agreed()
    const bury = checkChoice('onInvalid', options?.onInvalid ?? 'throw', ['throw', 'bury']) === 'bury'
    const made = (text: string): BulkTask => ({ task: taskOf(name, text, options), tx: options?.tx })
    const lenient = (error: unknown): BulkTask => {
      // What JSON can hold is stored as it is; the schema refuses it at its claim, which buries it with its issues.
      if (bury && error instanceof PieceworkError && error.code === 'PW_PAYLOAD_INVALID')
        return made(encodePayload(payload))
      throw error
    }
    definition.checkType(options?.type)
    try {
      const text = definition.encode(options?.type, payload)
      return text instanceof Promise ? text.then(made, lenient) : made(text)
    } catch (error) {
      return lenient(error)
    }
  }
}

function termsOf(name: unknown, given: Record<string, unknown> | undefined): Terms | PieceworkError {
  try {
    checkName('queue name', name)
    if (given !== undefined && (typeof given !== 'object' || given === null || Array.isArray(given))) {
      throw new PieceworkError('PW_OPTION_INVALID', `The options of queue are ${shown(given)}; they must be an object.`)
    }
    const { schema, types, ...policy } = given ?? {}
    const fields = Object.keys(policy).filter((field) => policy[field] !== undefined)
    const known = Object.keys(policyDefaults)
    const strange = fields.find((field) => !known.includes(field))
    if (strange !== undefined) throw unknownOption('queue', strange, ['schema', 'types', ...known])
    const patch = fields.length === 0 ? null : checkPolicy(policy)
    return { name: name as string, definition: new Definition(schema, types), policy: patch }
  } catch (error) {
    if (error instanceof PieceworkError) return error
    throw error
  }
}
