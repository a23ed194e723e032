// A real engine in memory that can be put back into any state it was in, with a clock that stands still.
import assert from 'node:assert/strict'
import type { Database } from 'better-sqlite3'
import type { Engine } from '../../dist/engine/contract.js'
import type { Clock } from '../../dist/ground/clock.js'
import { states, totals } from '../../dist/task/lifecycle.js'
import { seededRandom } from '../../dist/testing/seeded-random.js'
import type { EngineFor } from '../engine/subject.js'
import { byId, type Model } from '../model/model.js'

/** What is reached for under the skin of the engine: its tables, and what it remembers of them. */
interface Skin {
  opened: { db: Database; session: { catalog: { forget(): void } } }
}

/** Every row of every table, by table. */
export type Saved = ReadonlyMap<string, readonly unknown[][]>

const taskRows = `select t.id, q.name as queue, state, place, dueAt, wakeAt, number, spent, releases, deaths, fence,
  slot, flags & 1 as cancelAsked from piecework_task t join piecework_queue q on q.id = t.queue order by t.id`
const figureRows = `select q.name as queue, ${[...states, ...totals].map((name) => `t.${name}`)}
  from piecework_type t join piecework_queue q on q.id = t.queue order by q.name`

const wallAhead = 2_000_000_000_000

export class Stage {
  now = 1_000_000
  dead = new Set<string>()
  readonly engine: Engine
  private joining: string | null = null
  private looks: { tasks(): unknown[]; figures(): unknown[] } | null = null
  private tables: { name: string; all(): unknown[][]; clear(): void; put(row: unknown[]): void }[] = []

  constructor(engineFor: EngineFor) {
    const clock: Clock = {
      monotonicMs: () => this.now,
      wallMs: () => this.now + wallAhead,
      uptimeMs: () => this.now,
      bootId: 'boot',
      // Nothing here waits for a timer: time passes by the walk's hand alone.
      after: () => ({ cancel() {} }),
      soon: queueMicrotask,
    }
    const isDead = (proof: string) => this.dead.has(proof)
    const liveness = { hold: () => this.joining, isDead, held: null, drop() {}, clear() {} }
    this.engine = engineFor('sqlite::memory:', { clock, liveness, random: seededRandom(1) })
  }

  async open(): Promise<void> {
    await this.engine.open()
    const { db } = this.skin
    const names = db.prepare("select name from sqlite_master where type = 'table'").pluck().all() as string[]
    const tasks = db.prepare(taskRows)
    const figures = db.prepare(figureRows)
    this.looks = { tasks: () => tasks.all(), figures: () => figures.all() }
    this.tables = names.map((name) => {
      const all = db.prepare(`select * from ${name}`).raw()
      const clear = db.prepare(`delete from ${name}`)
      const put = db.prepare(`insert into ${name} values (${all.columns().map(() => '?')})`)
      return {
        name,
        all: () => all.all() as unknown[][],
        clear: () => void clear.run(),
        put: (row) => void put.run(...row),
      }
    })
  }

  /** The worker of this name, whose death can be known. */
  async join(worker: string): Promise<void> {
    this.joining = worker
    const where = { host: 'host', pid: 1, bootId: 'boot', proof: null }
    await this.engine.worker('join', { worker, ...where, queues: ['q'], concurrency: 1, busy: 0, prefetched: 0 })
  }

  /** Throws when a task's row or a figure is not what the model says; as quick as it can be. */
  look(m: Model): void {
    const tasks = [...m.tasks.values()].sort(byId).map((task) => {
      const { queue, state, place, dueAt, wakeAt, number, spent, releases, deaths, fence, slot, cancelAsked } = task
      const row = { id: Number(task.id), queue, state: states.indexOf(state) + 1, place, dueAt, wakeAt, number }
      return { ...row, spent, releases, deaths, fence, slot: Number(slot), cancelAsked: Number(cancelAsked) }
    })
    assert.deepEqual(this.looks?.tasks(), tasks, 'the rows of the tasks')
    const figures = [...m.counts].map(([name, counts]) => ({ queue: JSON.parse(name)[0], ...counts }))
    const byQueue = (a: { queue: string }, b: { queue: string }) => (a.queue < b.queue ? -1 : 1)
    assert.deepEqual(this.looks?.figures(), figures.sort(byQueue), 'the figures')
  }

  save(): Saved {
    return new Map(this.tables.map(({ name, all }) => [name, all()]))
  }

  load(saved: Saved): void {
    const { db, session } = this.skin
    db.exec('begin')
    for (const { name, clear, put } of this.tables) {
      clear()
      for (const row of saved.get(name) ?? []) put(row)
    }
    db.exec('commit')
    session.catalog.forget()
  }

  private get skin(): Skin['opened'] {
    return (this.engine as unknown as Skin).opened
  }
}
