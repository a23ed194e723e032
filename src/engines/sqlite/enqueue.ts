// Puts new tasks into the store: numbers, places, dedup keys, identities, and the first of a key straight to ready.

import type { Enqueued, NewTask } from '../../engine/contract.js'
import type { State } from '../../task/lifecycle.js'
import { arrivalOf } from '../arrival.js'
import { revise, revises } from '../duplicate.js'
import { type FollowUp, followUpOf } from '../followup.js'
import type { HeldRow } from '../ledger.js'
import { batchSealed } from '../named.js'
import type { TypeRow } from '../names.js'
import { code, flagsOf, stateOf } from '../receipt.js'
import type { Session } from './session.js'
import { wallShiftNow } from './wall.js'

export function enqueue(s: Session, tasks: readonly NewTask[]): Enqueued[] {
  const answers: Enqueued[] = []
  const batches = new Map<string, number>()
  const keyed: { id: number; answer: Enqueued }[] = []
  const revised = new Set<string>()
  const first = s.ids(tasks.length)
  for (let i = 0; i < tasks.length; i++) {
    const task = tasks[i] as NewTask
    const id = first + i
    const queue = s.catalog.ensureQueue(task.queue, s.now)
    const batch = task.batch === undefined ? null : batchFor(s, batches, task.batch)
    const landing = s.catalog.landing(queue.id, task.type ?? task.queue)
    const known = existing(s, task, { queue: landing?.queue ?? queue.id, left: landing && queue.id }, batch, id)
    if (known !== null) {
      if (revises(task)) {
        reviseOne(s, known, task)
        revised.add(String(known))
      }
      const answer: Enqueued = { id: String(known), state: stateNow(s, known), duplicate: true }
      answers.push(answer)
      // Perhaps of this very call, and about to leave `waiting` with it.
      keyed.push({ id: known, answer })
      continue
    }
    const type = landing ?? s.catalog.ensureType(queue.id, task.type ?? task.queue)
    const state = insert(s, task, id, type, batch)
    s.count('enqueue', type.id, null, state)
    s.countBatch(batch, 'total')
    const answer: Enqueued = { id: String(id), state, duplicate: false }
    answers.push(answer)
    if (state === 'waiting' && task.key !== undefined) {
      s.touchLane(type.queue, task.key)
      keyed.push({ id, answer })
    }
  }
  if (keyed.length > 0) {
    const promoted = s.promoteLanes()
    for (const { id, answer } of keyed) if (promoted.has(id)) answer.state = 'ready'
  }
  // A task of this very call may have been delayed by a later one.
  for (const answer of answers) if (revised.has(answer.id)) answer.state = stateNow(s, Number(answer.id))
  return answers
}

function reviseOne(s: Session, id: number, task: NewTask): void {
  const row = s.q.taskById.get(id) as HeldRow | undefined
  if (row) revise(s, row, task, task.dueAt === undefined ? 0 : wallShiftNow(s))
}

/** Enqueues what follows a batch (number) that has just finished; where it has a place, it is counted already. */
export function follow(s: Session, batch: number, text: string): void {
  const followUp = followUpOf(text) as FollowUp
  const { task, place } = followUp
  const id = s.ids(1)
  const queue = s.catalog.ensureQueue(task.queue, s.now)
  const name = task.type ?? task.queue
  const type = s.catalog.landing(queue.id, name) ?? s.catalog.ensureType(queue.id, name)
  // A batch that was forgotten meanwhile has no place to take.
  const known = place !== null && s.q.batchById.get(place) !== undefined
  const state = insert(s, task, id, type, known ? place : null)
  s.count('enqueue', type.id, null, state)
  if (state === 'waiting') s.touchLane(type.queue, task.key ?? null)
  s.promoteLanes()
  s.q.setFollowUp.run(JSON.stringify({ ...followUp, id: String(id) }), batch)
}

function insert(s: Session, task: NewTask, id: number, type: TypeRow, batch: number | null): State {
  const { queue } = type
  const wallShift = task.dueAt === undefined ? 0 : wallShiftNow(s)
  const from = arrivalOf(task, s.now, wallShift, s.catalog.policyOf(queue).headStartMs)
  if (from.priority !== 0) s.catalog.mix(type.id)
  s.q.insert.run(
    id,
    queue,
    type.id,
    code[from.state],
    from.place,
    from.dueAt,
    from.wakeAt,
    from.wallAt,
    from.deadlineAt,
    task.key ?? null,
    task.weight ?? 1,
    from.priority,
    batch,
    task.dedupKey ?? null,
    flagsOf(task),
    s.now,
    task.headers ?? null,
    task.payload,
  )
  return from.state
}

/** Where a new task looks for its dedup key: in its queue, and in the one that a route led it away from. */
interface Homes {
  queue: number
  left: number | undefined
}

/** The task that already stands for this one, by its identity in the batch or by its dedup key; null for none. */
function existing(s: Session, task: NewTask, homes: Homes, batch: number | null, id: number): number | null {
  if (batch !== null && task.identity !== undefined) {
    if (s.q.addMember.run(batch, task.identity, id).changes === 0) {
      return (s.q.memberOf.get(batch, task.identity) as { task: number }).task
    }
  }
  const holder = task.dedupKey === undefined ? null : dedupHolder(s, task.dedupKey, homes, id)
  // The identity stands for the task that is there, not for one that never came to be.
  if (holder !== null && batch !== null && task.identity !== undefined) s.q.setMember.run(holder, batch, task.identity)
  return holder
}

/** Who holds the dedup key; null when the new task holds it now. */
function dedupHolder(s: Session, dedupKey: string, { queue, left }: Homes, id: number): number | null {
  const holderIn = (home: number) => {
    const held = s.q.dedupOf.get(home, dedupKey) as { task: number; endsAt: number | null } | undefined
    return held && (held.endsAt === null || held.endsAt > s.now) ? held.task : null
  }
  const before = left === undefined ? null : holderIn(left)
  if (before !== null) return before
  if (s.q.takeDedup.run(queue, dedupKey, id).changes > 0) return null
  const held = holderIn(queue)
  if (held === null) s.q.retakeDedup.run(id, queue, dedupKey)
  return held
}

function stateNow(s: Session, id: number): State | 'gone' {
  const row = s.q.stateOf.get(id) as { state: number } | undefined
  return row === undefined ? 'gone' : stateOf(row)
}

function batchFor(s: Session, seen: Map<string, number>, name: string): number {
  let id = seen.get(name)
  if (id === undefined) {
    const row = s.q.batchByName.get(name) as { id: number; sealedAt: number | null } | undefined
    if (row && row.sealedAt !== null) throw batchSealed(name)
    id = row?.id ?? Number(s.q.addBatch.run(name, s.now).lastInsertRowid)
    seen.set(name, id)
  }
  return id
}
