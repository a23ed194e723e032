// Compares everything an engine shows with the model's full count: every task, figure, history row and batch.
import assert from 'node:assert/strict'
import type { Engine, TypeFigures } from '../../dist/engine/contract.js'
import { states, totals } from '../../dist/task/lifecycle.js'
import type { BatchRecord, HistoryRecord, ResultRecord, TaskRecord } from '../../dist/task/records.js'
import { byId, type Counts, figuresOf, type Model, type ModelTask } from './model.js'

/** Throws when a task, a figure, a history row or a batch of the store is not what the model says. */
export async function compareAll(engine: Engine, m: Model): Promise<void> {
  await compareTasks(engine, m)
  await compareFigures(engine, m)
  await compareBatches(engine, m)
  await compareEnds(engine, m)
}

async function compareEnds(engine: Engine, m: Model): Promise<void> {
  const { items } = await engine.select('result', { ids: [...m.ends.keys()] }, null)
  // Of a death the reason is enough.
  const found = (items as unknown as ResultRecord[]).map(({ id, type, outcome, result }) => {
    return { id, type, outcome, result: outcome === 'dead' ? JSON.parse(result ?? '').reason : result }
  })
  const kept = [...m.ends].filter(([, { endsAt }]) => endsAt > m.now)
  const expected = kept.map(([id, { type, outcome, result }]) => ({ id, type, outcome, result }))
  assert.deepEqual(found, expected.sort(byId), 'the kept ends')
}

async function compareTasks(engine: Engine, m: Model): Promise<void> {
  const found: TaskRecord[] = []
  let cursor: string | null = null
  do {
    const page = await engine.select('task', { limit: 20 }, cursor)
    found.push(...(page.items as unknown as TaskRecord[]))
    cursor = page.next
  } while (cursor !== null)
  const expected = [...m.tasks.values()].sort(byId)
  assert.deepEqual(
    found.map((task) => task.id),
    expected.map((task) => task.id),
    'the tasks that exist',
  )
  for (const [i, task] of expected.entries()) compareTask(m, found[i] as TaskRecord, task)
  if (expected.length === 0) return
  const { items } = await engine.select('history', { ids: expected.map((task) => task.id) }, null)
  const rows = (items as unknown as HistoryRecord[]).map((row) => `${row.task} ${row.number} ${row.outcome}`)
  const known = expected.flatMap(({ id, history }) => history.map((row) => `${id} ${row.number} ${row.outcome}`))
  assert.deepEqual(rows.sort(), known.sort(), 'the history')
}

function compareTask(m: Model, found: TaskRecord, task: ModelTask): void {
  const wall = (at: number | null) => (at === null ? null : at + m.wallShift)
  const leased = task.state === 'leased'
  const worker = task.hold?.worker
  const { id, queue, type, state, key, batch, priority, dedupKey, number, spent, releases, deaths, fence } = task
  const { cancelAsked, progress, payload, reason } = task
  assert.deepEqual(
    { ...found, code: null, error: null, fingerprint: null, deadAt: null, headers: null },
    {
      ...{ id, queue, type, state, key, batch, priority, dedupKey, number, spent, releases, deaths, fence },
      ...{ cancelAsked, progress, payload, reason },
      enqueuedAt: wall(task.enqueuedAt),
      dueAt: task.wallAt ?? wall(task.dueAt),
      deadlineAt: wall(task.deadlineAt),
      place: task.place + m.wallShift,
      worker: leased && worker && m.workers.get(worker.name) === worker ? worker.name : null,
      leaseEndsAt: leased ? wall(task.wakeAt) : null,
      ...{ code: null, error: null, fingerprint: null, deadAt: null, headers: null },
    },
  )
}

async function compareFigures(engine: Engine, m: Model): Promise<void> {
  const { types } = await engine.measure(null, true)
  const expected = [...m.counts].map(([name, counts]) => figuresOfModel(m, name, counts))
  const byName = (rows: TypeFigures[]) => new Map(rows.filter(hadTasks).map((row) => [figuresOf(row), row]))
  assert.deepEqual(byName(types), byName(expected), 'the figures')
  for (const [name, counts] of m.counts) {
    const tasks = [...m.tasks.values()].filter((task) => figuresOf(task) === name)
    for (const state of ['scheduled', 'waiting', 'ready', 'leased', 'dead'] as const) {
      const full = tasks.filter((task) => task.state === state).length
      assert.equal(counts[state], full, `${state} of ${name} by full count`)
    }
  }
}

/** A type's name may be made before its first task, which then perhaps never comes: whether it shows is open. */
const hadTasks = (row: TypeFigures): boolean => [...states, ...totals].some((name) => row[name] !== 0)

function figuresOfModel(m: Model, name: string, counts: Counts): TypeFigures {
  const [queue, type] = JSON.parse(name) as [string, string]
  const tasks = [...m.tasks.values()].filter((task) => figuresOf(task) === name)
  const age = (instants: (number | null)[]) =>
    instants.length === 0 ? null : Math.max(0, m.now - Math.min(...instants.map((at) => at ?? 0)))
  return {
    queue,
    type,
    paused: m.paused.has(queue) || m.paused.has(name),
    backlogAgeMs: age(tasks.filter((task) => task.state === 'ready').map((task) => task.dueAt)),
    leaseAgeMaxMs: age(tasks.filter((task) => task.state === 'leased').map((task) => task.claimedAt)),
    ...counts,
  }
}

async function compareBatches(engine: Engine, m: Model): Promise<void> {
  const { items } = await engine.select('batch', {}, null)
  const found = (items as unknown as BatchRecord[]).map(({ createdAt, finishedAt, info, followUp, ...rest }) => ({
    ...rest,
    finished: finishedAt !== null,
    follows: followUp && [followUp.type, followUp.id],
  }))
  const expected = [...m.batches].map(([name, { members, followUp, ...rest }]) => ({
    name,
    ...rest,
    follows: followUp && [followUp.task.type ?? followUp.task.queue, followUp.id],
  }))
  const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1)
  assert.deepEqual(found.sort(byName), expected.sort(byName), 'the batches')
}
