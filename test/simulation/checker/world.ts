// What the checker knows at each event: a small life of every task, calls, receipts and processes, by events alone.
import type { Asked, AskedTask, AskedVerdict, Row, SimEvent } from '../events.js'
import type { Plan } from '../plan.js'
import { Batches } from './batches.js'
import { type Step, stepOf } from './steps.js'

/** One task from its enqueue on. */
export interface Life {
  id: string
  /** What it was enqueued as. */
  as: AskedTask
  /** As it stands; null when it is gone. */
  row: Row | null
  /** How the last receipt lapsed, if it may still act. */
  lapsed: 'by time' | 'by death' | null
  /** Deliveries that count, deaths and paid-for releases since enqueue or redrive, reckoned here. */
  spent: number
  deaths: number
  releases: number
  /** The batch that it follows. */
  follows: string | null
  /** Holds one of its key's slots. */
  slot: boolean
  fenceMax: number
}

export interface Call {
  call: number
  /** Which event its asking was. */
  order: number
  at: number
  process: string
  copy: boolean
  asked: Asked
  /** An earlier call of the same name has run: this one must repeat its answer. */
  repeats: Call | null
  ran: boolean
  /** What the wall clock showed then. */
  wallMs: number
  /** Of a claim: what it leased. */
  took: Pick<Row, 'id' | 'fence' | 'queue' | 'type'>[]
  answer: Extract<SimEvent, { is: 'answer' }>['answer'] | null
  /** Of a settle or extend: whether each receipt had to act when the call ran, and in which way it held its task. */
  acts: Acting[]
}
export interface Acting {
  acts: boolean
  held: 'live' | 'lapsed' | 'spent'
  type: string | null
}

export interface Process {
  wire: boolean
  state: 'up' | 'paused' | 'stopping' | 'stopped' | 'killed'
  since: number
  /** Which event that was. */
  order: number
  /** When it came up. */
  from: number
}

/** The delivery that a receipt stands for, and of which type its task was then. */
interface Receipt {
  id: string
  fence: number
  number: number
  type: string
}

/** A change of a row with what it means. */
export type Change = Extract<SimEvent, { is: 'change' }> & {
  what: Step
  life: Life
  by: Call
  /** It is a death: into the dead letters, or to the queue that takes the dead. */
  dies: boolean
  /** A death that leads to the other queue. */
  leaves: boolean
}

/** The queue of every plan; what dies in it may go on in another one. */
const mainQueue = 'q'

export class World {
  readonly lives = new Map<string, Life>()
  readonly calls = new Map<number, Call>()
  readonly receipts = new Map<string, Receipt>()
  readonly processes = new Map<string, Process>()
  readonly batches = new Batches()
  private readonly named = new Map<string, Call>()
  private order = 0

  constructor(readonly plan: Plan) {}

  /** The open tasks with this state. */
  *rows(state: Row['state'], queue?: string): Iterable<Row> {
    for (const { row } of this.lives.values()) {
      if (row?.state === state && (queue === undefined || row.queue === queue)) yield row
    }
  }

  /** How many of a queue may be under lease; the one that takes the dead has no ceiling. */
  ceilingOf(queue: string): number | null {
    return queue === mainQueue ? (this.plan.policy.concurrencyMax ?? null) : null
  }

  call(number: number): Call {
    return this.calls.get(number) as Call
  }

  /** What a change means; the life is as it was before it. */
  meaning(event: Extract<SimEvent, { is: 'change' }>): Change {
    const by = this.call(event.call)
    const id = (event.before ?? event.after)?.id ?? ''
    const life = this.lives.get(id) ?? this.born(id, by, event.after as Row)
    const died = this.knownDead(event.before?.worker ?? null, by.order)
    const releasesSpent = life.releases >= (this.plan.policy.releasesMax ?? Number.POSITIVE_INFINITY)
    const what = stepOf(event, { by, died, releasesSpent, verdict: this.verdictFor(by, id) })
    const { before, after } = event
    const leaves = before !== null && after !== null && before.queue !== after.queue
    const dies = leaves || (after?.state === 'dead' && before?.state !== 'dead')
    return { ...event, by, life, what, leaves, dies }
  }

  private born(id: string, by: Call, row: Row): Life {
    const task = by.asked.verb === 'enqueue' ? by.asked.tasks.find(({ item }) => item === row.item) : undefined
    // What a schedule or the end of a batch enqueues was asked for by nobody's call: it is as it came.
    const as = task ?? { ...row, delayMs: 0, onDuplicate: 'keep' as const, dueNamed: false }
    const follows = task || row.slotAt !== null ? null : this.batches.followedBy(row.item)
    return {
      ...{ id, as, follows, row: null, lapsed: null, spent: 0, deaths: 0, releases: 0, slot: false, fenceMax: 0 },
    }
  }

  /** The process of this worker sat beside the store and was gone before that moment. */
  private knownDead(worker: string | null, order: number): boolean {
    const process = this.processes.get(processOf(worker))
    return process?.state === 'killed' && !process.wire && process.order < order
  }

  /** The verdict of a settle on the delivery that this task is in. */
  verdictFor(call: Call, id: string): AskedVerdict | null {
    if (call.asked.verb !== 'settle') return null
    const fence = this.lives.get(id)?.row?.fence
    const fits = ({ receipt }: AskedVerdict) => {
      const known = this.receipts.get(receipt)
      return known?.id === id && known.fence === fence
    }
    return call.asked.verdicts.find(fits) ?? null
  }

  /** Takes the event in; the laws have seen it by then. */
  apply(event: SimEvent): void {
    this.order++
    if (event.is === 'ask') this.asked(event)
    else if (event.is === 'ran') this.ran(Object.assign(this.call(event.call), { wallMs: event.wallMs }))
    else if (event.is === 'change') this.changed(this.meaning(event))
    else if (event.is === 'batch') this.batches.changed(event.after)
    else if (event.is === 'answer') this.answered(event)
    else if (event.is === 'up') this.be(event.process, 'up', event.at, event.wire)
    else if (event.is === 'killed' || event.is === 'paused' || event.is === 'stopping' || event.is === 'stopped')
      this.be(event.process, event.is, event.at)
    else if (event.is === 'resumed') this.be(event.process, 'up', event.at)
  }

  private be(name: string, state: Process['state'], at: number, wire?: boolean): void {
    const known = this.processes.get(name)
    const { order } = this
    this.processes.set(name, { wire: wire ?? known?.wire ?? false, state, since: at, order, from: known?.from ?? at })
  }

  private asked({ call, process, copy, asked, at }: Extract<SimEvent, { is: 'ask' }>): void {
    const { order } = this
    this.calls.set(call, { call, order, at, process, copy, asked, ...fresh() })
  }

  private ran(call: Call): void {
    call.ran = true
    const name = nameOf(call.asked)
    if (name !== null) {
      const first = this.named.get(name)
      call.repeats = first && this.keepsAnswer(first) ? first : null
      if (!call.repeats) this.named.set(name, call)
    }
    if (!call.repeats) call.acts = this.actingOf(call.asked)
    this.batches.asked(call.asked)
  }

  /** Which receipts of this call must act, seen one after the other. */
  private actingOf(asked: Asked): Acting[] {
    if (asked.verb !== 'settle' && asked.verb !== 'extend') return []
    const used = new Set<string>()
    const asks = asked.verb === 'settle' ? asked.verdicts : asked.receipts.map((receipt) => ({ receipt, do: 'extend' }))
    return asks.map(({ receipt, do: what }) => {
      const found = this.holding(receipt, what)
      const acting = used.has(receipt) && found.acts ? { ...found, acts: false, held: 'spent' as const } : found
      if (acting.acts && what !== 'extend') used.add(receipt)
      return acting
    })
  }

  private holding(receipt: string, what: string): Acting {
    const known = this.receipts.get(receipt)
    const life = known && this.lives.get(known.id)
    const type = known?.type ?? null
    if (!life?.row || life.row.fence !== known?.fence) return { acts: false, held: 'spent', type }
    if (life.row.state === 'leased') return { acts: true, held: 'live', type }
    if (life.row.state !== 'ready' || life.lapsed === null) return { acts: false, held: 'spent', type }
    return { acts: what === 'ack' || (what === 'extend' && life.lapsed === 'by time'), held: 'lapsed', type }
  }

  /** A claim's answer is kept while anything of it is leased; afterwards its name is free for another claim. */
  private keepsAnswer({ asked, took }: Call): boolean {
    if (asked.verb !== 'claim') return true
    return took.some(({ id, fence }) => {
      const row = this.lives.get(id)?.row
      return row?.state === 'leased' && row.fence === fence
    })
  }

  private answered({ call: number, answer }: Extract<SimEvent, { is: 'answer' }>): void {
    const call = this.call(number)
    call.answer = answer
    if (answer.verb !== 'claim') return
    for (const { receipt, id, fence, number } of answer.deliveries) {
      const taken = call.took.find((row) => row.id === id && row.fence === fence)
      if (taken) this.receipts.set(receipt, { id, fence, number, type: typeOf(taken) })
    }
  }

  private changed({ after, before, what, life, by, leaves }: Change): void {
    this.lives.set(life.id, life)
    this.batches.counts(before, after, what.step === 'ack', life.follows)
    if (what.step === 'claim' && after) by.took.push(after)
    life.row = after
    life.fenceMax = Math.max(life.fenceMax, after?.fence ?? 0)
    if (leaves) life.lapsed = null
    else if (what.step === 'expire' || what.step === 'die')
      life.lapsed = what.step === 'expire' ? 'by time' : 'by death'
    else if (what.step !== 'touch') life.lapsed = null
    if (what.step === 'claim') life.spent++
    if (what.step === 'release' && what.free) life.spent--
    if (what.step === 'release' && what.paid) life.releases++
    if (what.step === 'die') life.deaths += (after?.deaths ?? before?.deaths ?? 0) > (before?.deaths ?? 0) ? 1 : 0
    if (what.step === 'redrive' || leaves) Object.assign(life, { spent: 0, deaths: 0, releases: 0, slot: false })
    const later = what.step === 'revise' && after?.state === 'scheduled' && after.dueAt !== before?.dueAt
    if (after === null || after.state === 'dead' || after.state === 'waiting' || later) life.slot = false
    else if (after.state === 'ready' && after.key !== null) life.slot = true
  }
}

/** What becomes of a call that was just asked. */
const fresh = (): Pick<Call, 'repeats' | 'ran' | 'wallMs' | 'took' | 'answer' | 'acts'> => ({
  ...{ repeats: null, ran: false, wallMs: 0, took: [], answer: null, acts: [] },
})

/** A type's name is one of its queue's. */
export const typeOf = ({ queue, type }: { queue: string; type: string }): string => `${queue}/${type}`

/** The process that a worker is part of. */
export const processOf = (worker: string | null): string => worker?.split('/')[0] ?? ''

const nameOf = (asked: Asked): string | null => {
  if (!('request' in asked) || asked.request === null) return null
  return `${asked.verb} ${'worker' in asked ? asked.worker : ''} ${asked.request}`
}
