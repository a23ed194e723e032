// Wakes those who wait for work: at once for commits of this process, by NOTIFY for those of others, else by polling.
import type { Client } from 'pg'
import type { Clock, Random, Timer } from '../../ground/clock.js'
import type { Held, Link, Links } from './link.js'
import type { Statements } from './statements.js'

interface Waiter {
  queues: readonly string[]
  end: (woken: boolean) => void
}

interface Polled {
  due: number | null
  ending: number | null
  nowUs: number
  ready: string[]
}

/** How often a waiting process asks when nobody tells it; jittered to earlier. Commits of callers' transactions and
 * lost notifications are found so. */
const pollMs = 1000
/** The first question after a wake-up that found nothing; each further one waits twice as long. */
const pollMsMin = 100
/** Notifications of one process are at least so far apart: each takes a lock that all committers share. */
const notifyMs = 20

export class Wake {
  readonly #waiters = new Set<Waiter>()
  #ear: Held | 'starting' | null = null
  #poll: Timer | null = null
  #waitMs = pollMsMin
  #last: { atMs: number; answer: Polled; queues: ReadonlySet<string> } | null = null
  #closed = false
  /** Queues whose ready tasks nobody may claim, until an instant of the monotonic clock or somebody tells more. */
  readonly #held = new Map<string, number>()
  readonly #toTell = new Set<string>()
  #toldAtMs = Number.NEGATIVE_INFINITY
  #telling: Timer | null = null

  constructor(
    private readonly links: Links,
    private readonly q: Statements,
    private readonly clock: Clock,
    private readonly random: Random,
    private readonly channel: string,
  ) {}

  /** Resolves true when one of the queues may have work, false after `ms` or when the signal aborts. */
  wait(queues: readonly string[], ms: number, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false)
    return new Promise((resolve) => {
      const end = (woken: boolean) => {
        timer.cancel()
        signal.removeEventListener('abort', abort)
        this.#waiters.delete(waiter)
        resolve(woken)
      }
      const abort = () => end(false)
      const timer = this.clock.after(ms, abort, true)
      const waiter = { queues, end }
      signal.addEventListener('abort', abort, { once: true })
      this.#waiters.add(waiter)
      this.#listen()
      this.#plan()
    })
  }

  /** Tells of ready tasks in these queues: those who wait here now, those elsewhere soon. */
  signal(queues: ReadonlySet<string>): void {
    this.#hear(queues)
    for (const queue of queues) this.#toTell.add(queue)
    if (this.#telling || this.#closed) return
    const waitMs = Math.max(0, notifyMs - (this.clock.monotonicMs() - this.#toldAtMs))
    this.#telling = this.clock.after(waitMs, () => void this.#tell())
  }

  /** When a poll has just seen that these queues have nothing ready: ms until something is due; else undefined. */
  quiet(queues: readonly string[]): { nextDueMs: number | null } | undefined {
    const last = this.#last
    if (last === null || this.#poll === null || !queues.every((queue) => last.queues.has(queue))) return undefined
    const ageMs = this.clock.monotonicMs() - last.atMs
    const { due, ending, nowUs } = last.answer
    const next = Math.min(due ?? Number.POSITIVE_INFINITY, ending ?? Number.POSITIVE_INFINITY)
    const nextDueMs = next === Number.POSITIVE_INFINITY ? null : next - nowUs / 1000 - ageMs
    if (ageMs > pollMs * 1.5 || (nextDueMs !== null && nextDueMs <= 0)) return undefined
    return { nextDueMs: nextDueMs === null ? null : Math.ceil(nextDueMs) }
  }

  /** A claim found these queues paused or under a limit: until `ms` or a wake-up, ready tasks there are no work. */
  hold(queues: readonly string[], ms: number | null): void {
    for (const queue of queues) this.#held.set(queue, this.clock.monotonicMs() + (ms ?? pollMs))
  }

  close(): void {
    this.#closed = true
    this.#poll?.cancel()
    this.#telling?.cancel()
    for (const waiter of [...this.#waiters]) waiter.end(false)
    this.#deafen()
  }

  /** Ends the session that listens; the next wait begins another one. */
  #deafen(): void {
    if (this.#ear === null || this.#ear === 'starting') return
    this.#ear.end()
    this.#ear = null
  }

  #hear(queues: ReadonlySet<string>): void {
    this.#last = null
    for (const queue of queues) this.#held.delete(queue)
    for (const waiter of [...this.#waiters]) if (waiter.queues.some((queue) => queues.has(queue))) waiter.end(true)
  }

  async #tell(): Promise<void> {
    const queues = [...this.#toTell]
    this.#toTell.clear()
    this.#telling = null
    this.#toldAtMs = this.clock.monotonicMs()
    // 8000 bytes are a notification's limit; an empty list means any queue.
    const text = JSON.stringify(queues)
    const payload = Buffer.byteLength(text) < 7900 ? text : '[]'
    // Polling finds what could not be told.
    await this.links.use((link) => link.run(this.q.notify, [this.channel, payload])).catch(() => {})
  }

  #plan(): void {
    if (this.#poll || this.#closed) return
    this.#poll = this.clock.after(this.#waitMs * (0.75 + this.random() / 4), () => void this.#ask())
    this.#waitMs = Math.min(pollMs, this.#waitMs * 2)
  }

  async #ask(): Promise<void> {
    const queues = new Set([...this.#waiters].flatMap((waiter) => waiter.queues))
    if (queues.size > 0) {
      const atMs = this.clock.monotonicMs()
      const ask = (link: Link) => link.run<Polled>(this.q.poll, [[...queues]])
      const [answer] = await this.links.use(ask).catch(() => {
        // What is silent for statements may be so for notifications, and would stay so unnoticed.
        this.#deafen()
        return []
      })
      const free = answer?.ready.filter((queue) => (this.#held.get(queue) ?? 0) <= atMs) ?? []
      if (free.length > 0) {
        this.#waitMs = pollMsMin
        this.#hear(new Set(free))
      } else if (answer?.ready.length === 0) this.#last = { atMs, answer, queues }
    }
    this.#poll = null
    if (this.#waiters.size > 0) this.#plan()
    else this.#waitMs = pollMsMin
  }

  #listen(): void {
    if (this.#ear !== null || !this.links.sessions || this.#closed) return
    this.#ear = 'starting'
    void this.links
      .keep(() => {
        this.#ear = null
      })
      .then(async (held) => {
        const client = held.link.executor as Client
        client.on('notification', ({ payload = '[]' }) => this.#told(payload))
        await held.link.say(`listen "${this.channel.replaceAll('"', '""')}"`)
        this.#ear = held
        if (this.#closed) held.end()
      })
      .catch(() => {
        // The next wait tries again; polling goes on meanwhile.
        this.#ear = null
      })
  }

  #told(payload: string): void {
    let queues: string[] = []
    try {
      queues = JSON.parse(payload) as string[]
    } catch {
      // Somebody else's words on our channel wake nobody.
      return
    }
    if (queues.length === 0) for (const waiter of this.#waiters) queues.push(...waiter.queues)
    this.#hear(new Set(queues))
  }
}
