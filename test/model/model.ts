// The life cycle as a small pure model: what every task, figure, batch and key must look like after each step.
import type { NewTask } from '../../dist/engine/contract.js'
import { type LifeEvent, lifecycle, type State, states, type Total, totals } from '../../dist/task/lifecycle.js'

/** The settings of a queue that the model knows; jitter is off, so that delays can be reckoned. */
export interface Rules {
  leaseMs: number
  deliveriesMax: number | null
  releasesMax: number
  baseMs: number
  factor: number
  maxMs: number
  headStartMs: number
  width: number
  onDead: 'continue' | 'hold'
  dedupWindowMs: number
  resultKeepMs: number
  /** Dead tasks become tasks of the other queue. */
  deadTo: string | null
}

/** One receipt that may still act: under a lease, or lapsed by time or by death. */
export interface Hold {
  text: string
  kind: 'live' | 'lapsed by time' | 'lapsed by death'
  worker: ModelWorker
}

/** A worker that the store knows; one that left and came back under its name is another. */
export interface ModelWorker {
  name: string
  proof: string | null
}

export interface ModelTask {
  id: string
  queue: string
  type: string
  state: State
  key: string | null
  slot: boolean
  /** Lowest is claimed first; equal ones by id. */
  place: number
  /** When it was or will be due; the order within its key. */
  dueAt: number
  /** Of a scheduled task the instant it matures, of a leased one its lease's end. */
  wakeAt: number | null
  wallAt: number | null
  deadlineAt: number | null
  drops: boolean
  number: number
  spent: number
  releases: number
  deaths: number
  fence: number
  hold: Hold | null
  claimedAt: number | null
  cancelAsked: boolean
  /** Somebody waits for its end. */
  keepsResult: boolean
  /** The queue it goes to when its delivery ends. */
  moveTo: string | null
  priority: number
  batch: string | null
  dedupKey: string | null
  enqueuedAt: number
  payload: string
  progress: string | null
  reason: string | null
  history: { number: number; outcome: string }[]
}

export interface ModelBatch {
  sealed: boolean
  total: number
  done: number
  dead: number
  cancelled: number
  retries: number
  returned: number
  members: Map<string, string>
  finished: boolean
  /** What follows it, and the batch that has a place for that, while that is there. */
  followUp: { task: NewTask; place: ModelBatch | null; id: string | null } | null
}

export const newBatch = (): ModelBatch => ({
  ...{ sealed: false, total: 0, done: 0, dead: 0, cancelled: 0, retries: 0, returned: 0 },
  ...{ members: new Map(), finished: false, followUp: null },
})

/** How a task ended, as it is kept. */
export interface ModelEnd {
  outcome: 'done' | 'cancelled' | 'dead'
  result: string | null
  type: string
  endsAt: number
}

export type Counts = Record<State | Total, number>

const zero = (): Counts => Object.fromEntries([...states, ...totals].map((name) => [name, 0])) as Counts

/** Ids are whole numbers as text. */
export const byId = (a: { id: string }, b: { id: string }) => Number(a.id) - Number(b.id)

/** Throws when something holds that must not: the engine, the model or the life-cycle table is wrong. */
export function must(condition: unknown, what: string): asserts condition {
  if (!condition) throw new Error(what)
}

export class Model {
  /** The engine's clock in ms; wall-clock instants are this plus `wallShift`. */
  now = 0
  wallShift = 0
  /** True where batches are made in commits of their own: a refused enqueue leaves those that it named, empty. */
  namesStay = false
  /** Told when a task due on the wall clock is reckoned by it as it stands. */
  reckoned = (): void => {}
  /** Told when a call was refused in a transaction, which undoes what was reckoned in it. */
  refused = (): void => {}
  readonly tasks = new Map<string, ModelTask>()
  readonly counts = new Map<string, Counts>()
  readonly paused = new Set<string>()
  readonly dedup = new Map<string, { task: string; endsAt: number | null }>()
  /** Where tasks go that are enqueued as a type of a queue. */
  readonly routes = new Map<string, { queue: string; type: string }>()
  readonly batches = new Map<string, ModelBatch>()
  readonly ends = new Map<string, ModelEnd>()
  readonly workers = new Map<string, ModelWorker>()
  /** Every receipt ever given: which task it was for, and which figures a stale use of it is counted in. */
  readonly receipts = new Map<string, { task: string; figures: string }>()
  private readonly lanes = new Map<string, { queue: string; key: string }>()

  constructor(readonly rules: ReadonlyMap<string, Rules>) {}

  rulesOf(queue: string): Rules {
    const rules = this.rules.get(queue)
    must(rules, `the history has rules for ${queue}`)
    return rules
  }

  countsOf(name: string): Counts {
    let counts = this.counts.get(name)
    if (!counts) {
      counts = zero()
      this.counts.set(name, counts)
    }
    return counts
  }

  /** One step of a task's life; the table says whether it may be, what it counts and what becomes of the receipt. */
  step(task: ModelTask, event: LifeEvent, to: State | null, from: State | null = task.state, into = task): void {
    const row = lifecycle[event]
    must((row.from as readonly unknown[]).includes(from), `the table has no ${event} from ${from}`)
    must((row.to as readonly unknown[]).includes(to), `the table has no ${event} to ${to}`)
    const counts = this.countsOf(figuresOf(task))
    if (from !== null) counts[from]--
    if (to !== null) this.countsOf(figuresOf(into))[to]++
    if (row.counts !== null) counts[row.counts]++
    if (row.receipt === 'spent') task.hold = null
    if (row.receipt === 'lapsed' && task.hold) task.hold.kind = event === 'die' ? 'lapsed by death' : 'lapsed by time'
    if (to === null) this.tasks.delete(task.id)
    else task.state = to
    if (to !== 'scheduled' && to !== 'leased') task.wakeAt = null
  }

  /** What a task that is enqueued as this becomes. */
  landing(queue: string, type: string): { queue: string; type: string } {
    return this.routes.get(figuresOf({ queue, type })) ?? { queue, type }
  }

  batch(task: ModelTask): ModelBatch | undefined {
    return task.batch === null ? undefined : this.batches.get(task.batch)
  }

  countBatch(task: ModelTask, field: 'done' | 'dead' | 'cancelled' | 'retries' | 'returned', delta = 1): void {
    const batch = this.batch(task)
    if (batch) batch[field] += delta
  }

  /** The name of a batch; null for one that was forgotten. */
  nameOf(batch: ModelBatch | null): string | null {
    return [...this.batches].find(([, one]) => one === batch)?.[0] ?? null
  }

  /** At the end of a transaction: sealed batches with nothing open have finished, for ever. Answers those new ones. */
  finish(): ModelBatch[] {
    const over = ({ sealed, finished, total, done, dead, cancelled }: ModelBatch) =>
      sealed && !finished && total === done + dead + cancelled
    const ended = [...this.batches.values()].filter(over)
    for (const batch of ended) batch.finished = true
    return ended
  }

  /** The task's row is gone: its dedup key's window begins, its key has room. */
  gone(task: ModelTask, outcome: ModelEnd['outcome'] = 'cancelled', result: string | null = null): void {
    const { dedupWindowMs } = this.rulesOf(task.queue)
    const keepMs = this.keepMsOf(task)
    if (keepMs > 0) this.ends.set(task.id, { outcome, result, type: task.type, endsAt: this.now + keepMs })
    this.freeDedup(task, dedupWindowMs > 0 ? this.now + dedupWindowMs : null)
    this.touch(task)
  }

  keepMsOf(task: { queue: string; keepsResult: boolean }): number {
    return Math.max(this.rulesOf(task.queue).resultKeepMs, task.keepsResult ? 600_000 : 0)
  }

  /** A task gives its dedup key up where it holds it: in its queue, and in the one that it was asked to move to. */
  private freeDedup(task: ModelTask, endsAt: number | null): void {
    for (const queue of task.moveTo === null ? [task.queue] : [task.queue, task.moveTo]) {
      const name = dedupName(queue, task.dedupKey)
      const held = this.dedup.get(name)
      if (held?.task !== task.id) continue
      if (endsAt === null) this.dedup.delete(name)
      else held.endsAt = endsAt
    }
  }

  /** Answers whether the task holds its dedup key in that queue now. */
  private takeDedup(task: ModelTask, queue: string): boolean {
    const name = dedupName(queue, task.dedupKey)
    const held = this.dedup.get(name)
    if (held && held.task !== task.id && (held.endsAt === null || held.endsAt > this.now)) return false
    this.dedup.set(name, { task: task.id, endsAt: null })
    return true
  }

  /** The wall clock jumped: tasks due on it are due at another instant of the engine's clock. */
  rewall(): void {
    for (const task of this.tasks.values()) {
      if (task.state === 'scheduled' && task.wallAt !== null) task.wakeAt = Math.round(task.wallAt - this.wallShift)
    }
  }

  /** Any end but an ack of a task that somebody asked to cancel. */
  cancelled(task: ModelTask, event: LifeEvent): 'cancelled' {
    this.step(task, event, null)
    this.countsOf(figuresOf(task)).cancelled++
    this.countBatch(task, 'cancelled')
    this.gone(task)
    return 'cancelled'
  }

  die(task: ModelTask, event: LifeEvent, reason: string): 'dead' | 'cancelled' {
    if (task.cancelAsked) return this.cancelled(task, event)
    const { deadTo } = this.rulesOf(task.queue)
    if (deadTo !== null && task.moveTo === null) return this.forward(task, event, deadTo, reason)
    const held = this.rulesOf(task.queue).onDead === 'hold' && task.key !== null
    this.step(task, event, 'dead')
    if (!held) task.slot = false
    Object.assign(task, { reason, deadlineAt: null, wallAt: null, hold: null })
    this.countBatch(task, 'dead')
    this.freeDedup(task, null)
    if (!held) this.touch(task)
    return 'dead'
  }

  /** Dead for its queue and its batch; then a task of the queue that takes the dead. */
  private forward(task: ModelTask, event: LifeEvent, queue: string, reason: string): 'dead' {
    this.step(task, event, 'dead')
    this.countBatch(task, 'dead')
    this.freeDedup(task, null)
    this.touch(task)
    const keepMs = this.keepMsOf(task)
    if (keepMs > 0)
      this.ends.set(task.id, { outcome: 'dead', result: reason, type: task.type, endsAt: this.now + keepMs })
    const type = typeIn(queue, task)
    const place = this.now - task.priority * this.rulesOf(queue).headStartMs
    this.step(task, 'deadTo', task.key === null ? 'ready' : 'waiting', 'dead', { ...task, queue, type })
    Object.assign(task, {
      queue,
      type,
      place,
      dueAt: this.now,
      wallAt: null,
      deadlineAt: null,
      hold: null,
      slot: false,
    })
    Object.assign(task, { ...{ spent: 0, releases: 0, deaths: 0, dedupKey: null, batch: null, progress: null } })
    Object.assign(task, { cancelAsked: false, keepsResult: false, drops: false })
    this.touch(task)
    return 'dead'
  }

  /** To another queue: its slot stays behind, its dedup key too if somebody holds it there. */
  move(task: ModelTask, queue: string): void {
    const { state, dedupKey } = task
    const type = typeIn(queue, task)
    this.touch(task)
    this.freeDedup(task, null)
    this.step(task, 'move', state === 'ready' && task.key !== null ? 'waiting' : state, state, { ...task, queue, type })
    Object.assign(task, { queue, type, moveTo: null, slot: false })
    this.touch(task)
    if (state === 'dead' || dedupKey === null) return
    if (!this.takeDedup(task, queue)) task.dedupKey = null
  }

  /** The type it will have there is known from now on, with figures of its own. */
  askMove(task: ModelTask, queue: string): void {
    const { moveTo, dedupKey } = task
    const before = this.dedup.get(dedupName(moveTo ?? '', dedupKey))
    if (moveTo !== null && moveTo !== task.queue && before?.task === task.id) {
      this.dedup.delete(dedupName(moveTo, dedupKey))
    }
    if (dedupKey !== null) this.takeDedup(task, queue)
    task.moveTo = queue
    this.countsOf(figuresOf({ queue, type: typeIn(queue, task) }))
  }

  /** A delivery has ended; what was asked of its task meanwhile is done. */
  moveOn(task: ModelTask): void {
    if (task.moveTo !== null && this.tasks.has(task.id)) this.move(task, task.moveTo)
  }

  exhausted(task: ModelTask): boolean {
    const { deliveriesMax } = this.rulesOf(task.queue)
    return deliveriesMax !== null && task.spent >= deliveriesMax
  }

  remember(task: ModelTask, outcome: string): void {
    task.history = task.history.filter((row) => row.number !== task.number || row.outcome !== outcome)
    task.history.push({ number: task.number, outcome })
  }

  touch(task: ModelTask): void {
    if (task.key !== null) this.lanes.set(JSON.stringify([task.queue, task.key]), { queue: task.queue, key: task.key })
  }

  /** Per key at most `width` tasks hold a slot; those that were due first get the free ones. Answers how many did. */
  promote(): number {
    let promoted = 0
    for (const lane of this.lanes.values()) {
      const ofKey = [...this.tasks.values()].filter((task) => task.queue === lane.queue && task.key === lane.key)
      const free = this.rulesOf(lane.queue).width - ofKey.filter((task) => task.slot).length
      const waiting = ofKey.filter((task) => task.state === 'waiting')
      waiting.sort((a, b) => a.dueAt - b.dueAt || byId(a, b))
      for (const task of waiting.slice(0, Math.max(0, free))) {
        this.step(task, 'promote', 'ready')
        task.slot = true
        promoted++
      }
    }
    this.lanes.clear()
    return promoted
  }

  /** What a claim of these types may take, in the order it must take it. */
  claimable(queue: string, types: readonly string[] | null): ModelTask[] {
    if (this.paused.has(queue)) return []
    return [...this.tasks.values()]
      .filter((task) => task.state === 'ready' && task.queue === queue && (types?.includes(task.type) ?? true))
      .filter((task) => !this.paused.has(figuresOf(task)))
      .sort((a, b) => a.place - b.place || byId(a, b))
  }

  /** The task on which this receipt still acts. */
  heldUnder(receipt: string): ModelTask | undefined {
    const given = this.receipts.get(receipt)
    const task = given && this.tasks.get(given.task)
    return task?.hold?.text === receipt ? task : undefined
  }

  workerOf(name: string): ModelWorker {
    let worker = this.workers.get(name)
    if (!worker) {
      worker = { name, proof: null }
      this.workers.set(name, worker)
    }
    return worker
  }

  /** Counts a stale use where the receipt came from. */
  stale(receipt: string): 'stale' {
    const given = this.receipts.get(receipt)
    if (given) this.countsOf(given.figures).stale++
    return 'stale'
  }
}

export const figuresOf = (task: { queue: string; type: string }) => JSON.stringify([task.queue, task.type])
/** Tasks of no type of their own have none in another queue either. */
export const typeIn = (queue: string, task: { queue: string; type: string }) =>
  task.type === task.queue ? queue : task.type
export const dedupName = (queue: string, key: string | null) => JSON.stringify([queue, key])
