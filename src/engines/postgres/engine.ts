// The PostgreSQL engine: many machines, one writing connection a process; each verb is a call in a shared transaction.
import type {
  Amended,
  Change,
  ClaimAsk,
  Claimed,
  Descriptor,
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
} from '../../engine/contract.js'
import type { Ask, AsyncEngine, Effect } from '../../engine/transactions.js'
import { assert } from '../../ground/assert.js'
import type { Clock, Random } from '../../ground/clock.js'
import { PieceworkError } from '../../ground/errors.js'
import type { Outcome } from '../../task/lifecycle.js'
import { deadToOf } from '../named.js'
import { amend, type Wanted } from './amend.js'
import { answered, keptText, requestName } from './answer.js'
import { Asked } from './asked.js'
import { Catalog } from './catalog.js'
import { claim, Marks } from './claim.js'
import { configure } from './configure.js'
import { enqueue, nameAll, nameDeaths, nameTypes, withPromoted } from './enqueue.js'
import { translated } from './errors.js'
import { type ClientPool, driver, type Link, Links, type LinksOptions } from './link.js'
import { type Liveness, leasesOnly, SessionLiveness } from './liveness.js'
import { measure } from './measure.js'
import { OpenOnes } from './open-ones.js'
import type { Unnamed } from './schedules.js'
import { quoted } from './schema.js'
import { select } from './select.js'
import { enter, Session } from './session.js'
import { extend, settle } from './settle.js'
import { type Statements, statementsIn } from './statements.js'
import { lockClassOf, migrateStore } from './store.js'
import { Sweeper } from './sweeper.js'
import { type Call, Turn } from './turn.js'
import { type Identity, Visits } from './visit.js'
import { Wake } from './wake.js'
import { Beats, join } from './workers.js'

export interface PostgresOptions extends LinksOptions {
  /** The schema that holds the store; default `piecework`. */
  schema?: string | undefined
  /** Make the schema when it is missing; default true. */
  create?: boolean | undefined
  /** How long claims may start at a remembered place before they look at everything, ms; default 250. */
  rescanEveryMs?: number | undefined
  /** Replaces the session locks by which dead processes are known, for simulations. */
  proofs?: Liveness | undefined
}

interface Ports {
  clock: Clock
  random: Random
}

/** The engine over a database, by URL or through a caller's pool; not yet opened. */
export const postgresEngine = (
  source: { url: string } | { pool: ClientPool },
  ports: Ports,
  options: PostgresOptions = {},
): Engine => new PostgresEngine(source, ports, options)

/** Everything that exists between open and close. */
interface Opened {
  links: Links
  turn: Turn
  wake: Wake
  beats: Beats
  liveness: Liveness
  sweeper: Sweeper
  marks: Marks
  asked: Asked
  visits: Visits
}

class PostgresEngine implements AsyncEngine {
  readonly traits: Traits
  private readonly schema: string
  private readonly q: Statements
  private readonly catalog: Catalog
  private opened: Opened | null = null
  private opening: Promise<void> | null = null

  constructor(
    private readonly source: { url: string } | { pool: ClientPool },
    private readonly ports: Ports,
    private readonly options: PostgresOptions,
  ) {
    this.schema = options.schema ?? 'piecework'
    this.q = statementsIn(this.schema)
    this.catalog = new Catalog(this.q)
    this.traits = { transactions: 'async', liveness: 'lock', wake: 'push', threads: 'url' in source, sweeps: 'clients' }
  }

  open(): Promise<void> {
    this.opening ??= this.start().catch((error) => {
      this.opening = null
      throw error
    })
    return this.opening
  }

  async close(): Promise<void> {
    const { opened } = this
    this.opened = null
    this.opening = null
    if (!opened) return
    await opened.turn.settled()
    opened.visits.close()
    opened.wake.close()
    opened.liveness.drop()
    opened.links.close()
  }

  async migrate(dryRun: boolean): Promise<string[]> {
    await driver()
    const links = new Links(this.source, this.options, this.ports.clock)
    try {
      return await this.migrateOver(links, dryRun, true)
    } finally {
      links.close()
    }
  }

  descriptor(): Descriptor | null {
    if (!('url' in this.source)) return null
    const { connectMs, statementMs } = this.options
    return { engine: 'postgres', url: this.source.url, schema: this.schema, create: false, connectMs, statementMs }
  }

  async enqueue(requestId: string | null, tasks: readonly NewTask[], tx?: unknown): Promise<Enqueued[]> {
    if (tx !== undefined) return this.use().visits.enqueue(tasks, tx)
    const request = requestId === null ? null : requestName('enqueue', requestId)
    // What was stored before stays as it was answered, whoever makes room for its tasks now.
    let fresh = false
    const first = (s: Session) => {
      fresh = true
      return enqueue(s, tasks)
    }
    return this.call({
      before: async (link) => {
        // What was answered before makes no names again: a batch may have been sealed or forgotten since.
        if (request !== null) {
          const { nowUs } = await enter(link, this.q)
          if ((await link.run(this.q.answerOf, [request, Math.floor(nowUs / 1000)])).length > 0) return
        }
        await nameAll(link, this.q, this.catalog, tasks)
      },
      work: (s) => {
        fresh = false
        return answered(s, request, tasks, () => first(s))
      },
      promoted: (answers, ids, s) => {
        if (!fresh) return answers
        const now = withPromoted(answers, ids)
        if (request !== null && ids.size > 0) s.send(this.q.setAnswer, request, keptText(tasks, now))
        return now
      },
      repeatable: request !== null,
      items: tasks.length,
    })
  }

  async claim(ask: ClaimAsk): Promise<Claimed> {
    const { wake, marks, asked } = this.use()
    const { worker, requestId, wants } = ask
    if (requestId === null || asked.isNew(worker, requestId)) {
      const quiet = wake.quiet(wants.map((want) => want.queue))
      if (quiet) return { deliveries: [], ...quiet, blockedBy: [] }
    }
    if (requestId !== null) asked.sent(worker, requestId)
    const items = wants.reduce((sum, want) => sum + want.max, 0)
    const claimed = await this.call({
      work: (s) => claim(s, ask, marks),
      repeatable: requestId !== null,
      items,
      // A first delivery that a crash forgets is handed out again; a task handed out before must keep its new fence.
      relaxed: ({ deliveries }) => deliveries.every((delivery) => delivery.number === 1),
    })
    const blocked = claimed.blockedBy.map(({ queue }) => queue)
    if (blocked.length > 0) wake.hold(blocked, claimed.nextDueMs)
    return claimed
  }

  settle(by: { worker: string; flush: string | null }, verdicts: readonly Verdict[], tx?: unknown): Promise<Outcome[]> {
    if (tx !== undefined) return this.use().visits.settle(verdicts, tx)
    const request = by.flush === null ? null : requestName('settle', by.worker, by.flush)
    return this.call({
      work: (s) => answered(s, request, verdicts, () => settle(s, verdicts)),
      repeatable: request !== null,
      items: verdicts.length,
    })
  }

  ackWithin(receipt: string, tx: unknown): Promise<Ask> {
    return this.callers((visits) => visits.ackWithin(receipt, tx))
  }

  once(effect: Effect, tx: unknown): Promise<boolean> {
    return this.callers((visits) => visits.once(effect, tx))
  }

  transact<T>(work: (tx: unknown) => Promise<T>): Promise<T> {
    return this.callers((visits) => visits.transact(work))
  }

  extend(
    _worker: string,
    asks: readonly { receipt: string; leaseMs: number; progress?: string | undefined }[],
  ): Promise<Held[]> {
    let looks = 0
    const work = (s: Session) => extend(s, asks, ++looks < extendLooks)
    return this.call({ work, items: asks.length, relaxed: () => true })
  }

  async worker(event: 'join' | 'beat' | 'leave', info: WorkerInfo): Promise<{ alive: boolean; cancelled: string[] }> {
    const { beats, liveness, asked } = this.use()
    if (event === 'join') asked.joined(info.worker)
    if (event === 'leave') asked.left(info.worker)
    if (event === 'beat') {
      const { alive, cancelled, proof } = await beats.beat(info)
      // The heartbeat's thread holds the proof as well: its loop is never blocked when a lost session must lock again.
      if (proof !== null) await liveness.hold(proof)
      return { alive, cancelled }
    }
    // Our lock proves the life of this machine's workers only; one that joins from afar has none.
    const ours = info.bootId === this.ports.clock.bootId
    const proof = event === 'join' && ours ? await liveness.hold(null) : null
    if (event === 'leave') beats.forget(info.worker)
    return this.call({
      work: async (s) => {
        if (event === 'join') await join(s, info, proof)
        else await s.run(this.q.leave, [info.worker])
        return { alive: event === 'join', cancelled: [] }
      },
      repeatable: true,
    })
  }

  sweep(max: number): Promise<Swept> {
    return this.use().sweeper.sweep(max)
  }

  wait(queues: readonly string[], ms: number, signal: AbortSignal): Promise<boolean> {
    return this.use().wake.wait(queues, ms, signal)
  }

  configure(kind: Kind, name: string, patch: Patch | null, actor: string): Promise<Patch> {
    const unnamed: Unnamed = []
    const followUp = kind === 'batch' ? (patch?.followUp as NewTask | undefined) : undefined
    const deadTo = kind === 'queue' && patch !== null ? deadToOf(patch) : null
    return this.call<Patch>({
      before: async (link) => {
        if (followUp) await nameTypes(link, this.q, this.catalog, [followUp])
        if (deadTo !== null) await nameDeaths(link, this.q, this.catalog, name, deadTo)
        await nameAll(link, this.q, this.catalog, unnamed.splice(0))
      },
      work: (s) => configure(s, kind, name, patch, { actor, unnamed }),
    })
  }

  select(kind: Kind, filter: Filter, cursor: string | null): Promise<Page> {
    return this.read((s) => select(s, kind, filter, cursor))
  }

  amend(filter: Filter, change: Change, actor: string, bounds: { max: number; dryRun: boolean }): Promise<Amended> {
    const wanted: Wanted[] = []
    return this.call({
      before: (link) => nameTypes(link, this.q, this.catalog, wanted.splice(0)),
      work: (s) => amend(s, filter, change, actor, { ...bounds, wanted }),
      items: bounds.max,
      long: true,
    })
  }

  /** Everything that another connection can see is on the server's disk: `durable` has nothing to wait for. */
  measure(queues: readonly string[] | null): Promise<Figures> {
    return this.read((s) => measure(s, queues))
  }

  private async start(): Promise<void> {
    await driver()
    const { clock, random } = this.ports
    const links = new Links(this.source, this.options, clock)
    let identity: Identity | undefined
    try {
      await this.migrateOver(links, false, this.options.create !== false)
      ;[identity] = await links.use((link) => link.run<Identity>(this.q.identity))
      const [right] = await links.use((link) => link.run<{ may: boolean }>(this.q.sweeper, [this.schema]))
      // A user who may only add tasks leaves the sweeping to others.
      if (right?.may === false) Object.assign(this.traits, { sweeps: 'store' })
    } catch (error) {
      links.close()
      throw translated(error, links.name)
    }
    assert(identity, 'the store has its row')
    if (!links.sessions) Object.assign(this.traits, { liveness: 'lease', wake: 'poll' })
    const { q, catalog, schema } = this
    const lockClass = lockClassOf(schema)
    const marks = new Marks(clock, this.options.rescanEveryMs ?? 250)
    const wake = new Wake(links, q, clock, random, schema)
    const woken = (types: ReadonlyMap<number, number>) => {
      marks.lower(types)
      wake.signal(catalog.queuesOf(types.keys()))
    }
    const turn = new Turn({ links, q, schema: quoted(schema), catalog, clock, random, lockClass, woken })
    const liveness = this.options.proofs ?? (links.sessions ? new SessionLiveness(links, q, clock) : leasesOnly)
    const beats = new Beats(q, clock, (work) => links.use(work))
    const sweeper = new Sweeper({ links, q, turn, liveness, lockClass })
    const open = new OpenOnes(links, q, clock, woken)
    const pool = 'pool' in this.source ? this.source.pool : null
    const visits = new Visits({ links, q, catalog, random, schema: quoted(schema), identity, pool, open, woken })
    this.opened = { links, turn, wake, beats, liveness, sweeper, marks, asked: new Asked(), visits }
  }

  private async migrateOver(links: Links, dryRun: boolean, create: boolean): Promise<string[]> {
    const { schema } = this
    try {
      return await links.use((link) => migrateStore(link, { schema, name: links.name, dryRun, create }), true)
    } catch (error) {
      throw translated(error, links.name)
    }
  }

  private use(): Opened {
    if (!this.opened) throw new PieceworkError('PW_CLOSED', 'This PostgreSQL store is not open.')
    return this.opened
  }

  private async callers<T>(call: (visits: Visits) => Promise<T>): Promise<T> {
    return call(this.use().visits)
  }

  private async call<T>(call: Call<T>): Promise<T> {
    return this.use().turn.run(call)
  }

  /** Runs reads in one snapshot. */
  private async read<T>(work: (s: Session) => Promise<T>): Promise<T> {
    const { links } = this.use()
    try {
      return await links.use(async (link) => {
        const begin = () => link.begin('isolation level repeatable read read only')
        const [, row] = await link.all([begin, () => enter(link, this.q)])
        const { nowUs, settings } = row as { nowUs: number; settings: number }
        await this.catalog.validFor(settings, link)
        const answer = await work(this.session(link, nowUs, false))
        await link.say('commit')
        return answer
      }, true)
    } catch (error) {
      throw translated(error, links.name)
    }
  }

  private session(link: Link, nowUs: number, foreign: boolean): Session {
    return new Session(link, this.q, this.catalog, this.ports.random, quoted(this.schema), nowUs, foreign)
  }
}

/** How often an extension comes again for a row that somebody else has locked: some 100 ms. */
const extendLooks = 20
