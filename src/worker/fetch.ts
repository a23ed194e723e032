// Claims tasks when there is need of them, one claim at a time, and waits at the engine when there are none.
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
  /** When the request that is still unanswered was first sent; its leases run from then. */
  #askedAt: number | null = null
  #failures = 0
  #claimedAt: number | null = null

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

  async #claim(first: number): Promise<void> {
    let max = first
    do {
      try {
        await this.#once(max)
      } catch (error) {
        await this.#failed(error)
      }
      max = this.#open ? this.#ports.crew.demand() : 0
    } while (max > 0)
    // In the same step as the last look at the demand: a tick that comes later must not be missed.
    this.#round = null
  }

  async #once(max: number): Promise<void> {
    const { shift, crew, pace, queue, types } = this.#ports
    const { engine, clock, worker, closing, repeats } = shift
    const sentAt = clock.monotonicMs()
    this.#askedAt ??= sentAt
    const requestId = repeats ? String(this.#requests) : null
    const { deliveries, nextDueMs } = await engine.claim({ worker, requestId, wants: [{ queue, types, max }] })
    const askedAt = this.#askedAt
    this.#askedAt = null
    this.#requests++
    this.#failures = 0
    this.#claimedAt = clock.wallMs()
    if (deliveries.length > 0) {
      pace.claimed(clock.monotonicMs() - sentAt)
      crew.accept(deliveries, askedAt)
    } else if (!closing.aborted) {
      const ms = Math.min(Math.max(nextDueMs ?? waitMsMax, waitMsMin), waitMsMax)
      await engine.wait([queue], ms, closing)
    }
  }

  async #failed(error: unknown): Promise<void> {
    const { events, fatal, random, clock, closing, repeats } = this.#ports.shift
    if (!repeats) this.#askedAt = null
    if (isFatal(error)) fatal(error)
    else events.trouble(error)
    if (!closing.aborted) await pause(clock, againMs(random, this.#failures++), closing)
  }
}
