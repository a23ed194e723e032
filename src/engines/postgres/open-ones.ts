// Callers' transactions that were open when we last looked: once one has committed, those who wait for its tasks hear.
import type { Clock, Timer } from '../../ground/clock.js'
import type { Links } from './link.js'
import type { Statements } from './statements.js'

/** Types (ids) that have new ready tasks, each with its lowest new place. */
export type Woken = ReadonlyMap<number, number>

/** How long after the first statement of one the first question comes, and the longest pause between two. */
const askMsMin = 20
const askMsMax = 250
/** Who waits polls as well: what is open for longer is left to that. */
const forgetMs = 600_000

interface Open {
  atMs: number
  woken: Map<number, number>
}

export class OpenOnes {
  readonly #open = new Map<string, Open>()
  #timer: Timer | null = null
  #waitMs = askMsMin
  #closed = false

  constructor(
    private readonly links: Links,
    private readonly q: Statements,
    private readonly clock: Clock,
    private readonly woken: (types: Woken) => void,
  ) {}

  /** Follows the transaction with this number until it has ended. */
  add(xid: string, woken: Woken): void {
    if (woken.size === 0 || this.#closed) return
    const open = this.#open.get(xid) ?? { atMs: this.clock.monotonicMs(), woken: new Map() }
    merge(open.woken, woken)
    this.#open.set(xid, open)
    this.#waitMs = askMsMin
    this.#plan()
  }

  close(): void {
    this.#closed = true
    this.#timer?.cancel()
    this.#open.clear()
  }

  #plan(): void {
    if (this.#timer || this.#closed || this.#open.size === 0) return
    this.#timer = this.clock.after(this.#waitMs, () => void this.#ask())
    this.#waitMs = Math.min(askMsMax, this.#waitMs * 2)
  }

  async #ask(): Promise<void> {
    const xids = [...this.#open.keys()]
    // Polling finds what could not be asked for.
    const rows = await this.links
      .use((link) => link.run<{ xid: string; status: string | null }>(this.q.ended, [xids]))
      .catch(() => [])
    for (const { xid, status } of rows) {
      const open = this.#open.get(xid)
      const old = open !== undefined && this.clock.monotonicMs() - open.atMs > forgetMs
      if (open === undefined || (status === 'in progress' && !old)) continue
      this.#open.delete(xid)
      if (status === 'committed') this.woken(open.woken)
    }
    this.#timer = null
    this.#plan()
  }
}

/** Adds types to a map, each at the lower of two places. */
export function merge(into: Map<number, number>, woken: Woken): void {
  for (const [type, place] of woken) into.set(type, Math.min(place, into.get(type) ?? place))
}
