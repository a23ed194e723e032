// Puts new tasks into the store: names first, then numbers, identities, dedup keys, and one statement for all rows.
import type { Enqueued, NewTask } from '../../engine/contract.js'
import { arrivalOf } from '../arrival.js'
import { revise, revises } from '../duplicate.js'
import { type FollowUp, followUpOf } from '../followup.js'
import { batchSealed } from '../named.js'
import type { TypeRow } from '../names.js'
import { code, flagsOf, stateOf } from '../receipt.js'
import type { Catalog } from './catalog.js'
import type { Link } from './link.js'
import { clean, enter, type Session } from './session.js'
import { lockRows } from './settle.js'
import { newColumns, type Statements } from './statements.js'

/**
 * Makes the queues, types and batches that are not there yet, in commits of their own, so that no transaction of a
 * caller holds a name that others wait for; throws PW_BATCH_SEALED before anything is made.
 */
export async function nameAll(link: Link, q: Statements, catalog: Catalog, tasks: readonly NewTask[]): Promise<void> {
  const batches = [...new Set(tasks.flatMap((task) => task.batch ?? []))]
  if (batches.length > 0) {
    const rows = await link.run<{ name: string; sealedAt: number | null }>(q.batchesByName, [batches])
    const sealed = rows.find((row) => row.sealedAt !== null)
    if (sealed) throw batchSealed(sealed.name)
    const missing = batches.filter((name) => !rows.some((row) => row.name === name))
    if (missing.length > 0) {
      const { nowUs } = await enter(link, q)
      await link.run(q.addBatches, [missing, Math.floor(nowUs / 1000)])
    }
  }
  await nameTypes(link, q, catalog, tasks)
  const mixed = tasks.flatMap((task) => toMix(catalog, task) ?? [])
  if (mixed.length === 0) return
  await link.run(q.mixTypes, [mixed.map((type) => type.id)])
  for (const type of mixed) type.mixed = 1
}

/** The type that this task's priority makes one of mixed order, if it is none yet. */
function toMix(catalog: Catalog, task: NewTask): TypeRow | undefined {
  const queue = catalog.queue(task.queue)?.id ?? 0
  const name = task.type ?? task.queue
  const type = task.priority ? (catalog.landing(queue, name) ?? catalog.type(queue, name)) : undefined
  return type?.mixed === 0 ? type : undefined
}

/** The tasks that nameAll has to prepare first. */
export const unprepared = (catalog: Catalog, tasks: readonly NewTask[]): NewTask[] =>
  tasks.filter((task) => unnamed(catalog, [task]).length > 0 || toMix(catalog, task))

type Named = Pick<NewTask, 'queue' | 'type'>

/** Makes the queues and types that these tasks need, or may come to when they die, and that are not there yet. */
export async function nameTypes(link: Link, q: Statements, catalog: Catalog, tasks: readonly Named[]): Promise<void> {
  if (unnamed(catalog, tasks).length === 0) return
  const known = await enter(link, q)
  await catalog.load(link, known.settings)
  const missing = unnamed(catalog, withDeaths(catalog, tasks))
  if (missing.length === 0) return
  const queues = [...new Set(missing.map((task) => task.queue))]
  await link.run(q.addQueues, [queues, Math.floor(known.nowUs / 1000)])
  await catalog.load(link, known.settings)
  const ids = missing.map((task) => catalog.queue(task.queue)?.id)
  await link.run(q.addTypes, [ids, missing.map((task) => task.type ?? task.queue)])
  await link.run(q.bumpSettings)
  await catalog.load(link, (await enter(link, q)).settings)
}

/** Makes what a queue's tasks may become when this queue takes its dead. */
export async function nameDeaths(link: Link, q: Statements, catalog: Catalog, queue: string, deadTo: string) {
  await catalog.load(link, (await enter(link, q)).settings)
  const { id = 0 } = catalog.queue(queue) ?? {}
  const names = [...catalog.typesOf(id)].map(({ name }) => (name === queue ? undefined : name))
  const there = [undefined, ...names].map((type): Named => ({ queue: deadTo, type }))
  await nameTypes(link, q, catalog, withDeaths(catalog, there))
}

/** These and what each of them becomes where queues take the dead of others. */
function withDeaths(catalog: Catalog, tasks: readonly Named[]): Named[] {
  return tasks.flatMap((task) => {
    const chain = [task]
    for (let { queue, type } = task; ; ) {
      const known = catalog.queue(queue)
      const deadTo = known ? catalog.policyOf(known.id).deadTo : null
      if (deadTo === null) return chain
      type = type === queue ? undefined : type
      queue = deadTo
      chain.push({ queue, type })
    }
  })
}

const unnamed = (catalog: Catalog, tasks: readonly Named[]) =>
  tasks.filter((task) => {
    const queue = catalog.queue(task.queue)
    return queue === undefined || catalog.type(queue.id, task.type ?? task.queue) === undefined
  })

/** The names of one call as numbers. */
interface Numbered {
  task: NewTask
  queue: number
  type: number
  batch: number | null
  /** The queue that a route led it away from. */
  left: number | null
}

export async function enqueue(s: Session, tasks: readonly NewTask[]): Promise<Enqueued[]> {
  const numbered = await numbers(s, tasks)
  const plain = tasks.every((task) => task.dedupKey === undefined && task.identity === undefined)
  const ids = plain ? null : await takeIds(s, tasks.length)
  const stands = ids === null ? null : await standing(s, numbered, ids)
  const fresh = numbered.filter((_, i) => stands === null || stands[i] === null)
  const rows = fresh.map((one) => newRow(s, one))
  const given = await insert(
    s,
    rows,
    ids?.filter((_, i) => stands?.[i] === null),
  )
  let next = 0
  const answers = numbered.map((_, i): Enqueued => {
    const known = stands?.[i] ?? null
    if (known !== null) return { id: String(known), state: 'gone', duplicate: true }
    const id = given[next]
    return { id: String(id), state: stateOf({ state: rows[next++]?.[2] as number }), duplicate: false }
  })
  const known = answers.filter((answer) => answer.duplicate)
  if (known.length > 0) {
    await reviseAll(s, tasks, answers)
    // A task of this very call may have been delayed by a later one.
    const ids = new Set(known.map(({ id }) => id))
    await findStates(
      s,
      answers.filter(({ id }) => ids.has(id)),
    )
  }
  return answers
}

/** In call order: a later task of this call may replace one before it. */
async function reviseAll(s: Session, tasks: readonly NewTask[], answers: readonly Enqueued[]): Promise<void> {
  const revising = tasks.flatMap((task, i) =>
    answers[i]?.duplicate && revises(task) ? [{ task, id: answers[i].id }] : [],
  )
  if (revising.length === 0) return
  const rows = await lockRows(s, [...new Set(revising.map(({ id }) => Number(id)))])
  for (const { task, id } of revising) {
    const row = rows.get(Number(id))
    if (row) revise(s, row, task, 0)
  }
}

/** Answers of tasks that have left `waiting` since. */
export function withPromoted(answers: Enqueued[], ids: ReadonlySet<number>): Enqueued[] {
  return answers.map((answer) => (ids.has(Number(answer.id)) ? { ...answer, state: 'ready' } : answer))
}

async function numbers(s: Session, tasks: readonly NewTask[]): Promise<Numbered[]> {
  const names = [...new Set(tasks.flatMap((task) => task.batch ?? []))]
  const batches = new Map<string, number>()
  if (names.length > 0) {
    const rows = await s.run<{ id: number; name: string }>(s.q.batchesByName, [names])
    const kept = await s.run<{ id: number }>(s.q.keepBatches, [rows.map((row) => row.id)])
    for (const { id, name } of rows) if (kept.some((row) => row.id === id)) batches.set(name, id)
    for (const name of names) if (!batches.has(name)) throw batchSealed(name)
  }
  return tasks.map((task) => {
    const queue = s.catalog.queue(task.queue)?.id ?? 0
    const name = task.type ?? task.queue
    const landing = s.catalog.landing(queue, name)
    const type = landing ?? s.catalog.type(queue, name)
    const batch = task.batch === undefined ? null : (batches.get(task.batch) ?? null)
    return { task, queue: landing?.queue ?? queue, type: type?.id ?? 0, batch, left: landing ? queue : null }
  })
}

/** Enqueues what follows a batch (number) that has just finished; where it has a place, it is counted already. */
export async function follow(s: Session, batch: number, text: string): Promise<void> {
  const followUp = followUpOf(text) as FollowUp
  const { task, place } = followUp
  // A batch that was forgotten meanwhile has no place to take.
  const known = place !== null && (await s.run(s.q.batchById, [place])).length > 0
  const [one] = await numbers(s, [task])
  if (task.priority) s.mix((one as Numbered).type)
  const row = newRow(s, { ...(one as Numbered), batch: known ? place : null }, false)
  const [id] = await insert(s, [row], undefined)
  await s.run(s.q.setFollowUp, [JSON.stringify({ ...followUp, id: String(id) }), batch])
}

/** The values of a new row, in the order of `newColumns`; counts the task, unless its batch has done so before. */
function newRow(s: Session, { task, queue, type, batch }: Numbered, joins = true): unknown[] {
  const from = arrivalOf(task, s.now, 0, s.catalog.policyOf(queue).headStartMs)
  s.count('enqueue', type, null, from.state)
  if (joins) s.countBatch(batch, 'total')
  if (from.state === 'ready') s.readied(type, from.place)
  if (from.state === 'waiting') s.touchLane(queue, task.key ?? null)
  return [
    ...[queue, type, code[from.state], from.place, from.dueAt, from.wakeAt, from.deadlineAt],
    ...[task.key ?? null, task.weight ?? 1, from.priority, batch, task.dedupKey ?? null],
    ...[flagsOf(task), s.now, clean(task.headers ?? null), clean(task.payload)],
  ]
}

async function insert(s: Session, rows: unknown[][], ids: number[] | undefined): Promise<number[]> {
  if (rows.length === 0) return []
  const columns = Object.keys(newColumns).map((_, i) => rows.map((row) => row[i]))
  if (ids === undefined) {
    const given = await s.run<{ id: number }>(s.q.insert, columns)
    return given.map((row) => row.id).sort((a, b) => a - b)
  }
  s.send(s.q.insertAs, ids, ...columns)
  return ids
}

async function takeIds(s: Session, count: number): Promise<number[]> {
  const rows = await s.run<{ id: number }>(s.q.takeIds, [count])
  return rows.map((row) => row.id).sort((a, b) => a - b)
}

/**
 * For each task the one that already stands for it, by its identity in the batch or by its dedup key; null for none.
 * Keys are taken in their order, so that two calls that want the same ones meet at the first.
 */
async function standing(s: Session, tasks: readonly Numbered[], ids: readonly number[]): Promise<(number | null)[]> {
  const members = await takeMembers(s, tasks, ids)
  const unresolved = tasks.map(({ task, batch }, i) => {
    const member = batch === null || task.identity === undefined ? undefined : members.get(`${batch} ${task.identity}`)
    return member === undefined || member === ids[i]
  })
  const held = await heldWhereLeft(s, tasks)
  const { homes, takers } = homesOf(tasks, unresolved, held)
  const taken = await takeDedups(s, tasks, ids, takers)
  return tasks.map(({ task, batch }, i) => {
    const id = ids[i] as number
    const identity = batch === null || task.identity === undefined ? null : `${batch} ${task.identity}`
    const member = identity === null ? id : (members.get(identity) ?? id)
    if (member !== id) return member
    const home = homes[i] ?? ''
    const holder = taken.get(home) ?? held.get(home) ?? id
    if (holder === id) return null
    // The identity stands for the task that is there, not for one that never came to be.
    if (identity !== null) {
      members.set(identity, holder)
      s.add(s.q.setMembers, batch, task.identity, holder)
    }
    return holder
  })
}

async function takeMembers(
  s: Session,
  tasks: readonly Numbered[],
  ids: readonly number[],
): Promise<Map<string, number>> {
  const first = new Map<string, [number, string, number]>()
  for (const [i, { task, batch }] of tasks.entries()) {
    if (batch === null || task.identity === undefined || first.has(`${batch} ${task.identity}`)) continue
    first.set(`${batch} ${task.identity}`, [batch, task.identity, ids[i] as number])
  }
  if (first.size === 0) return new Map()
  const rows = [...first.values()]
  const [batches, identities] = [rows.map((row) => row[0]), rows.map((row) => row[1])]
  await s.run(s.q.addMembers, [batches, identities, rows.map((row) => row[2])])
  const known = await s.run<{ batch: number; identity: string; task: number }>(s.q.membersOf, [batches, identities])
  return new Map(known.map((row) => [`${row.batch} ${row.identity}`, row.task]))
}

/** Who holds the dedup keys of tasks that a route led away in the queue that they left, by queue and key. */
async function heldWhereLeft(s: Session, tasks: readonly Numbered[]): Promise<Map<string, number>> {
  const led = tasks.filter(({ task, left }) => left !== null && task.dedupKey !== undefined)
  if (led.length === 0) return new Map()
  const columns = [led.map(({ left }) => left), led.map(({ task }) => task.dedupKey)]
  return byHome(await s.run<DedupRow>(s.q.dedupsHeld, [...columns, s.now]))
}

/**
 * Where each of these looks for its dedup key: in the queue that a route led it away from if it is held there, be it by
 * a task before it in this call; else where it lands. And who of them, by queue and key, takes what nobody holds.
 */
function homesOf(tasks: readonly Numbered[], wanted: readonly boolean[], held: ReadonlyMap<string, number>) {
  const takers = new Map<string, number>()
  const homes = tasks.map(({ task, queue, left }, i) => {
    if (!wanted[i] || task.dedupKey === undefined) return null
    const before = `${left} ${task.dedupKey}`
    if (held.has(before) || takers.has(before)) return before
    const home = `${queue} ${task.dedupKey}`
    if (!takers.has(home)) takers.set(home, i)
    return home
  })
  return { homes, takers }
}

/** Takes these keys, each for the task of this number, where nobody holds them; answers who holds each. */
async function takeDedups(
  s: Session,
  tasks: readonly Numbered[],
  ids: readonly number[],
  takers: ReadonlyMap<string, number>,
): Promise<Map<string, number>> {
  if (takers.size === 0) return new Map()
  const rows = [...takers.values()]
  const queues = rows.map((i) => tasks[i]?.queue)
  const keys = rows.map((i) => tasks[i]?.task.dedupKey)
  await s.run(s.q.takeDedups, [queues, keys, rows.map((i) => ids[i]), s.now])
  return byHome(await s.run<DedupRow>(s.q.dedupsOf, [queues, keys]))
}

interface DedupRow {
  queue: number
  dedupKey: string
  task: number
}

const byHome = (rows: readonly DedupRow[]) => new Map(rows.map((row) => [`${row.queue} ${row.dedupKey}`, row.task]))

async function findStates(s: Session, answers: Enqueued[]): Promise<void> {
  const rows = await s.run<{ id: number; state: number }>(s.q.statesOf, [answers.map(({ id }) => Number(id))])
  const found = new Map(rows.map((row) => [String(row.id), stateOf(row)]))
  for (const answer of answers) answer.state = found.get(answer.id) ?? 'gone'
}
