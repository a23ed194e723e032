// One test of the conformance suite: a fresh store, a handle on it, and short ways to say what a test does.
import assert from 'node:assert/strict'
import type {
  Change,
  ClaimAsk,
  ClaimedTask,
  Engine,
  Enqueued,
  ErrorText,
  Filter,
  Held,
  NewTask,
  Swept,
  TypeFigures,
  Verdict,
  WorkerInfo,
} from '../engine/contract.js'
import { type Outcome, type State, states } from '../task/lifecycle.js'
import type { AuditRecord, BatchRecord, HistoryRecord, QueueRecord, TaskRecord } from '../task/records.js'

/** An empty store that nobody else uses, and what can be made to happen around it. */
export interface TestStore {
  /** A new handle, not opened; where stores persist each is another process as far as the engine can tell. */
  engine(): Engine
  /** What a worker of this machine tells as its boot id. */
  readonly bootId: string
  /** Lets `ms` pass on every clock that the engine reads. */
  advance(ms: number): Promise<void>
  /** Sets the wall clock of the machine ahead (back: below 0); no other clock moves. */
  jumpWall(ms: number): void
  /** The process of this worker, which joined, is gone, and the store can know it. */
  die(worker: string): void
  /** Closes every handle and removes the store. */
  remove(): Promise<void>
}

/** A chapter of the suite; `needs` is what a store must be able to do for it. */
export interface Chapter {
  readonly title: string
  readonly needs?: 'persists' | 'deaths' | 'wallClock'
  readonly tests: Readonly<Record<string, (t: Trial) => Promise<void>>>
}

type Given = Partial<NewTask>
type Ask = Partial<Omit<ClaimAsk, 'wants'>> & { queue?: string; types?: readonly string[] | null; max?: number }

const failed: ErrorText = { code: null, text: 'it failed' }

export class Trial {
  engine: Engine
  private flushes = 0

  constructor(
    readonly store: TestStore,
    private readonly handle = 1,
  ) {
    this.engine = store.engine()
  }

  /** A second handle on the same store, opened, with the same short ways. */
  async another(): Promise<Trial> {
    const other = new Trial(this.store, this.handle + 1)
    await other.engine.open()
    return other
  }

  /** Enqueues in queue `q`, payload `1`, unless said otherwise; answers what the engine answers. */
  enqueue(...tasks: Given[]): Promise<Enqueued[]> {
    return this.engine.enqueue(
      null,
      tasks.map((task) => ({ queue: 'q', payload: '1', ...task })),
    )
  }

  /** As `enqueue`, answers the ids. */
  async add(...tasks: Given[]): Promise<string[]> {
    return (await this.enqueue(...tasks)).map(({ id }) => id)
  }

  /** Claims for worker `w` from queue `q`, 100 at most, unless said otherwise. */
  async claim({ queue = 'q', types = null, max = 100, ...ask }: Ask = {}): Promise<ClaimedTask[]> {
    const wants = [{ queue, types, max }]
    return (await this.engine.claim({ worker: 'w', requestId: null, wants, ...ask })).deliveries
  }

  /** Claims exactly one task; there must be one. */
  async take(ask: Ask = {}): Promise<ClaimedTask> {
    const [delivery] = await this.claim({ ...ask, max: 1 })
    assert.ok(delivery, 'there is a task to claim')
    return delivery
  }

  /** Settles under a flush number of its own. */
  settle(...verdicts: Verdict[]): Promise<Outcome[]> {
    return this.engine.settle({ worker: 'w', flush: `${this.handle} ${++this.flushes}` }, verdicts)
  }

  async ack({ receipt }: { receipt: string }): Promise<Outcome | undefined> {
    return (await this.settle({ receipt, do: 'ack' }))[0]
  }

  async retry({ receipt }: { receipt: string }, delayMs?: number, error = failed): Promise<Outcome | undefined> {
    return (await this.settle({ receipt, do: 'retry', delayMs, error }))[0]
  }

  async bury({ receipt }: { receipt: string }, error = failed): Promise<Outcome | undefined> {
    return (await this.settle({ receipt, do: 'bury', error }))[0]
  }

  async release(
    { receipt }: { receipt: string },
    by: Extract<Verdict, { do: 'release' }>['by'] = 'stop',
    delayMs?: number,
  ): Promise<Outcome | undefined> {
    return (await this.settle({ receipt, do: 'release', by, delayMs }))[0]
  }

  async extend({ receipt }: { receipt: string }, leaseMs: number, progress?: string): Promise<Held | undefined> {
    return (await this.engine.extend('w', [{ receipt, leaseMs, progress }]))[0]
  }

  sweep(): Promise<Swept> {
    return this.engine.sweep(1000)
  }

  advance(ms: number): Promise<void> {
    return this.store.advance(ms)
  }

  amend(filter: Filter, change: Change['do'] | Change, max = 1000, dryRun = false) {
    const what = typeof change === 'string' ? ({ do: change } as Change) : change
    return this.engine.amend(filter, what, 'tester', { max, dryRun })
  }

  /** Lays the operator's policy over queue `q`. */
  policy(operator: Record<string, unknown>, queue = 'q') {
    return this.engine.configure('queue', queue, { operator }, 'tester')
  }

  worker(event: 'join' | 'beat' | 'leave', worker: string) {
    const { bootId } = this.store
    const info: WorkerInfo = {
      worker,
      host: 'here',
      pid: 1,
      bootId,
      queues: ['q'],
      concurrency: 1,
      busy: 0,
      prefetched: 0,
      proof: null,
    }
    return this.engine.worker(event, info)
  }

  /** Every task that fits, over all pages. */
  async tasks(filter: Filter = {}): Promise<TaskRecord[]> {
    const found: TaskRecord[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page = await this.engine.select('task', { limit: 1000, ...filter }, cursor === '' ? null : cursor)
      found.push(...(page.items as unknown as TaskRecord[]))
      cursor = page.next
    }
    return found
  }

  /** One task; it must be there. */
  async task(id: string | undefined): Promise<TaskRecord> {
    const [task] = await this.tasks({ ids: [id ?? ''] })
    assert.ok(task, `task ${id} is there`)
    return task
  }

  async state(id: string | undefined): Promise<State | 'gone'> {
    return (await this.tasks({ ids: [id ?? ''] }))[0]?.state ?? 'gone'
  }

  async history(id: string | undefined): Promise<HistoryRecord[]> {
    return (await this.engine.select('history', { ids: [id ?? ''] }, null)).items as unknown as HistoryRecord[]
  }

  async batch(name: string): Promise<BatchRecord> {
    const [batch] = (await this.engine.select('batch', { name }, null)).items
    assert.ok(batch, `batch ${name} is there`)
    return batch as unknown as BatchRecord
  }

  /** Seals batch `b`; answers how it then stands. */
  seal(name = 'b') {
    return this.engine.configure('batch', name, { sealed: true }, 'tester')
  }

  /** Says what follows batch `b`: a task in queue `after`, payload `"end"`, unless said otherwise. */
  follow(task: Given = {}, name = 'b') {
    const followUp = { queue: 'after', payload: '"end"', ...task }
    return this.engine.configure('batch', name, { followUp }, 'tester')
  }

  async queue(name = 'q'): Promise<QueueRecord> {
    const [queue] = (await this.engine.select('queue', { name }, null)).items
    assert.ok(queue, `queue ${name} is there`)
    return queue as unknown as QueueRecord
  }

  async audits(): Promise<AuditRecord[]> {
    return (await this.engine.select('audit', {}, null)).items as unknown as AuditRecord[]
  }

  /** The figures of one type of a queue; they must be there. */
  async figures(queue = 'q', type = queue): Promise<TypeFigures> {
    const found = (await this.engine.measure([queue], true)).types.find((row) => row.type === type)
    assert.ok(found, `figures of ${queue}/${type} are there`)
    return found
  }

  /** What the engine's wall clock shows. */
  async wallMs(): Promise<number> {
    return (await this.engine.measure([], false)).at
  }

  /** Every state figure equals a full count, ours and the engine's own (P12). */
  async proveCounts(): Promise<void> {
    for (const { name, shown, counted } of (await this.engine.select('proof', {}, null)).items) {
      assert.deepEqual(shown, counted, `the figures of ${name} by the engine's own full count`)
    }
    const tasks = await this.tasks()
    for (const row of (await this.engine.measure(null, true)).types) {
      const mine = tasks.filter((task) => task.queue === row.queue && task.type === row.type)
      for (const state of states) {
        const full = mine.filter((task) => task.state === state).length
        assert.equal(row[state], full, `${state} of ${row.queue}/${row.type} by figure and by full count`)
      }
    }
  }
}

/** The ids of rows, in their order. */
export const idsOf = (rows: readonly { id: string }[]): string[] => rows.map(({ id }) => id)

/** Asserts that `actual` has the fields of `expected` with equal values; it may have others. */
export function like(actual: object | undefined, expected: Record<string, unknown>): void {
  const found = actual as Record<string, unknown> | undefined
  assert.deepEqual(Object.fromEntries(Object.keys(expected).map((field) => [field, found?.[field]])), expected)
}

/** Asserts that the call is refused with this code. */
export async function refused(call: Promise<unknown>, code: string): Promise<void> {
  const answer = await call.then(
    () => 'accepted',
    (error: { code?: unknown }) => error.code ?? error,
  )
  assert.equal(answer, code)
}
