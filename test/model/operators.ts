// What an operator's acts do on the model: cancel, purge, move, discard, edit, redrive; batches sealed and forgotten.
import type { Amended, Change, Filter, NewTask } from '../../dist/engine/contract.js'
import type { State } from '../../dist/task/lifecycle.js'
import { byId, dedupName, figuresOf, type Model, type ModelBatch, type ModelTask, newBatch, typeIn } from './model.js'

const open: readonly State[] = ['scheduled', 'waiting', 'ready']
const touched: Record<Change['do'], readonly State[]> = {
  cancel: [...open, 'leased'],
  purge: open,
  move: [...open, 'leased'],
  discard: ['dead'],
  redrive: ['dead'],
  edit: ['dead'],
}

export function amend(m: Model, filter: Filter, change: Change, max: number, dryRun: boolean): Amended {
  const found = [...m.tasks.values()]
    .filter((task) => matches(task, filter) && touched[change.do].includes(task.state))
    .filter((task) => !(task.state === 'leased' && task.cancelAsked))
    .filter((task) => change.do !== 'move' || (task.queue !== change.to && task.moveTo !== change.to))
    .sort(byId)
    .slice(0, max)
  const asked = found.filter((task) => task.state === 'leased').length
  const answer = { changed: found.length - asked, asked, ids: found.map((task) => task.id) }
  if (dryRun) return answer
  // Each redriven task goes before the others of its key: the last one first, so that they keep their order.
  if (change.do === 'redrive') found.reverse()
  for (const task of found) apply(m, task, change)
  m.promote()
  return answer
}

function matches(task: ModelTask, filter: Filter): boolean {
  const { ids, queue, type, key, batch, states } = filter
  return (
    (ids === undefined || ids.includes(task.id)) &&
    (queue === undefined || queue === task.queue) &&
    (type === undefined || type === task.type) &&
    (key === undefined || key === task.key) &&
    (batch === undefined || batch === task.batch) &&
    (states === undefined || states.includes(task.state))
  )
}

function apply(m: Model, task: ModelTask, change: Change): void {
  if (change.do === 'edit') {
    m.step(task, 'edit', 'dead')
    task.payload = change.payload
  } else if (change.do === 'redrive') redrive(m, task)
  else if (change.do === 'discard') {
    m.step(task, 'discard', null)
    m.countBatch(task, 'dead', -1)
    m.countBatch(task, 'cancelled')
    m.gone(task)
  } else if (change.do === 'move') {
    if (task.state === 'leased') m.askMove(task, change.to)
    else m.move(task, change.to)
  } else {
    if (task.state === 'leased') {
      task.cancelAsked = true
      return
    }
    m.step(task, change.do, null)
    m.countBatch(task, 'cancelled')
    m.gone(task)
  }
}

function redrive(m: Model, task: ModelTask): void {
  const ahead = [...m.tasks.values()]
    .filter((other) => other.queue === task.queue && other.key === task.key && other.state === 'waiting')
    .map((other) => other.dueAt)
  m.step(task, 'redrive', task.key === null ? 'ready' : 'waiting')
  task.place = m.now - task.priority * m.rulesOf(task.queue).headStartMs
  task.dueAt = task.key === null ? m.now : Math.min(m.now, ...ahead.map((dueAt) => dueAt - 1))
  Object.assign(task, { spent: 0, releases: 0, deaths: 0, slot: false, reason: null })
  m.countBatch(task, 'dead', -1)
  if (task.dedupKey !== null) {
    const name = dedupName(task.queue, task.dedupKey)
    const held = m.dedup.get(name)
    if (held && (held.endsAt === null || held.endsAt > m.now)) task.dedupKey = null
    else m.dedup.set(name, { task: task.id, endsAt: null })
  }
  m.touch(task)
}

/** New tasks of a type go to the other queue, or no longer; answers the code of what refuses that. */
export function route(m: Model, from: { queue: string; type: string }, to: string | null): string | null {
  const name = figuresOf(from)
  if (to === null) return m.routes.delete(name) ? null : 'PW_MOVE_UNKNOWN'
  const there = { queue: to, type: typeIn(to, from) }
  for (const each of [from, there]) m.countsOf(figuresOf(each))
  if (m.routes.has(figuresOf(there))) return 'PW_MOVE_CIRCLE'
  m.routes.set(name, there)
  return null
}

function batchOf(m: Model, name: string): ModelBatch {
  const batch = m.batches.get(name) ?? newBatch()
  m.batches.set(name, batch)
  return batch
}

/** Nothing can be added any more. Answers false for a batch that was sealed before. */
export function seal(m: Model, name: string): boolean {
  const batch = batchOf(m, name)
  const { sealed } = batch
  batch.sealed = true
  return !sealed
}

/** Says what follows a batch; answers the code of the refusal, if it is refused. */
export function follow(m: Model, name: string, { batch: other, ...task }: NewTask): string | null {
  const existed = { own: m.batches.has(name), other: other === undefined || m.batches.has(other) }
  const batch = batchOf(m, name)
  const place = other === undefined ? null : batchOf(m, other)
  const code = refusal(m, batch, place, task)
  // A refusal leaves nothing behind.
  if (code !== null && !existed.own) m.batches.delete(name)
  if (code !== null && !existed.other) m.batches.delete(other as string)
  if (code !== null || same(batch.followUp, task, place)) return code
  const before = batch.followUp?.place ?? null
  if (before !== place && place) place.total++
  if (before !== place && before) before.cancelled++
  batch.followUp = { task, place, id: null }
  return null
}

const same = (before: ModelBatch['followUp'], task: NewTask, place: ModelBatch | null) =>
  before !== null && before.place === place && JSON.stringify(before.task) === JSON.stringify(task)

function refusal(m: Model, batch: ModelBatch, place: ModelBatch | null, task: NewTask): string | null {
  if (same(batch.followUp, task, place)) return null
  if (batch.finished) return 'PW_BATCH_FINISHED'
  if (place === null || place === batch.followUp?.place) return null
  if (place.sealed) return 'PW_BATCH_SEALED'
  for (let at: ModelBatch | null = place; at !== null && m.nameOf(at) !== null; at = at.followUp?.place ?? null) {
    if (at === batch) return 'PW_OPTION_INVALID'
  }
  return null
}

/** Its figures and identities go, its tasks stay; what would have followed never comes. False: no such batch. */
export function forget(m: Model, name: string): boolean {
  const batch = m.batches.get(name)
  if (!batch) return false
  m.batches.delete(name)
  if (!batch.finished && batch.followUp?.place) batch.followUp.place.cancelled++
  for (const task of m.tasks.values()) if (task.batch === name) task.batch = null
  return true
}
