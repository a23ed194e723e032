// Group commit on PostgreSQL: what is asked for while one transaction is under way goes into the next, in call order.
import type { Clock, Random } from '../../ground/clock.js'
import { pause } from '../../ground/clock.js'
import type { Catalog } from './catalog.js'
import { isBusy, isLost, translated } from './errors.js'
import type { Link, Links } from './link.js'
import { enter, Session } from './session.js'
import type { Statements } from './statements.js'

/** Answered by work that must go on in another transaction: its keys promoted, or `before` run again. */
export const again = Symbol('again')

export interface Call<T> {
  work(s: Session): Promise<T | typeof again>
  /** Runs before the transaction begins, in commits of its own: names that the work will use. */
  before?: ((link: Link) => Promise<void>) | undefined
  /** Runs in the transaction that promoted what the work had touched; answers what the caller gets. */
  promoted?: ((answer: T, ids: ReadonlySet<number>, s: Session) => T) | undefined
  /** True when the call may be sent twice: its answer is stored with it. */
  repeatable?: boolean | undefined
  /** It may take as long as a list or a full count. */
  long?: boolean | undefined
  /** How many tasks it touches at most. */
  items?: number | undefined
  /** Says of an answer that a crash of the server may take it back: then no commit waits for its disk. */
  relaxed?: ((answer: T) => boolean) | undefined
}

interface Entry extends Call<unknown> {
  resolve: (answer: never) => void
  reject: (error: unknown) => void
  busySinceMs: number | null
  lost: boolean
}

/** How long a call that meets others is tried again before PW_BUSY. */
const busyMs = 30_000
/** Tasks touched by one transaction. */
const itemsMax = 2000

export interface TurnPorts {
  links: Links
  q: Statements
  schema: string
  catalog: Catalog
  clock: Clock
  random: Random
  /** Names the locks of this store. */
  lockClass: number
  /** Told after a commit which types have new ready tasks, each with its lowest new place. */
  woken: (types: ReadonlyMap<number, number>) => void
}

export class Turn {
  private pending: Entry[] = []
  private running: Promise<void> | null = null

  constructor(private readonly ports: TurnPorts) {}

  get catalog(): Catalog {
    return this.ports.catalog
  }

  /** Resolves with the answer once it is committed. */
  run<T>(call: Call<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.pending.push({ ...call, resolve, reject, busySinceMs: null, lost: false } as Entry)
      this.running ??= new Promise((done) => {
        this.ports.clock.soon(() => {
          void this.drain().then(done)
        })
      })
    })
  }

  /** Resolves when nothing is pending; for close(). */
  async settled(): Promise<void> {
    while (this.running) await this.running
  }

  /** Promotes the first waiting tasks of these keys in a transaction of their own; answers their ids. */
  async promote(
    link: Link,
    lanes: readonly { queue: number; key: string }[],
    also: (ids: ReadonlySet<number>, s: Session) => void = () => {},
  ): Promise<Set<number>> {
    const { q, catalog, lockClass } = this.ports
    const s = await this.begin(link)
    const [queues, keys] = [lanes.map((lane) => lane.queue), lanes.map((lane) => lane.key)]
    await s.run(q.lockLanes, [queues, keys, lockClass])
    const widths = queues.map((queue) => catalog.policyOf(queue).perKey.width)
    s.send(q.takeLanes, queues, keys)
    const rows = await s.run<{ id: number; type: number }>(q.promote, [queues, keys, widths])
    for (const { type } of rows) {
      s.count('promote', type, 'waiting', 'ready')
      s.readied(type, Number.NEGATIVE_INFINITY)
    }
    const ids = new Set(rows.map((row) => row.id))
    also(ids, s)
    await this.commit(s)
    return ids
  }

  private async drain(): Promise<void> {
    while (this.pending.length > 0) await this.transact(this.takeNext())
    this.running = null
  }

  /** The calls of the next transaction, in the order they came: one, and as many more as fit. */
  private takeNext(): Entry[] {
    let count = 0
    let items = 0
    while (count < this.pending.length) {
      items += this.pending[count]?.items ?? 1
      if (count > 0 && items > itemsMax) break
      count++
    }
    return this.pending.splice(0, count)
  }

  private async transact(entries: Entry[]): Promise<void> {
    let culprit: Entry | null = null
    let committing = false
    const long = entries.some((entry) => entry.long)
    try {
      await this.ports.links.use(async (link) => {
        for (const entry of entries) {
          culprit = entry
          await entry.before?.(link)
        }
        culprit = null
        const s = await this.begin(link)
        const answers: unknown[] = []
        for (const entry of entries) {
          culprit = entry
          const answer = await entry.work(s)
          answers.push(answer)
          // Keys are promoted in a transaction of their own, and the next call may want what that makes ready.
          if (s.lanes.size > 0 || answer === again) break
        }
        culprit = null
        committing = true
        const relaxed = answers.every((answer, i) => answer !== again && entries[i]?.relaxed?.(answer))
        await this.commit(s, relaxed)
        committing = false
        const done = entries.splice(0, answers.length)
        if (entries.length > 0) this.pending.unshift(...entries.splice(0))
        await this.answer(link, s, done, answers)
      }, long)
    } catch (error) {
      await this.failed(entries, culprit, committing, error)
    }
  }

  private async begin(link: Link): Promise<Session> {
    const { q, catalog, random, schema } = this.ports
    const [, row] = await link.all([() => link.begin(), () => enter(link, q)])
    const { nowUs, settings } = row as { nowUs: number; settings: number }
    await catalog.validFor(settings, link)
    return new Session(link, q, catalog, random, schema, nowUs)
  }

  private async commit(s: Session, relaxed = false): Promise<void> {
    for (const { queue, key } of s.lanes.values()) s.add(s.q.addLanes, queue, key)
    // A failure in what was gathered has been thrown before this can answer that nothing was kept.
    await s.finish(relaxed ? 'set local synchronous_commit = off; commit' : 'commit')
    if (s.woken.size > 0) this.ports.woken(s.woken)
  }

  /** Promotes what the calls touched, then answers them; they are committed, whatever becomes of the promotion. */
  private async answer(link: Link, s: Session, done: Entry[], answers: unknown[]): Promise<void> {
    if (s.lanes.size > 0) {
      try {
        await this.promote(link, [...s.lanes.values()], (ids, promotion) => {
          for (const [i, entry] of done.entries()) {
            const now = entry.promoted?.(answers[i], ids, promotion)
            if (answers[i] !== again && now !== undefined) answers[i] = now
          }
        })
      } catch {
        // The notes of the keys are committed: the next sweep finds them.
        await link.say('rollback').catch(() => {})
      }
    }
    for (const [i, entry] of done.entries()) {
      if (answers[i] === again) this.pending.unshift(entry)
      else entry.resolve(answers[i] as never)
    }
  }

  private async failed(entries: Entry[], culprit: Entry | null, committing: boolean, error: unknown): Promise<void> {
    const { clock, random, links, catalog } = this.ports
    catalog.forget()
    const wrong = translated(error, links.name)
    const nowMs = clock.monotonicMs()
    const patient = (entry: Entry) => {
      if (isBusy(error)) {
        entry.busySinceMs ??= nowMs
        return nowMs - entry.busySinceMs < busyMs
      }
      if (!isLost(error)) return culprit !== null && entry !== culprit
      // Whether a commit happened is not known: only what stores its answer with it is sent again.
      const first = !entry.lost && (!committing || entry.repeatable === true)
      entry.lost = true
      return first
    }
    const later = entries.filter((entry) => {
      if (patient(entry)) return true
      entry.reject(wrong)
      return false
    })
    this.pending.unshift(...later)
    if (isBusy(error) && later.length > 0) await pause(clock, 1 + random() * 9)
  }
}
