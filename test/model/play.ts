// Plays one history against an engine and the model side by side and stops at the first difference.
import assert from 'node:assert/strict'
import type { Claimed, Engine, Patch } from '../../dist/engine/contract.js'
import type { BatchRecord } from '../../dist/task/records.js'
import type { SqliteStore } from '../engine/subject.js'
import { type Call, Caller, type Seen } from './calls.js'
import { compareAll } from './compare.js'
import { Model, type ModelBatch, type ModelTask, type Rules } from './model.js'
import type { History, Move } from './moves.js'
import * as operators from './operators.js'
import * as verbs from './verbs.js'

const sealed = 'PW_BATCH_SEALED'
const sleepNoticedMs = 1000
const jumpNoticedMs = 500

/** A store, and where it differs from one with a single writer. */
export interface PlayedStore extends SqliteStore {
  /** Finishes the batches that are over, where the commit that ends their last task cannot know it. */
  finishBatches?: (engine: Engine) => Promise<unknown>
  /** As in the model. */
  readonly namesStay?: boolean
}

/** Plays the history; throws at the first difference. Adds what happened to `seen`. */
export async function play(history: History, store: PlayedStore, handles: number, seen: Seen): Promise<void> {
  const player = new Player(history, store, seen)
  await player.open(handles)
  for (const [index, move] of history.moves.entries()) await player.move(move, index)
  await player.finish()
}

class Player {
  private readonly model: Model
  private engines: Engine[] = []
  private shifts: (number | null)[] = []
  /** The one that acts now. */
  private handle = 0
  /** Engine clock minus monotonic clock; the engine takes sleep into it when it sweeps. */
  private offsetMs: number
  private asleepMs = 0
  private readonly generations = [0, 0, 0, 0]
  private readonly dead = new Set<string>()
  private readonly caller: Caller

  constructor(
    history: History,
    private readonly store: PlayedStore,
    seen: Seen,
  ) {
    const { rules } = history
    // Where dead tasks leave, none can hold its key; and the other queue keeps its dead.
    const q: Rules = { ...rules, onDead: rules.deadTo === null ? rules.onDead : 'continue' }
    const other: Rules = { ...rules, width: 3 - rules.width, deadTo: null }
    this.model = new Model(new Map(Object.entries({ q, other })))
    this.model.namesStay = store.namesStay === true
    this.caller = new Caller(this.model, () => store.clock.wallMs(), this.worker, seen)
    this.offsetMs = store.clock.wallMs() - store.clock.monotonicMs()
    // A handle that reckons by a clock that moved since its last look looks again.
    this.model.reckoned = () => {
      if (this.wallMoved(this.handle)) this.shifts[this.handle] = null
    }
    this.model.refused = () => {
      this.shifts[this.handle] = null
    }
  }

  async open(handles: number): Promise<void> {
    this.engines = Array.from({ length: handles }, () => this.store.engine())
    this.shifts = this.engines.map(() => null)
    for (const engine of this.engines) await engine.open()
    for (const [name, rules] of this.model.rules) {
      const { leaseMs, deliveriesMax, releasesMax, baseMs, factor, maxMs, headStartMs, width, onDead } = rules
      const backoff = { baseMs, factor, maxMs, jitter: 'none' }
      const { dedupWindowMs, resultKeepMs, deadTo } = rules
      const policy = { leaseMs, deliveriesMax, releasesMax, backoff, headStartMs, dedupWindowMs, resultKeepMs, deadTo }
      await this.first.configure('queue', name, { code: { ...policy, perKey: { width, onDead } } }, 'test')
    }
  }

  private get first(): Engine {
    return this.engines[0] as Engine
  }

  async move(move: Move, index: number): Promise<void> {
    this.tick()
    const handle = index % this.engines.length
    this.handle = handle
    const calls = this.caller.callsOf(move)
    if (calls) {
      const engine = this.engines[handle] as Engine
      await this.joinFirst(move, engine)
      const answers = await Promise.allSettled(calls.map((call) => call.send(engine)))
      for (const [i, call] of calls.entries()) call.judge(answers[i] as PromiseSettledResult<unknown>)
    } else await this.happen(move, handle)
    this.tick()
    await this.follow(this.engines[handle] as Engine)
    if (index % 4 === 3) await compareAll(this.engines[(index + 1) % this.engines.length] as Engine, this.model)
  }

  /** Nothing hangs: with every pause lifted and time enough, each task ends or waits behind a held dead one. */
  async finish(): Promise<void> {
    this.handle = 0
    await compareAll(this.first, this.model)
    for (const name of [...this.model.paused]) {
      const [queue, type = null] = name.startsWith('[') ? (JSON.parse(name) as [string, string]) : [name]
      await this.happen({ do: 'pause', queue, type, paused: false }, 0)
    }
    const wants = [...this.model.rules.keys()].map((queue) => ({ queue, types: null, max: 100 }))
    for (let round = 0; round < 12 && this.unfinished().length > 0; round++) {
      await this.happen({ do: 'pass', ms: 3_700_000 }, 0)
      await this.happen({ do: 'sweep', max: 1000 }, 0)
      await this.follow(this.first)
      for (let took = 1; took > 0; ) {
        const claim = this.caller.claimCall({ worker: 'healer', requestId: null, wants })
        const given = await this.ask(claim)
        took = (given as Claimed).deliveries.length
        await this.ask(this.caller.settleCall('healer', null, this.caller.acks(took)))
      }
    }
    await compareAll(this.first, this.model)
    assert.deepEqual(this.unfinished(), [], 'tasks that never end')
  }

  private async ask(call: Call): Promise<unknown> {
    const [answer] = await Promise.allSettled([call.send(this.first)])
    call.judge(answer)
    await this.follow(this.first)
    return answer.status === 'fulfilled' ? answer.value : undefined
  }

  /** Batches that finished with the last transaction, one after the other where one is in the other. */
  private async follow(engine: Engine): Promise<void> {
    for (let ended = this.model.finish(); ended.length > 0; ended = this.model.finish()) {
      await this.store.finishBatches?.(engine)
      const items = (await engine.select('batch', {}, null)).items as unknown as BatchRecord[]
      const idOf = (batch: ModelBatch) =>
        Number(items.find((row) => row.name === this.model.nameOf(batch))?.followUp?.id)
      for (const batch of ended.sort((a, b) => idOf(a) - idOf(b))) {
        this.caller.saw('finished')
        assert.ok(batch.followUp === null || idOf(batch) > 0, 'a finished batch has been followed')
        if (batch.followUp) this.caller.follow(batch.followUp, String(idOf(batch)))
      }
    }
  }

  /** Tasks that have not come to their end: neither dead nor waiting behind a dead one that holds their key. */
  private unfinished(): string[] {
    const tasks = [...this.model.tasks.values()]
    const held = (task: ModelTask) =>
      tasks.filter(
        (other) => other.queue === task.queue && other.key === task.key && other.state === 'dead' && other.slot,
      )
    return tasks
      .filter((task) => task.state !== 'dead')
      .filter((task) => task.state !== 'waiting' || held(task).length < this.model.rulesOf(task.queue).width)
      .map((task) => `${task.id} ${task.state}`)
  }

  private tick(): void {
    this.model.now = this.store.clock.monotonicMs() + this.offsetMs
    this.model.wallShift = this.store.clock.wallMs() - this.model.now
  }

  private readonly wallMoved = (handle: number): boolean =>
    Math.abs(this.model.wallShift - (this.shifts[handle] ?? Number.POSITIVE_INFINITY)) > jumpNoticedMs

  private readonly worker = (slot: number) => `w${slot}.${this.generations[slot]}`

  private async happen(move: Move, handle: number): Promise<void> {
    const { model, store } = this
    const engine = this.engines[handle] as Engine
    this.tick()
    switch (move.do) {
      case 'pass':
        await store.clock.advance(move.ms)
        break
      case 'jump':
        store.clock.jumpWall(move.ms)
        break
      case 'sleep':
        store.clock.sleep(move.ms)
        this.asleepMs += move.ms
        break
      case 'reopen':
        await engine.close()
        this.engines[handle] = store.engine()
        await this.engines[handle]?.open()
        this.shifts[handle] = null
        break
      case 'sweep':
        return this.sweep(engine, handle, move.max)
      case 'pause': {
        const name = move.type === null ? move.queue : JSON.stringify([move.queue, move.type])
        if (move.type !== null && !model.counts.has(name)) return
        const kind = move.type === null ? 'queue' : 'type'
        await engine.configure(kind, move.type === null ? move.queue : `${move.queue}\0${move.type}`, move, 'test')
        if (move.paused) model.paused.add(name)
        else model.paused.delete(name)
        break
      }
      case 'route':
        await this.route(move, engine)
        break
      case 'seal':
        await this.configure(engine, move.batch, { sealed: true }, operators.seal(model, move.batch) ? null : sealed)
        break
      case 'follow': {
        const { key, ...task } = { queue: 'q', payload: '"follow"', ...move.task }
        const followUp = key === undefined ? task : { ...task, key }
        await this.configure(engine, move.batch, { followUp }, operators.follow(model, move.batch, followUp))
        break
      }
      case 'forget':
        if (operators.forget(model, move.batch)) await engine.configure('batch', move.batch, null, 'test')
        break
      case 'die':
        return this.die(move, engine, handle)
      default:
        await this.workerHappens(move, engine)
    }
    this.tick()
  }

  /** Changes a batch, or is refused with this code. */
  private async configure(engine: Engine, batch: string, patch: Patch, code: string | null): Promise<void> {
    const refusal = await engine.configure('batch', batch, patch, 'test').then(
      () => null,
      (error: { code?: unknown }) => error.code ?? error,
    )
    assert.equal(refusal, code, `batch ${batch} with ${JSON.stringify(patch)}`)
    if (code !== null) this.caller.saw(`batch ${code}`)
    if (code !== null) this.model.refused()
  }

  private async route(move: Extract<Move, { do: 'route' }>, engine: Engine): Promise<void> {
    const { model } = this
    // One that is there is ended, if any is.
    const [known] = move.on ? [] : model.routes.keys()
    const [queue, type] = known ? (JSON.parse(known) as [string, string]) : [move.queue, move.type ?? move.queue]
    const to = move.on ? (move.queue === 'q' ? 'other' : 'q') : null
    const done = engine.configure('route', `${queue}\0${type}`, to === null ? null : { to }, 'test')
    const refusal = await done.then(
      () => null,
      ({ code }) => code,
    )
    assert.equal(refusal, operators.route(model, { queue, type }, to), 'a route')
    this.caller.saw(refusal ?? (move.on ? 'route' : 'route ended'))
    if (refusal !== null) model.refused()
  }

  /** Workers 0 to 2 are processes, which join before they claim; worker 3 is a client that only the lease tells of. */
  private async joinFirst(move: Move, engine: Engine): Promise<void> {
    for (const claim of move.do === 'together' ? move.moves : [move]) {
      if (claim.do !== 'claim' || claim.worker === 3 || this.model.workers.has(this.worker(claim.worker))) continue
      await this.workerHappens({ do: 'join', worker: claim.worker }, engine)
    }
  }

  /** The first worker from this one on that holds leases dies, if any does; the slot's next worker has a new name. */
  private async die({ worker, noticed }: Extract<Move, { do: 'die' }>, engine: Engine, handle: number): Promise<void> {
    const slots = [0, 1, 2].map((n) => (n + worker) % 3)
    const holds = (slot: number) => {
      const known = this.model.workers.get(this.worker(slot))
      return known !== undefined && verbs.heldBy(this.model, known).length > 0
    }
    const slot = slots.find(holds) ?? worker
    this.store.die(this.worker(slot))
    this.dead.add(this.worker(slot))
    this.generations[slot] = (this.generations[slot] ?? 0) + 1
    if (noticed) await this.sweep(engine, handle, 1000)
  }

  private async workerHappens(move: Move, engine: Engine): Promise<void> {
    if (move.do !== 'join' && move.do !== 'leave' && move.do !== 'beat') return
    const { model } = this
    const name = this.worker(move.worker)
    const info = { worker: name, host: 'host', pid: 1, bootId: this.store.bootId, queues: ['q'], concurrency: 1 }
    const full = { ...info, busy: 0, prefetched: 0, proof: null }
    const answer = await engine.worker(move.do, full)
    if (move.do === 'join') model.workerOf(name).proof = name
    if (move.do === 'leave') model.workers.delete(name)
    if (move.do !== 'beat') return
    const worker = model.workers.get(name)
    const held = worker ? verbs.heldBy(model, worker).filter((task) => task.cancelAsked) : []
    const cancelled = held.map((task) => task.hold?.text)
    assert.deepEqual(
      { ...answer, cancelled: [...answer.cancelled].sort() },
      {
        alive: worker !== undefined,
        cancelled: cancelled.sort(),
      },
    )
  }

  private async sweep(engine: Engine, handle: number, max: number): Promise<void> {
    const m = this.model
    const dead = [...m.workers.values()].filter(({ proof }) => proof !== null && this.dead.has(proof))
    const swept = await engine.sweep(max)
    const onWall = [...m.tasks.values()].some((task) => task.state === 'scheduled' && task.wallAt !== null)
    const moved = onWall && this.wallMoved(handle)
    if (this.asleepMs >= sleepNoticedMs) {
      // The clock takes the sleep in, and running leases with it: nobody could extend them.
      for (const task of m.tasks.values()) if (task.state === 'leased') task.wakeAt = (task.wakeAt ?? 0) + this.asleepMs
      this.offsetMs += this.asleepMs
      this.asleepMs = 0
      this.caller.saw('slept')
    }
    this.tick()
    if (moved) m.rewall()
    if (moved) this.shifts[handle] = m.wallShift
    const expected = verbs.sweep(
      m,
      max,
      dead.map(({ name }) => name),
    )
    const { expired, died, matured, promoted } = swept
    assert.deepEqual({ expired, died, matured, promoted }, expected, 'what a sweep did')
    for (const [what, n] of Object.entries(expected)) for (let i = 0; i < n; i++) this.caller.saw(what)
    const instants = [...m.tasks.values()].flatMap(({ state, wakeAt, deadlineAt }) => [
      ...(wakeAt === null ? [] : [wakeAt]),
      ...(deadlineAt === null || state === 'leased' || state === 'dead' ? [] : [deadlineAt]),
    ])
    const nextMs = instants.length === 0 ? null : Math.max(0, Math.min(...instants) - m.now)
    assert.equal(swept.nextMs, nextMs, 'when a sweep has work again')
  }
}
