// Claims tasks when there is need of them, one claim at a time, and waits at the engine when there are none.
import type { ClaimedTask } from '../engine/contract.js'
import { pause } from '../ground/clock.js'
import type { Crew } from './crew.js'
import type { Pace } from './pace.js'
import { againMs, isFatal, type Shift } from './shift.js'

/** The longest wait for work before looking again: covers a wake-up that never came. */
const waitMsMax = 1000
/** The shortest: something due that keeps being not yet there must not become a busy loop. */
const waitMsMin = 1

export interface FetchPorts {
  readonly shift: Shift
  readonly crew: Crew
  readonly pace: Pace
  readonly queue: string
  readonly types: readonly string[] | null
}

export class Fetch {
  readonly #ports: FetchPorts
  #open = false
  #round: Promise<void> | null = null
  #requests = 0
  /** The monotonic clock before the claim was sent. */
  #sentAt = 0
  #failures = 0
  #claimedAt: number | null = null
  /** The last claim got less than it asked for: the next one may come back empty. */
  #dry = true

  constructor(ports: FetchPorts) {
    this.#ports = ports
  }

  /** The wall clock at the last claim that the engine answered; null before the first. */
  get claimedAt(): number | null {
    return this.#claimedAt
  }

  /** True while the last claim was answered. */
  get healthy(): boolean {
    return this.#failures === 0
  }

  start(): void {
    this.#open = true
    this.tick()
  }

  /** Claims no more; resolves when the claim in flight was answered and its tasks were handed on. */
  async stop(): Promise<void> {
    this.#open = false
    await this.#round
  }

  /** Claims if the crew can use tasks and no claim is in flight. */
  tick(): void {
    if (!this.#open || this.#round) return
    const max = this.#ports.crew.demand()
    if (max > 0) this.#round = this.#claim(max)
  }

  async #claim(max: number): Promise<void> {
    let claimed: ClaimedTask[] = []
    try {
      claimed = await this.#once(max)
    } catch (error) {
      await this.#failed(error)
    }
    this.#round = null
    // Whoever takes the tasks says when there is room for more; that may be before it returns.
    if (claimed.length > 0) this.#ports.crew.accept(claimed, this.#sentAt)
    else this.tick()
  }

  /** One claim; when it finds nothing, a wait for work as well. */
  async #once(max: number): Promise<ClaimedTask[]> {
    const { shift, pace, queue, types } = this.#ports
    const { engine, clock, worker, closing, repeats } = shift
    // Listening begins before the claim is sent: what is enqueued while it is on its way would else go unheard.
    const ear = this.#dry ? new AbortController() : null
    const woken = ear && engine.wait([queue], waitMsMax, AbortSignal.any([ear.signal, closing]))
    woken?.catch(() => {})
    try {
      const sentAt = clock.monotonicMs()
      // The leases of a request that is repeated run from its first time.
      if (!repeats || this.#failures === 0) this.#sentAt = sentAt
      const requestId = repeats ? String(this.#requests) : null
      const { deliveries, nextDueMs } = await engine.claim({ worker, requestId, wants: [{ queue, types, max }] })
      this.#requests++
      this.#failures = 0
      this.#claimedAt = clock.wallMs()
      this.#dry = deliveries.length < max
      if (deliveries.length > 0) pace.claimed(clock.monotonicMs() - sentAt)
      else if (woken && nextDueMs === null) await woken
      else if (woken) await Promise.race([woken, pause(clock, Math.max(nextDueMs ?? 0, waitMsMin), ear?.signal)])
      return deliveries
    } finally {
      ear?.abort()
    }
  }

  async #failed(error: unknown): Promise<void> {
    const { events, fatal, random, clock, closing } = this.#ports.shift
    if (isFatal(error)) fatal(error)
    else events.trouble(error)
    if (!closing.aborted) await pause(clock, againMs(random, this.#failures++), closing)
  }
}
