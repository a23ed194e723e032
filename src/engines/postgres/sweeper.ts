// One sweep: a look that costs one statement, and the transactions for what it found.

import type { Swept } from '../../engine/contract.js'
import { redeliveredKeepMs } from '../../task/limits.js'
import { diedTogether } from '../endings.js'
import { nameAll } from './enqueue.js'
import { translated } from './errors.js'
import type { Links } from './link.js'
import type { Liveness, Look } from './liveness.js'
import { fireDue, type Unnamed } from './schedules.js'
import type { Session } from './session.js'
import type { Statements } from './statements.js'
import { type Done, finishBatches, fold, instants, nothingDone, sweepDead, sweepLate, until } from './sweep.js'
import { again, type Turn } from './turn.js'

interface Watched extends Look {
  nowUs: number
  startedAt: number
  started: number
  due: number | null
  ending: number | null
  deadline: number | null
  slot: number | null
  deltas: boolean
  lanes: boolean
  /** A sealed batch has not finished yet. */
  unfinished: boolean
  answers: number | null
  dedups: number | null
  results: number | null
  effects: number | null
  redelivered: number | null
  workers: number
}

/** After the server was away, running leases last at least so much longer: nobody could extend them. */
const graceMs = 5000

interface SweeperPorts {
  links: Links
  q: Statements
  turn: Turn
  liveness: Liveness
  lockClass: number
}

export class Sweeper {
  constructor(private readonly ports: SweeperPorts) {}

  async sweep(max: number): Promise<Swept> {
    const { links, q, liveness } = this.ports
    const [seen] = await links
      .use((link) => link.run<Watched>(q.watch))
      .catch((error) => {
        throw translated(error, links.name)
      })
    if (!seen) return { ...nothingDone, nextMs: null }
    const dead = liveness.dead(seen)
    const soon = (nextMs: number | null) =>
      dead.againMs === null ? nextMs : Math.min(nextMs ?? dead.againMs, dead.againMs)
    const now = Math.floor(seen.nowUs / 1000)
    const next = until(now, [seen.due, seen.ending, seen.deadline, seen.slot])
    const old = seen.redelivered === null ? null : seen.redelivered + redeliveredKeepMs
    const prunable = until(now, [seen.answers, seen.dedups, seen.results, seen.effects, old]) === 0
    const restarted = seen.started !== seen.startedAt
    if (seen.unfinished) await this.finish()
    const busy = dead.ids.length > 0 || next === 0 || prunable || seen.lanes || restarted
    if (!busy && !seen.deltas) return { ...nothingDone, nextMs: soon(next) }
    const done = busy ? await this.end(max, seen, dead.ids) : { ...nothingDone, nextMs: next }
    const folded = seen.deltas || busy ? await this.fold(max) : 0
    return { ...done, folded, nextMs: soon(done.nextMs) }
  }

  /** Leases, deaths, what is due and late, in as many transactions as keys must be promoted between. */
  private async end(max: number, seen: Watched, dead: readonly number[]): Promise<Swept> {
    const { turn } = this.ports
    const { proofs, ids, workers, started, startedAt } = seen
    const deadProofs = dead.map((worker) => proofs[ids.indexOf(worker)])
    const crash = diedTogether(deadProofs, workers)
    let late = false
    let before: Done = nothingDone
    if (until(Math.floor(seen.nowUs / 1000), [seen.slot]) === 0) await this.fire(max)
    if (seen.lanes) before = { ...before, promoted: await this.promoteNotes(max) }
    const plus = (ids: ReadonlySet<number>) => {
      before = { ...before, promoted: before.promoted + ids.size }
    }
    const first = await turn.run<Done>({
      work: async (s) => {
        if (started !== startedAt) await this.recover(s, started, startedAt)
        const done = await sweepDead(s, max, dead, crash)
        // Nobody is promoted between the two halves who may be late, unless something became due.
        late = done.matured + done.expired === 0
        if (late) await sweepLate(s, max)
        return done
      },
      promoted: (done, ids) => {
        plus(ids)
        return done
      },
      items: max,
    })
    return turn.run<Swept>({
      work: async (s) => {
        if (!late) {
          await sweepLate(s, max)
          late = true
          if (s.lanes.size > 0) return again
        }
        const { due, ending, deadline, slot } = await instants(s)
        return { ...first, promoted: before.promoted, nextMs: until(s.now, [due, ending, deadline, slot]) }
      },
      promoted: (swept, ids) => {
        plus(ids)
        return swept
      },
      items: max,
    })
  }

  /** The slots of schedules that are due, with their tasks in one transaction. */
  private async fire(max: number): Promise<void> {
    const { q, turn } = this.ports
    const unnamed: Unnamed = []
    await turn.run<unknown>({
      before: (link) => nameAll(link, q, turn.catalog, unnamed.splice(0)),
      work: (s) => fireDue(s, max, unnamed),
      items: max,
    })
  }

  /** The server was away: nobody could extend, so the time is not charged to leases. */
  private async recover(s: Session, started: number, startedAt: number): Promise<void> {
    if (startedAt !== 0) await s.run(this.ports.q.lengthenLeases, [s.now + graceMs])
    await s.run(this.ports.q.setStarted, [started])
  }

  /** Keys whose notes a caller's transaction or a crash left; answers how many tasks were promoted. */
  private async promoteNotes(max: number): Promise<number> {
    const { links, q, turn } = this.ports
    return links.use(async (link) => {
      const lanes = await link.run<{ queue: number; key: string }>(q.laneNotes, [max])
      return lanes.length === 0 ? 0 : (await turn.promote(link, lanes)).size
    })
  }

  /** Ends the batches that have nothing open: each settle appends its figures, so none knows to be the last. */
  private finish(): Promise<number> {
    return this.ports.turn.run({ work: finishBatches })
  }

  private fold(max: number): Promise<number> {
    const { turn, lockClass } = this.ports
    return turn.run({ work: (s) => fold(s, Math.max(max, 10_000), lockClass), relaxed: () => true })
  }
}
