// The workers a store knows: joining, leaving, and beats that all workers of a process send together.
import type { WorkerInfo } from '../../engine/contract.js'
import type { Clock } from '../../ground/clock.js'
import type { Link } from './link.js'
import type { Session } from './session.js'
import type { Statements } from './statements.js'

export async function join(s: Session, info: WorkerInfo, proof: string | null): Promise<void> {
  const { worker, host, pid, bootId, queues, concurrency, busy, prefetched } = info
  const values = [worker, host, pid, bootId, proof, JSON.stringify(queues), concurrency, busy, prefetched, s.now]
  await s.run(s.q.join, values)
}

export interface Beaten {
  alive: boolean
  cancelled: string[]
  proof: string | null
}

/** With more workers than this, beats wait for each other, 8 ms a worker and at most 400 ms: fewer statements. */
const aloneMax = 4

/** Beats of one process: what comes within a moment goes in one statement. */
export class Beats {
  #waiting = new Map<string, { info: WorkerInfo; hear: ((answer: Beaten) => void)[]; fail: ((e: unknown) => void)[] }>()
  #seen = new Set<string>()
  #planned = false

  constructor(
    private readonly q: Statements,
    private readonly clock: Clock,
    private readonly use: <T>(work: (link: Link) => Promise<T>) => Promise<T>,
  ) {}

  /** Not alive when the store does not know the worker any more: it was declared dead, or it left. */
  beat(info: WorkerInfo): Promise<Beaten> {
    this.#seen.add(info.worker)
    return new Promise((resolve, reject) => {
      const waiting = this.#waiting.get(info.worker) ?? { info, hear: [], fail: [] }
      this.#waiting.set(info.worker, { info, hear: [...waiting.hear, resolve], fail: [...waiting.fail, reject] })
      if (this.#planned) return
      this.#planned = true
      const go = () => void this.#send()
      if (this.#seen.size <= aloneMax) this.clock.soon(go)
      else this.clock.after(Math.min(400, this.#seen.size * 8), go, true)
    })
  }

  forget(worker: string): void {
    this.#seen.delete(worker)
  }

  async #send(): Promise<void> {
    const waiting = this.#waiting
    this.#waiting = new Map()
    this.#planned = false
    const infos = [...waiting.values()].map((one) => one.info)
    const values = [infos.map((one) => one.worker), infos.map((one) => one.busy), infos.map((one) => one.prefetched)]
    try {
      type Row = { name: string; proof: string | null; cancelled: string[] }
      const rows = await this.use((link) => link.run<Row>(this.q.beat, values))
      for (const [name, { hear }] of waiting) {
        const row = rows.find((one) => one.name === name)
        const answer = { alive: row !== undefined, cancelled: row?.cancelled ?? [], proof: row?.proof ?? null }
        for (const tell of hear) tell(answer)
      }
    } catch (error) {
      for (const { fail } of waiting.values()) for (const tell of fail) tell(error)
    }
  }
}
