// Puts new tasks into the store: numbers, places, dedup keys, identities, and the first of a key straight to ready.

import type { Enqueued, NewTask } from '../../engine/contract.js'
import type { State } from '../../task/lifecycle.js'
import { arrivalOf } from '../arrival.js'
import { revise, revises } from '../duplicate.js'
import { type FollowUp, followUpOf } from '../followup.js'
import type { HeldRow } from '../ledger.js'
import { batchSealed } from '../named.js'
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
    const known = existing(s, task, queue.id, batch, id)
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
    const type = s.catalog.ensureType(queue.id, task.type ?? task.queue)
    const state = insert(s, task, id, queue.id, type.id, batch)
    s.count('enqueue', type.id, null, state)
    s.countBatch(batch, 'total')
    const answer: Enqueued = { id: String(id), state, duplicate: false }
    answers.push(answer)
    if (state === 'waiting' && task.key !== undefined) {
      s.touchLane(queue.id, task.key)
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
  if (row) revise(s, row, task, task.dueAt === undefined ? 0 : s.wallShift)
}

/** Enqueues what follows a batch (number) that has just finished; where it has a place, it is counted already. */
export function follow(s: Session, batch: number, text: string): void {
  const followUp = followUpOf(text) as FollowUp
  const { task, place } = followUp
  const id = s.ids(1)
  const queue = s.catalog.ensureQueue(task.queue, s.now)
  const type = s.catalog.ensureType(queue.id, task.type ?? task.queue)
  // A batch that was forgotten meanwhile has no place to take.
  const known = place !== null && s.q.batchById.get(place) !== undefined
  const state = insert(s, task, id, queue.id, type.id, known ? place : null)
  s.count('enqueue', type.id, null, state)
  if (state === 'waiting') s.touchLane(queue.id, task.key ?? null)
  s.promoteLanes()
  s.q.setFollowUp.run(JSON.stringify({ ...followUp, id: String(id) }), batch)
}

function insert(s: Session, task: NewTask, id: number, queue: number, type: number, batch: number | null): State {
  const wallShift = task.dueAt === undefined ? 0 : wallShiftNow(s)
  const from = arrivalOf(task, s.now, wallShift, s.catalog.policyOf(queue).headStartMs)
  if (from.priority !== 0) s.catalog.mix(type)
  s.q.insert.run(
    id,
    queue,
    type,
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

/** The task that already stands for this one, by its identity in the batch or by its dedup key; null for none. */
function existing(s: Session, task: NewTask, queue: number, batch: number | null, id: number): number | null {
  if (batch !== null && task.identity !== undefined) {
    if (s.q.addMember.run(batch, task.identity, id).changes === 0) {
      return (s.q.memberOf.get(batch, task.identity) as { task: number }).task
    }
  }
  if (task.dedupKey === undefined || s.q.takeDedup.run(queue, task.dedupKey, id).changes > 0) return null
  const held = s.q.dedupOf.get(queue, task.dedupKey) as { task: number; endsAt: number | null }
  if (held.endsAt === null || held.endsAt > s.now) {
    // The identity stands for the task that is there, not for one that never came to be.
    if (batch !== null && task.identity !== undefined) s.q.setMember.run(held.task, batch, task.identity)
    return held.task
  }
  s.q.retakeDedup.run(id, queue, task.dedupKey)
  return null
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
