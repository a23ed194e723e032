// How a dead process is known within a second: it holds a session's advisory lock, which the server lets go with it.
import { randomBytes } from 'node:crypto'
import type { Clock } from '../../ground/clock.js'
import { pause } from '../../ground/clock.js'
import type { Held, Links } from './link.js'
import type { Statements } from './statements.js'

/** What a look at the store told of those who should live. */
export interface Look {
  /** The workers with a proof, and their proofs. */
  ids: number[]
  proofs: string[]
  /** The numbers of the advisory locks that sessions hold. */
  held: string[]
  /** How long the server has been up. */
  upMs: number
}

/** The liveness port of the engine; a simulator decides by itself who lives. */
export interface Liveness {
  /** Takes this process's lock, or holds another process's proof with it; answers the proof. */
  hold(proof: string | null): Promise<string | null>
  /** The workers that are certainly dead, and in how many ms to look again when some may be. */
  dead(look: Look): { ids: number[]; againMs: number | null }
  drop(): void
}

/** Where sessions are shared, nobody's death can be seen: leases alone tell. */
export const leasesOnly: Liveness = { hold: async () => null, dead: () => ({ ids: [], againMs: null }), drop() {} }

/** Missing in three looks, each so long after the one before: a session that was lost has locked again by then. */
const looksApartMs = 120
const looksMin = 3
/** After a restart, a fail-over or a break of our own, everybody gets so long to come back. */
const calmMs = 3000

/**
 * A connection of its own that holds the locks, shared ones, so that the main thread and the heartbeat's thread can
 * both hold the one of their process; a session that is lost is replaced and locks again at once.
 */
export class SessionLiveness implements Liveness {
  readonly #proofs = new Set<string>()
  readonly #missing = new Map<string, { looks: number; atMs: number }>()
  #own: string | null = null
  #keeper: Promise<Held> | null = null
  #ownMissing = 0
  #dropped = false

  constructor(
    private readonly links: Links,
    private readonly q: Statements,
    private readonly clock: Clock,
  ) {}

  async hold(proof: string | null): Promise<string> {
    this.#own ??= proof ?? String(randomBytes(7).readUIntBE(0, 6) + 1)
    const wanted = proof ?? this.#own
    const known = this.#proofs.has(wanted)
    this.#proofs.add(wanted)
    if (this.#keeper === null) await this.#start()
    else if (!known) {
      const keeper = await this.#keeper
      await keeper.link.run(this.q.holdProof, [wanted])
    }
    return wanted
  }

  dead({ ids, proofs, held, upMs }: Look): { ids: number[]; againMs: number | null } {
    this.#lookAfterOwn(held)
    const now = this.clock.monotonicMs()
    const calm = upMs >= calmMs && now - this.links.shakenAtMs >= calmMs
    const missing = new Set(proofs.filter((proof) => !held.includes(proof) && !this.#proofs.has(proof)))
    for (const proof of this.#missing.keys()) if (!missing.has(proof) || !calm) this.#missing.delete(proof)
    if (missing.size === 0) return { ids: [], againMs: null }
    if (!calm) return { ids: [], againMs: looksApartMs }
    for (const proof of missing) {
      const { looks, atMs } = this.#missing.get(proof) ?? { looks: 0, atMs: Number.NEGATIVE_INFINITY }
      if (now - atMs >= looksApartMs) this.#missing.set(proof, { looks: looks + 1, atMs: now })
    }
    const gone = ids.filter((_, i) => (this.#missing.get(proofs[i] as string)?.looks ?? 0) >= looksMin)
    return { ids: gone, againMs: gone.length === missing.size ? null : looksApartMs }
  }

  drop(): void {
    this.#dropped = true
    this.#proofs.clear()
    void this.#keeper?.then((keeper) => keeper.end()).catch(() => {})
  }

  /** A session that ended without a word to us, as behind a proxy: it locks again before others look a third time. */
  #lookAfterOwn(held: readonly string[]): void {
    const missing = this.#own !== null && this.#keeper !== null && !held.includes(this.#own)
    // Once may be a look from before we had locked.
    this.#ownMissing = missing ? this.#ownMissing + 1 : 0
    if (this.#ownMissing < 2) return
    this.#ownMissing = 0
    void this.#keeper?.then((keeper) => keeper.end()).catch(() => {})
    void this.#again()
  }

  async #start(): Promise<void> {
    const keeper = this.links.keep(() => void this.#again())
    this.#keeper = keeper
    try {
      const { link } = await keeper
      await link.all([...this.#proofs].map((proof) => () => link.run(this.q.holdProof, [proof])))
      if (this.#dropped) (await keeper).end()
    } catch (error) {
      if (this.#keeper === keeper) this.#keeper = null
      throw error
    }
  }

  async #again(): Promise<void> {
    for (let waitMs = 10; !this.#dropped; waitMs = Math.min(waitMs * 2, 200)) {
      try {
        return await this.#start()
      } catch {
        await pause(this.clock, waitMs)
      }
    }
  }
}
