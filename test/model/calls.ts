// The calls of a history: what is sent to the engine, and how the model judges what it answers.
import assert from 'node:assert/strict'
import type {
  Change,
  ClaimAsk,
  Claimed,
  Engine,
  Enqueued,
  Filter,
  NewTask,
  Verdict,
} from '../../dist/engine/contract.js'
import type { Outcome } from '../../dist/task/lifecycle.js'
import { type Model, type ModelBatch, must } from './model.js'
import type { FilterDraft, Move, TaskDraft, VerdictDraft } from './moves.js'
import * as operators from './operators.js'
import * as verbs from './verbs.js'

/** What was seen how often; a run that saw too little proves nothing. */
export type Seen = Map<string, number>

/** One call: sent to the engine first, then its answer is judged by the model. */
export interface Call {
  send(engine: Engine): Promise<unknown>
  judge(answer: PromiseSettledResult<unknown>): void
}

const answerKeepMs = 600_000

export class Caller {
  private readonly receipts: string[] = []
  private readonly ids: string[] = []
  private readonly past: Call[] = []
  private readonly answers = new Map<string, { endsAt: number; answer: unknown }>()
  private requests = 0

  constructor(
    private readonly model: Model,
    private readonly wallMs: () => number,
    /** The name of the worker that has this slot now. */
    private readonly worker: (slot: number) => string,
    private readonly seen: Seen,
  ) {}

  /** The calls of a move; null when it is no call but something that happens. */
  callsOf(move: Move, alone = true): Call[] | null {
    switch (move.do) {
      case 'together':
        return move.moves.flatMap((inner) => this.callsOf(inner, false) ?? [])
      case 'enqueue':
        return this.sent(this.enqueueCall(move.tasks), move.again)
      case 'claim': {
        const { queue, types, max, leaseMs } = move
        // Without a name a claim that would find nothing is answered without a write; only its first one can be.
        const requestId = alone && max === 1 && !move.again ? null : this.request()
        const ask = { worker: this.worker(move.worker), requestId, wants: [{ queue, types, max }] }
        return this.sent(this.claimCall({ ...ask, leaseMs }), move.again)
      }
      case 'settle': {
        const verdicts = move.verdicts.map((draft) => this.verdict(draft))
        return this.sent(this.settleCall(this.worker(move.worker), this.request(), verdicts), move.again)
      }
      case 'extend':
        return [this.extendCall(move)]
      case 'amend':
        return [this.amendCall(move)]
      case 'repeat':
        return this.past.length === 0 ? [] : [this.past[this.past.length - 1 - (move.pick % this.past.length)] as Call]
      default:
        return null
    }
  }

  /** Acks of the deliveries that the last claim got. */
  acks(count: number): Verdict[] {
    return this.receipts.slice(this.receipts.length - count).map((receipt) => ({ receipt, do: 'ack' }))
  }

  saw(what: string): void {
    this.seen.set(what, (this.seen.get(what) ?? 0) + 1)
  }

  private sent(call: Call, again: boolean): Call[] {
    this.past.push(call)
    return again ? [call, call] : [call]
  }

  private request = () => `r${++this.requests}`
  private picked = (list: readonly string[], pick: number) => list[list.length - 1 - (pick % list.length)]

  private receipt(pick: number, acting: boolean): string {
    const those = acting ? this.receipts.filter((receipt) => this.model.heldUnder(receipt)) : this.receipts
    return this.picked(those.length > 0 ? those : this.receipts, pick) ?? 'no receipt'
  }

  /** Judges an answer that the engine must repeat within 10 minutes; runs the model only for a new one. */
  private repeatable<T>(name: string, now: (answer: T) => T, later: (kept: T) => T, answer: T): void {
    const kept = this.answers.get(name)
    if (kept && kept.endsAt > this.model.now) {
      this.saw('repeated')
      assert.deepEqual(answer, later(kept.answer as T), `the repeated ${name}`)
      return
    }
    const expected = now(answer)
    assert.deepEqual(answer, expected, name)
    this.answers.set(name, { endsAt: this.model.now + answerKeepMs, answer: expected })
  }

  private enqueueCall(drafts: readonly TaskDraft[]): Call {
    const wallMs = this.wallMs()
    const tasks = drafts.map(({ dueInMs, onDuplicate, ...draft }, i): NewTask => {
      const payload = JSON.stringify(`task ${i} of request ${this.requests + 1}`)
      // Who has an identity is known by that, whatever happens to its dedup key.
      const more = draft.identity === undefined ? { onDuplicate } : {}
      return { ...draft, ...more, payload, dueAt: dueInMs === undefined ? undefined : wallMs + dueInMs }
    })
    const name = this.request()
    return {
      send: (engine) => engine.enqueue(name, tasks),
      judge: (answer) => {
        if (answer.status === 'rejected') {
          const { code } = answer.reason as { code?: string }
          assert.ok(verbs.refusals(this.model, tasks).includes(String(code)), String(answer.reason))
          this.model.refused()
          if (code === 'PW_DUPLICATE_DIFFERS' && this.model.namesStay) verbs.nameBatches(this.model, tasks)
          return this.saw(code === 'PW_BATCH_SEALED' ? 'refused' : 'differs')
        }
        const now = (given: Enqueued[]) => this.enqueued(tasks, given)
        this.repeatable(`enqueue ${name}`, now, (kept) => kept, answer.value as Enqueued[])
      },
    }
  }

  private enqueued(tasks: readonly NewTask[], given: readonly Enqueued[]): Enqueued[] {
    const ids = given.map((row) => row.id)
    const expected = verbs.enqueue(this.model, tasks, ids)
    must(expected, 'a sealed batch takes no task')
    for (const { id, duplicate } of expected) {
      this.saw(duplicate ? 'duplicate' : 'enqueued')
      if (duplicate) continue
      must(Number(id) > Number(this.ids.at(-1) ?? 0), `ids rise: ${id} after ${this.ids.at(-1)}`)
      this.ids.push(id)
    }
    return expected
  }

  /** A batch has finished, and this is the task that follows it. */
  follow(followUp: NonNullable<ModelBatch['followUp']>, id: string): void {
    must(Number(id) > Number(this.ids.at(-1) ?? 0), `ids rise: ${id} after ${this.ids.at(-1)}`)
    verbs.follow(this.model, followUp, id)
    this.ids.push(id)
    this.saw('followed')
  }

  claimCall(ask: ClaimAsk): Call {
    const name = `claim ${ask.worker} ${ask.requestId}`
    return {
      send: (engine) => engine.claim(ask),
      judge: (answer) => {
        if (answer.status === 'rejected') throw answer.reason
        const given = answer.value as Claimed
        const again = ask.requestId === null ? null : this.stillLeased(name)
        if (again) this.saw('repeated')
        const expected = again ?? this.claimed(ask, given)
        assert.deepEqual(given, expected, again ? `the repeated ${name}` : name)
        if (again || ask.requestId === null || expected.deliveries.length === 0) return
        this.answers.set(name, { endsAt: this.model.now + answerKeepMs, answer: expected })
      },
    }
  }

  /** What a claim of this name was given, as far as it is leased; null when nothing is: then it claims anew. */
  private stillLeased(name: string): Claimed | null {
    const kept = this.answers.get(name)
    if (!kept || kept.endsAt <= this.model.now) return null
    const first = kept.answer as Claimed
    const live = (receipt: string) => this.model.heldUnder(receipt)?.hold?.kind === 'live'
    const deliveries = first.deliveries.filter(({ receipt }) => live(receipt))
    return deliveries.length === 0 ? null : { ...first, deliveries }
  }

  private claimed(ask: ClaimAsk, given: Claimed): Claimed {
    const m = this.model
    const { ids, blocked } = verbs.claim(m, ask, given.deliveries)
    assert.deepEqual(
      given.deliveries.map((row) => row.id),
      ids,
      'the tasks a claim takes',
    )
    const deliveries = given.deliveries.map((delivery) => {
      const task = m.tasks.get(delivery.id)
      must(task, 'a claimed task exists')
      this.receipts.push(delivery.receipt)
      this.saw(delivery.number > 1 ? 'redelivered' : 'delivered')
      if (delivery.deaths >= 2) this.saw('suspect')
      const { id, queue, type, key, batch, number, spent, deaths, fence, payload } = task
      return {
        ...{ receipt: delivery.receipt, id, queue, type, key, batch, number, fence, spent, deaths, payload },
        deliveriesMax: m.rulesOf(queue).deliveriesMax,
        enqueuedAt: task.enqueuedAt + m.wallShift,
        waitedMs: m.now - task.dueAt,
        leaseMs: ask.leaseMs ?? m.rulesOf(queue).leaseMs,
        timeoutMs: 900_000,
        keepsResult: m.keepMsOf(task) > 0,
        limited: false,
        headers: null,
      }
    })
    const wakes = [...m.tasks.values()].flatMap(({ wakeAt }) => (wakeAt === null ? [] : [wakeAt]))
    const nextDueMs = wakes.length === 0 || ids.length > 0 ? null : Math.max(0, Math.min(...wakes) - m.now)
    return { deliveries, nextDueMs, blockedBy: blocked.map((queue) => ({ queue, by: 'pause' as const })) }
  }

  private verdict({ pick, acting, how, by, delayMs }: VerdictDraft): Verdict {
    const receipt = this.receipt(pick, acting)
    const error = { code: how === 'timeout' ? 'PW_TIMEOUT' : null, text: 'it failed' }
    if (how === 'ack') return { receipt, do: 'ack', ...(pick % 2 === 0 ? { result: JSON.stringify(receipt) } : {}) }
    if (how === 'bury') return { receipt, do: 'bury', error }
    return how === 'release' ? { receipt, do: 'release', by, delayMs } : { receipt, do: 'retry', delayMs, error }
  }

  settleCall(worker: string, flush: string | null, verdicts: readonly Verdict[]): Call {
    const name = `settle ${worker} ${flush ?? this.request()}`
    return {
      send: (engine) => engine.settle({ worker, flush }, verdicts),
      judge: (answer) => {
        if (answer.status === 'rejected') throw answer.reason
        const now = () => {
          const outcomes = verbs.settle(this.model, verdicts)
          for (const outcome of outcomes) this.saw(outcome)
          return outcomes
        }
        this.repeatable(name, now, (kept) => kept, answer.value as Outcome[])
      },
    }
  }

  private extendCall({ picks, acting, leaseMs, progress }: Extract<Move, { do: 'extend' }>): Call {
    const more = progress ? { progress: '0.5' } : {}
    const asks = picks.map((pick) => ({ receipt: this.receipt(pick, acting), leaseMs, ...more }))
    return {
      send: (engine) => engine.extend('w', asks),
      judge: (answer) => {
        if (answer.status === 'rejected') throw answer.reason
        const held = verbs.extend(this.model, asks)
        assert.deepEqual(answer.value, held, 'extend')
        for (const outcome of held) this.saw(`extend ${outcome}`)
      },
    }
  }

  private amendCall({ change, filter, max, dryRun }: Extract<Move, { do: 'amend' }>): Call {
    const what = this.change(change, filter)
    const asked = this.filter(filter, change)
    return {
      send: (engine) => engine.amend(asked, what, 'test', { max, dryRun }),
      judge: (answer) => {
        if (answer.status === 'rejected') throw answer.reason
        const expected = operators.amend(this.model, asked, what, max, dryRun)
        assert.deepEqual(answer.value, expected, change)
        if (expected.changed > 0 && !dryRun) this.saw(change)
        if (expected.asked > 0 && !dryRun) this.saw(`${change} asked`)
      },
    }
  }

  private change(what: Extract<Move, { do: 'amend' }>['change'], { queue }: FilterDraft): Change {
    if (what === 'edit') return { do: what, payload: '"edited"' }
    return what === 'move' ? { do: what, to: queue === 'other' ? 'q' : 'other' } : { do: what }
  }

  private filter({ pick, dead, ...rest }: FilterDraft, change: string): Filter {
    const tasks = [...this.model.tasks.values()]
    const leased = /cancel|move/.test(change) ? tasks.filter((task) => task.state === 'leased') : []
    const fits = tasks.filter((task) => (task.state === 'dead') === !/cancel|purge|move/.test(change))
    const ids = (leased.length > 0 ? leased : fits).map((task) => task.id)
    const id = pick === undefined ? undefined : this.picked(ids.length > 0 ? ids : this.ids, pick)
    return id === undefined ? { ...rest, ...(dead ? { states: ['dead'] } : {}) } : { ids: [id] }
  }
}
