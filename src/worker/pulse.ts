// The rounds of a heartbeat, in a thread or on the loop: extend what is held, end what is overdue, say "alive".
import type { Engine, Verdict, WorkerInfo } from '../engine/contract.js'
import type { Clock } from '../ground/clock.js'
import type { Outcome } from '../task/lifecycle.js'

/** A worker says at least this often that it lives, and hears which of its tasks were cancelled. */
const beatEveryMs = 500
/** How long after timeoutMs the lease goes on and the loop may settle the delivery before the thread does. */
const timeoutGraceMs = 100
/** The lease outlives the timeout by so much: a settle needs a lease that lives. */
const leaseAfterTimeoutMs = 1000
const leaseMsMin = 100
/** The longest time between two rounds; beats are as much early as a round may be late. */
const roundMsMax = 160

/** Engines reckon in whole milliseconds: a lease ends by theirs up to so much before it would by ours. */
const roundedMs = 1

/** When a lease is over for its holder that was asked for at `sentAt`: never after it is for the engine. */
export const leaseEnd = (sentAt: number, leaseMs: number): number => sentAt + leaseMs - roundedMs

/** How far a held delivery is; a settling one keeps its lease until its verdict was answered. */
export const phases = { unstarted: 0, running: 1, settling: 2 } as const

/** A held delivery as a heartbeat sees it. Instants are of the monotonic clock, which all threads share. */
export interface Lease {
  receipt: string
  leaseMs: number
  endsAt: number
  /** When its handler has run for timeoutMs; before it starts: when it has waited too long for a blocked loop. */
  overdueAt: number
  /** One of `phases`. */
  phase: number
}

/** What a heartbeat has found out; plain data, so that it can come from a thread. */
export type News =
  | { is: 'extended'; receipt: string; endsAt: number }
  | { is: 'lost'; receipt: string }
  | { is: 'cancelled'; receipt: string }
  | { is: 'timedOut'; receipt: string; outcome: Outcome }
  | { is: 'dead' }
  | { is: 'failed'; code: string; message: string }

export interface PulsePorts<L extends Lease> {
  readonly engine: Engine
  readonly clock: Clock
  readonly info: WorkerInfo
  /** Everything held now. */
  readonly held: () => readonly L[]
  /** Claims the right to end an overdue delivery; false when the loop ends it itself. */
  readonly take: (lease: L) => boolean
  readonly extended: (lease: L, endsAt: number) => void
  readonly tell: (news: News) => void
}

/** How often a round is due: often enough to extend the shortest lease in good time. */
export const roundEveryMs = (leaseMsLowest: number) => Math.min(roundMsMax, Math.max(10, leaseMsLowest / 6))

export class Pulse<L extends Lease> {
  readonly #ports: PulsePorts<L>
  readonly #inFlight = new Set<Promise<void>>()
  #extending = false
  #beating = false
  #beatAt = Number.NEGATIVE_INFINITY
  #failing = false
  /** Verdicts on deliveries taken from the loop that were not sent yet. */
  #ending: Verdict[] = []
  /** Those that were sent: an array that nobody adds to, sent again as it is until the engine has answered. */
  #sent: { flush: string | null; verdicts: readonly Verdict[] } | null = null
  #flushes = 0
  #endingNow = false

  constructor(ports: PulsePorts<L>) {
    this.#ports = ports
  }

  /** Starts what is due; calls that are still unanswered are not repeated. Never throws. */
  round(): void {
    const { clock, held, take } = this.#ports
    const now = clock.monotonicMs()
    const leases: L[] = []
    for (const lease of held()) {
      if (lease.overdueAt + timeoutGraceMs <= now && take(lease)) this.#end(lease)
      else leases.push(lease)
    }
    if ((this.#sent !== null || this.#ending.length > 0) && !this.#endingNow) this.#track(this.#settle())
    if (!this.#extending) {
      const due = leases.filter((lease) => isDue(lease, now))
      if (due.length > 0) this.#track(this.#extend(due))
    }
    if (!this.#beating && now - this.#beatAt >= beatEveryMs - roundMsMax) {
      const count = (phase: number) => leases.reduce((sum, lease) => sum + (lease.phase === phase ? 1 : 0), 0)
      const counts = { busy: count(phases.running), prefetched: count(phases.unstarted) }
      this.#beatAt = now
      this.#track(this.#beat({ ...this.#ports.info, ...counts }))
    }
  }

  /** Resolves when every call made so far was answered. */
  async settled(): Promise<void> {
    while (this.#inFlight.size > 0) await Promise.all(this.#inFlight)
  }

  #track(call: Promise<void>): void {
    this.#inFlight.add(call)
    void call.finally(() => this.#inFlight.delete(call))
  }

  async #extend(due: L[]): Promise<void> {
    const { engine, clock, info, extended, tell } = this.#ports
    this.#extending = true
    try {
      const now = clock.monotonicMs()
      const asks = due.map((lease) => ({ receipt: lease.receipt, leaseMs: Math.round(nextEnd(lease, now) - now) }))
      const answers = await engine.extend(info.worker, asks)
      for (let i = 0; i < due.length; i++) {
        const lease = due[i] as L
        if (answers[i] === 'stale') {
          tell({ is: 'lost', receipt: lease.receipt })
          continue
        }
        const endsAt = leaseEnd(now, (asks[i] as { leaseMs: number }).leaseMs)
        extended(lease, endsAt)
        tell({ is: 'extended', receipt: lease.receipt, endsAt })
        if (answers[i] === 'cancelled') tell({ is: 'cancelled', receipt: lease.receipt })
      }
      this.#failing = false
    } catch (error) {
      this.#failed(error)
    }
    this.#extending = false
  }

  #end({ receipt, phase }: L): void {
    if (phase === phases.unstarted) this.#ending.push({ receipt, do: 'release', by: 'unstarted' })
    else {
      const text = 'The handler ran longer than timeoutMs, and its event loop was blocked.'
      this.#ending.push({ receipt, do: 'retry', error: { code: 'PW_TIMEOUT', text } })
    }
  }

  async #settle(): Promise<void> {
    const { engine, info, tell } = this.#ports
    this.#sent ??= { flush: this.#nextFlush(), verdicts: this.#ending.splice(0) }
    const { flush, verdicts } = this.#sent
    this.#endingNow = true
    try {
      const outcomes = await engine.settle({ worker: info.worker, flush }, verdicts)
      this.#sent = null
      for (let i = 0; i < verdicts.length; i++) {
        const { receipt, do: what } = verdicts[i] as Verdict
        if (what === 'retry') tell({ is: 'timedOut', receipt, outcome: outcomes[i] as Outcome })
      }
      this.#failing = false
    } catch (error) {
      this.#failed(error)
    }
    this.#endingNow = false
    // What came meanwhile; after a failure the next round tries again.
    if (this.#sent === null && this.#ending.length > 0) this.#track(this.#settle())
  }

  /** Where an answer can be lost, a name to ask for it again; none that the loop gives to its own flushes. */
  #nextFlush(): string | null {
    return this.#ports.engine.traits.transactions === 'sync' ? null : `overdue ${++this.#flushes}`
  }

  async #beat(info: WorkerInfo): Promise<void> {
    const { engine, tell } = this.#ports
    this.#beating = true
    try {
      const { alive, cancelled } = await engine.worker('beat', info)
      for (const receipt of cancelled) tell({ is: 'cancelled', receipt })
      if (!alive) tell({ is: 'dead' })
      this.#failing = false
    } catch (error) {
      this.#failed(error)
    }
    this.#beating = false
  }

  /** Only the first failure of a row is told; the next round tries again. */
  #failed(error: unknown): void {
    if (this.#failing) return
    this.#failing = true
    const { code, message } = error as { code?: unknown; message?: unknown }
    this.#ports.tell({ is: 'failed', code: String(code), message: String(message) })
  }
}

/**
 * A third of the lease has passed, and a longer one is allowed. A settling one waits for the last third: its verdict
 * is nearly always answered before, and an extension that came after it would count as stale.
 */
function isDue(lease: Lease, now: number): boolean {
  const left = (lease.leaseMs * (lease.phase === phases.settling ? 1 : 2)) / 3
  return now >= lease.endsAt - left && now < lastEnd(lease) && leaseEnd(nextEnd(lease, now), 0) > lease.endsAt
}

const nextEnd = (lease: Lease, now: number) => Math.max(Math.min(now + lease.leaseMs, lastEnd(lease)), now + leaseMsMin)

const lastEnd = (lease: Lease) =>
  lease.phase === phases.unstarted ? Number.POSITIVE_INFINITY : lease.overdueAt + leaseAfterTimeoutMs
