// What each verb of the contract must answer and change, said on the model; engines are asked the same.
import type { ClaimAsk, ClaimedTask, Enqueued, Held, NewTask, Verdict } from '../../dist/engine/contract.js'
import type { Outcome, State } from '../../dist/task/lifecycle.js'
import {
  byId,
  dedupName,
  figuresOf,
  type Model,
  type ModelBatch,
  type ModelTask,
  type ModelWorker,
  must,
  newBatch,
} from './model.js'

/** The codes for which these tasks may be refused now. */
export function refusals(m: Model, tasks: readonly NewTask[]): string[] {
  const sealed = tasks.some((task) => task.batch !== undefined && m.batches.get(task.batch)?.sealed)
  return [...(sealed ? ['PW_BATCH_SEALED'] : []), ...(differs(m, tasks) ? ['PW_DUPLICATE_DIFFERS'] : [])]
}

/** New tasks in order; the engine names the ids of those that are new. Null: refused, since a batch is sealed. */
export function enqueue(m: Model, tasks: readonly NewTask[], given: readonly string[]): Enqueued[] | null {
  if (refusals(m, tasks).length > 0) return null
  const ids = tasks.map((task, i) => {
    const known = standing(m, task, given[i] ?? '')
    if (known === null) add(m, task, given[i] ?? '')
    else revise(m, m.tasks.get(known), task)
    return { id: known ?? given[i] ?? '', duplicate: known !== null }
  })
  m.promote()
  return ids.map(({ id, duplicate }) => ({ id, state: m.tasks.get(id)?.state ?? 'gone', duplicate }))
}

function standing(m: Model, task: NewTask, id: string): string | null {
  const members = task.batch === undefined ? undefined : batchOf(m, task.batch).members
  const identity = task.identity ?? ''
  if (members && task.identity !== undefined) {
    const member = members.get(identity)
    if (member !== undefined) return member
  }
  const there = m.landing(task.queue, task.type ?? task.queue).queue
  const name = dedupName(there, task.dedupKey ?? null)
  // A route does not lead away from the dedup keys of the queue where it begins.
  const names = task.dedupKey === undefined ? [] : [dedupName(task.queue, task.dedupKey), name]
  const holders = names.flatMap((each) => m.dedup.get(each) ?? [])
  const known = holders.find(({ endsAt }) => endsAt === null || endsAt > m.now)?.task ?? null
  if (members && task.identity !== undefined) members.set(identity, known ?? id)
  if (known === null && task.dedupKey !== undefined) m.dedup.set(name, { task: id, endsAt: null })
  return known
}

/** What a duplicate does to the task that is there, unless that is leased or dead. */
function revise(m: Model, task: ModelTask | undefined, by: NewTask): void {
  const { onDuplicate = 'keep', dedupKey, delayMs, dueAt } = by
  if (!task || onDuplicate === 'keep' || dedupKey === undefined) return
  if (dueAt !== undefined) m.reckoned()
  if (task.dedupKey !== dedupKey) return
  if (task.state === 'leased' || task.state === 'dead') return
  const replaces = onDuplicate === 'replace'
  const { headStartMs } = m.rulesOf(task.queue)
  const priority = replaces ? (by.priority ?? 0) : task.priority
  let to: State = task.state
  if (delayMs === undefined && dueAt === undefined) task.place += (task.priority - priority) * headStartMs
  else {
    const at = dueAt === undefined ? m.now + (delayMs ?? 0) : Math.round(dueAt - m.wallShift)
    const later = at > m.now
    to = later ? 'scheduled' : task.key === null ? 'ready' : 'waiting'
    Object.assign(task, { dueAt: at, place: at - priority * headStartMs, wallAt: later ? (dueAt ?? null) : null })
    Object.assign(task, { slot: false, wakeAt: at })
    m.touch(task)
  }
  if (replaces) {
    const deadlineAt = by.deadlineMs === undefined ? null : m.now + by.deadlineMs
    Object.assign(task, { payload: by.payload, priority, deadlineAt, drops: by.onDeadline === 'drop' })
  }
  task.keepsResult ||= by.keepsResult === true
  m.step(task, onDuplicate, to)
}

interface There {
  queue: string
  type: string
  key: string | null
  /** Neither leased nor dead nor gone. */
  live: boolean
}

/** True when one of these would replace a task of another type or key, which refuses all of them. */
function differs(m: Model, tasks: readonly NewTask[]): boolean {
  // In order, each seeing what those before it left.
  const ahead = new Map<string, There>()
  return tasks.some((task) => {
    if (task.dedupKey === undefined) return false
    const members = task.batch === undefined ? undefined : m.batches.get(task.batch)?.members
    if (task.identity !== undefined && members?.has(task.identity)) return false
    const { type = task.queue, key = null } = task
    const landing = m.landing(task.queue, type)
    const name = dedupName(landing.queue, task.dedupKey)
    const there = [dedupName(task.queue, task.dedupKey), name]
      .map((each) => ahead.get(each) ?? standsThere(m, each))
      .find((found) => found !== undefined)
    if (!there) ahead.set(name, { queue: landing.queue, type: landing.type, key, live: true })
    if (task.onDuplicate !== 'replace' || !there?.live) return false
    // Tasks of no type of their own have none in another queue either.
    const same = there.type === type || (type === task.queue && there.type === there.queue)
    return !same || there.key !== key
  })
}

function standsThere(m: Model, name: string): There | undefined {
  const held = m.dedup.get(name)
  if (!held || (held.endsAt !== null && held.endsAt <= m.now)) return undefined
  const task = m.tasks.get(held.task)
  const live = task !== undefined && task.state !== 'leased' && task.state !== 'dead'
  return { queue: task?.queue ?? '', type: task?.type ?? '', key: task?.key ?? null, live }
}

/** Makes the batches of these tasks, whatever becomes of the tasks. */
export function nameBatches(m: Model, tasks: readonly NewTask[]): void {
  for (const { batch } of tasks) if (batch !== undefined) batchOf(m, batch)
}

function batchOf(m: Model, name: string) {
  let batch = m.batches.get(name)
  if (!batch) {
    batch = newBatch()
    m.batches.set(name, batch)
  }
  return batch
}

/** What follows a finished batch; the engine names its id. It takes the place that it has had from the start. */
export function follow(m: Model, followUp: NonNullable<ModelBatch['followUp']>, id: string): void {
  const batch = m.nameOf(followUp.place) ?? undefined
  followUp.id = id
  add(m, { ...followUp.task, batch }, id)
  if (batch !== undefined) batchOf(m, batch).total--
  m.promote()
}

function add(m: Model, given: NewTask, id: string): void {
  must(!m.tasks.has(id), `id ${id} is used once`)
  const { key = null, batch = null, dedupKey = null, priority = 0 } = given
  const { queue, type } = m.landing(given.queue, given.type ?? given.queue)
  const wallAt = given.dueAt ?? null
  const dueAt = wallAt === null ? m.now + (given.delayMs ?? 0) : Math.round(wallAt - m.wallShift)
  const later = dueAt > m.now
  if (wallAt !== null) m.reckoned()
  const state: State = later ? 'scheduled' : key === null ? 'ready' : 'waiting'
  const task: ModelTask = {
    ...{ id, queue, type, state, key, batch, dedupKey, priority, dueAt, payload: given.payload },
    place: dueAt - priority * m.rulesOf(queue).headStartMs,
    wakeAt: null,
    wallAt: later ? wallAt : null,
    deadlineAt: given.deadlineMs === undefined ? null : m.now + given.deadlineMs,
    drops: given.onDeadline === 'drop',
    keepsResult: given.keepsResult === true,
    enqueuedAt: m.now,
    ...{ slot: false, number: 0, spent: 0, releases: 0, deaths: 0, fence: 0, cancelAsked: false, moveTo: null },
    ...{ hold: null, claimedAt: null, progress: null, reason: null, history: [] },
  }
  m.tasks.set(id, task)
  m.step(task, 'enqueue', state, null)
  if (later) task.wakeAt = dueAt
  else m.touch(task)
  if (batch !== null) batchOf(m, batch).total++
}

/** Which tasks a claim must hand out, in order; `given` tells the receipts and fences that the engine chose. */
export function claim(m: Model, ask: ClaimAsk, given: readonly ClaimedTask[]): { ids: string[]; blocked: string[] } {
  ripen(m, 200)
  const ids: string[] = []
  const blocked: string[] = []
  for (const want of ask.wants) {
    if (m.paused.has(want.queue) && want.max > 0) blocked.push(want.queue)
    const free = m.claimable(want.queue, want.types)
    // A task that saw two workers die goes out alone, and only from the head.
    const suspect = free.findIndex((task) => task.deaths >= 2)
    const max = suspect < 0 ? want.max : Math.max(1, Math.min(want.max, suspect))
    for (const task of free.slice(0, want.max > 0 ? max : 0)) {
      const delivery = given[ids.length]
      ids.push(task.id)
      if (delivery?.id === task.id) deliver(m, task, ask, delivery)
    }
  }
  return { ids, blocked }
}

function deliver(m: Model, task: ModelTask, ask: ClaimAsk, delivery: ClaimedTask): void {
  must(delivery.fence > task.fence, `the fence of ${task.id} rises`)
  must(!m.receipts.has(delivery.receipt), `a receipt is given out once: ${delivery.receipt}`)
  m.step(task, 'claim', 'leased')
  task.number++
  task.spent++
  task.fence = delivery.fence
  task.claimedAt = m.now
  task.wakeAt = m.now + (ask.leaseMs ?? m.rulesOf(task.queue).leaseMs)
  task.hold = { text: delivery.receipt, kind: 'live', worker: m.workerOf(ask.worker) }
  m.receipts.set(delivery.receipt, { task: task.id, figures: figuresOf(task) })
}

export function settle(m: Model, verdicts: readonly Verdict[]): Outcome[] {
  const outcomes = verdicts.map((verdict) => settleOne(m, verdict))
  m.promote()
  return outcomes
}

function settleOne(m: Model, verdict: Verdict): Outcome {
  const task = m.heldUnder(verdict.receipt)
  if (verdict.do === 'ack') return task ? ack(m, task, verdict.result ?? null) : m.stale(verdict.receipt)
  if (task?.hold?.kind !== 'live') return m.stale(verdict.receipt)
  const outcome = endOf(m, task, verdict)
  m.moveOn(task)
  return outcome
}

function endOf(m: Model, task: ModelTask, verdict: Exclude<Verdict, { do: 'ack' }>): Outcome {
  if (verdict.do === 'retry') return retry(m, task, verdict.error.code, verdict.delayMs)
  if (verdict.do === 'release') return release(m, task, verdict)
  m.remember(task, 'bury')
  return m.die(task, 'bury', 'buried')
}

function ack(m: Model, task: ModelTask, result: string | null): Outcome {
  m.step(task, 'ack', null)
  m.countBatch(task, 'done')
  m.gone(task, 'done', result)
  return 'done'
}

function retry(m: Model, task: ModelTask, code: string | null, delayMs: number | undefined): Outcome {
  const { baseMs, factor, maxMs, headStartMs } = m.rulesOf(task.queue)
  m.remember(task, code === 'PW_TIMEOUT' ? 'timeout' : 'retry')
  if (m.exhausted(task)) return m.die(task, 'retry', 'spent')
  if (task.cancelAsked) return m.cancelled(task, 'retry')
  m.countBatch(task, 'retries')
  const backoff = Math.round(Math.min(maxMs, baseMs * factor ** Math.max(0, task.spent - 1)))
  const dueAt = m.now + (delayMs ?? backoff)
  m.step(task, 'retry', 'scheduled')
  Object.assign(task, { dueAt, wakeAt: dueAt, place: dueAt - task.priority * headStartMs, progress: null })
  return 'scheduled'
}

function release(m: Model, task: ModelTask, verdict: Extract<Verdict, { do: 'release' }>): Outcome {
  const byHandler = verdict.by === 'handler' || verdict.by === 'overloaded'
  const counted = verdict.by === 'counted'
  const delayMs = verdict.delayMs ?? 0
  if (byHandler && task.releases >= m.rulesOf(task.queue).releasesMax) {
    return retry(m, task, null, delayMs > 0 ? delayMs : undefined)
  }
  if (counted) m.remember(task, 'release')
  if (counted && m.exhausted(task)) return m.die(task, 'release', 'spent')
  if (task.cancelAsked) return m.cancelled(task, 'release')
  if (!counted) task.spent--
  if (byHandler) task.releases++
  m.step(task, 'release', delayMs > 0 ? 'scheduled' : 'ready')
  if (delayMs > 0) Object.assign(task, { dueAt: m.now + delayMs, wakeAt: m.now + delayMs })
  return delayMs > 0 ? 'scheduled' : 'ready'
}

export function extend(m: Model, asks: readonly { receipt: string; leaseMs: number; progress?: string }[]): Held[] {
  return asks.map(({ receipt, leaseMs, progress }) => {
    const task = m.heldUnder(receipt)
    if (!task?.hold || task.hold.kind === 'lapsed by death') return m.stale(receipt)
    if (task.hold.kind === 'lapsed by time') {
      task.history = task.history.filter((row) => row.number !== task.number || row.outcome !== 'expired')
      task.hold.kind = 'live'
    }
    m.step(task, 'extend', 'leased')
    task.wakeAt = m.now + leaseMs
    task.progress = progress ?? task.progress
    return task.cancelAsked ? 'cancelled' : 'held'
  })
}

export interface ModelSwept {
  expired: number
  died: number
  matured: number
  promoted: number
}

/** `dead`: workers whose process is known to be gone. */
export function sweep(m: Model, max: number, dead: readonly string[]): ModelSwept {
  const crash = dead.length > 1 && dead.length === m.workers.size
  let died = 0
  for (const worker of dead) {
    for (const task of heldBy(m, m.workerOf(worker))) {
      if (!crash) task.deaths++
      giveUp(m, task, 'die')
      died++
    }
    m.workers.delete(worker)
  }
  const ripe = ripen(m, max)
  const late = [...m.tasks.values()].filter((task) => task.deadlineAt !== null && task.deadlineAt <= m.now)
  const open = late.filter((task) => task.state !== 'leased' && task.state !== 'dead')
  open.sort((a, b) => (a.deadlineAt ?? 0) - (b.deadlineAt ?? 0) || byId(a, b))
  for (const task of open.slice(0, max)) passDeadline(m, task)
  const promoted = ripe.promoted + m.promote()
  for (const [name, { endsAt }] of m.dedup) if (endsAt !== null && endsAt <= m.now) m.dedup.delete(name)
  return { expired: ripe.expired, died, matured: ripe.matured, promoted }
}

export const heldBy = (m: Model, worker: ModelWorker) =>
  [...m.tasks.values()]
    .filter((task) => task.state === 'leased' && task.hold?.worker === worker)
    .sort((a, b) => (a.wakeAt ?? 0) - (b.wakeAt ?? 0) || byId(a, b))

/** Matures what is due and ends leases, at most `max` of each, the earliest first. */
function ripen(m: Model, max: number): Omit<ModelSwept, 'died'> {
  const over = (state: State) =>
    [...m.tasks.values()]
      .filter((task) => task.state === state && task.wakeAt !== null && task.wakeAt <= m.now)
      .sort((a, b) => (a.wakeAt ?? 0) - (b.wakeAt ?? 0) || byId(a, b))
      .slice(0, max)
  const due = over('scheduled')
  const matured = due.filter((task) => mature(m, task)).length
  const ended = over('leased')
  for (const task of ended) giveUp(m, task, 'expire')
  return { matured, expired: ended.length, promoted: due.length + ended.length > 0 ? m.promote() : 0 }
}

function mature(m: Model, task: ModelTask): boolean {
  if (task.wallAt !== null) m.reckoned()
  const early = task.wallAt === null ? 0 : task.wallAt - (m.now + m.wallShift)
  if (early > 0) {
    task.wakeAt = m.now + Math.ceil(early)
    return false
  }
  task.wallAt = null
  const waits = task.key !== null && !task.slot
  m.step(task, 'due', waits ? 'waiting' : 'ready')
  if (waits) m.touch(task)
  return true
}

function giveUp(m: Model, task: ModelTask, event: 'expire' | 'die'): void {
  m.remember(task, event === 'expire' ? 'expired' : 'died')
  m.countBatch(task, 'returned')
  if (task.cancelAsked) m.cancelled(task, event)
  else if (m.exhausted(task)) m.die(task, event, 'spent')
  else m.step(task, event, 'ready')
  m.moveOn(task)
}

function passDeadline(m: Model, task: ModelTask): void {
  if (!task.drops) return void m.die(task, 'deadline', 'deadline')
  m.step(task, 'cancel', null)
  m.countBatch(task, 'cancelled')
  m.gone(task)
}
