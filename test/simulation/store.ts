// The one store of a simulated run: the real engine, and an observer who tells which call changed what, in order.
import type { Database } from 'better-sqlite3'
import type { Engine } from '../../dist/engine/contract.js'
import { seededRandom } from '../../dist/testing/seeded-random.js'
import { answerTold, askTold } from './calls.js'
import { keepChronicle } from './chronicle.js'
import { type Brackets, Disk } from './disk.js'
import type { Counts, Happening } from './events.js'
import type { House } from './house.js'
import { Owner, type Scheduler } from './scheduler.js'

export type Verb = 'enqueue' | 'claim' | 'settle' | 'extend' | 'worker' | 'sweep' | 'amend' | 'configure'

/** What the observer needs to see of the engine; names of private fields, so that a rename is noticed at once. */
interface Skin {
  opened: {
    db: Database
    session: { q: Brackets; now: number; clock: { wallMs(): number } }
    turn: { run: Run; readonly idle: boolean }
    liveness: { hold(): string | null }
  }
}

type Run = (work: (session: unknown) => unknown, ...rest: unknown[]) => Promise<unknown>

type Told = Extract<Happening, { is: 'ran' | 'change' | 'batch' }>

export class Store {
  readonly disk: Disk
  private readonly dead = new Set<string>()
  private calls = 0
  /** The call whose work runs, 0 before the first of a transaction; each call's commit. */
  private running = 0
  private readonly ranIn = new Map<number, number>()
  /** What the transaction in progress has done so far. */
  private pending: Told[] = []

  private constructor(
    readonly engine: Engine,
    private readonly tell: (happening: Happening) => void,
    disk: Disk,
  ) {
    this.disk = disk
  }

  static async open(house: House, scheduler: Scheduler, seed: number, tell: (h: Happening) => void): Promise<Store> {
    const owner = new Owner('store')
    const clock = scheduler.clockOf(owner)
    const disk = new Disk(scheduler, owner, tell)
    const port = { now: () => disk.syncNow(), close() {} }
    let store: Store | null = null
    const liveness = {
      // Each process has a proof of its own, which only the call that it makes can know.
      hold: () => null,
      isDead: (proof: string) => store?.dead.has(proof) ?? false,
      held: null,
      drop() {},
      clear() {},
    }
    const engine = house.engineFor('sqlite::memory:', {
      ...{ clock, liveness, random: seededRandom(seed) },
      syncer: house.syncer(clock, disk.sync, port),
    })
    await engine.open()
    store = new Store(engine, tell, disk)
    store.observe()
    return store
  }

  /** Hands a call to the engine on behalf of a process and tells what becomes of it. */
  hand(verb: Verb, args: readonly unknown[], from: { process: string; proof: string | null; copy?: boolean }) {
    const call = ++this.calls
    this.tell({ is: 'ask', call, process: from.process, copy: from.copy === true, asked: askTold(verb, args) })
    const method = this.engine[verb] as (...args: readonly unknown[]) => Promise<unknown>
    const answer = method.apply(this.seenBy(call, from.proof), [...args])
    answer.then(
      (value) => {
        const { synced } = this.disk
        this.tell({ is: 'answer', call, commit: this.ranIn.get(call) ?? null, synced, answer: answerTold(verb, value) })
      },
      (error) => this.tell({ is: 'refused', call, code: String((error as { code?: unknown }).code) }),
    )
    return { call, answer }
  }

  close(): void {
    this.skin.db.close()
  }

  /** The process with this proof is gone, and the store can know it. */
  bury(proof: string): void {
    this.dead.add(proof)
  }

  set full(full: boolean) {
    this.disk.fill(this.skin.db, full)
  }

  /** Every figure, and beside it the engine's own full count. */
  async figures(): Promise<void> {
    const { types } = await this.engine.measure(null, false)
    const proof = (await this.engine.select('proof', {}, null)).items as unknown as FiguresOf[]
    this.tell({
      is: 'figures',
      types: types.map(({ queue, type, paused: _p, backlogAgeMs: _b, leaseAgeMaxMs: _l, ...counts }) => ({
        ...{ queue, type, counts },
      })),
      proof: proof.map(({ name, shown, counted }) => ({ name, shown, counted })),
    })
  }

  private get skin(): Skin['opened'] {
    return (this.engine as unknown as Skin).opened
  }

  /** The engine as one call holds it: however late the call comes to its work, the work tells whose it is. */
  private seenBy(call: number, proof: string | null): Engine {
    const { engine, skin } = this
    const { turn, liveness } = skin
    const run: Run = (work, ...rest) => turn.run((s) => this.ran(call, () => work(s)), ...rest)
    const own = {
      turn: Object.create(turn, { run: { value: run } }),
      liveness: { ...liveness, hold: () => proof },
    }
    return Object.create(engine, { opened: { value: { ...skin, ...own } } }) as Engine
  }

  private ran(call: number, work: () => unknown): unknown {
    const { now, clock } = this.skin.session
    this.running = call
    // What the transaction did before its first call, it did for that one: time given back to leases.
    for (const told of this.pending) told.call ||= call
    this.pending.push({ is: 'ran', call, commit: this.disk.commit + 1, now, wallMs: clock.wallMs() })
    return work()
  }

  private observe(): void {
    const { db, session } = this.skin
    const where = () => ({ call: this.running, commit: this.disk.commit + 1 })
    keepChronicle(db, {
      task: (before, after) => this.pending.push({ is: 'change', ...where(), now: session.now, before, after }),
      batch: (before, after) => this.pending.push({ is: 'batch', ...where(), before, after }),
    })
    this.disk.stand(session.q, {
      committed: () => {
        for (const told of this.pending) {
          if (told.is === 'ran') this.ranIn.set(told.call, told.commit)
          this.tell(told)
        }
        this.running = 0
        this.pending = []
      },
      grew: () => this.pending.some((told) => told.is === 'change' && told.before === null),
      undone: () => {
        this.running = 0
        this.pending = []
      },
    })
  }
}

interface FiguresOf {
  name: string
  shown: Counts
  counted: Counts
}
