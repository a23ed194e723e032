// Routes of tasks: enqueue one, many or a stream of them, look at them, cancel one.
import * as v from 'valibot'
import type { NewTask } from '../../engine/contract.js'
import { PieceworkError } from '../../ground/errors.js'
import { amendAll } from '../../queue/amend.js'
import { enqueueAll } from '../../queue/bulk.js'
import { type TaskOptions, taskOf } from '../../queue/options.js'
import { readEnd } from '../../queue/results.js'
import { filterFor } from '../../queue/tasks.js'
import { states } from '../../task/lifecycle.js'
import { bulkTasksMax, payloadDepthMax } from '../../task/limits.js'
import { checkPayloadBounds, parseJson } from '../../task/payload.js'
import type { TaskRecord } from '../../task/records.js'
import { bodyLines } from '../body.js'
import { checked, s } from '../check.js'
import { rawElements, rawMembers } from '../raw.js'
import type { Call, Reply, Route } from '../route.js'
import { doneShape, doneText, instantOf, pageOf, pageQuery, pageText, stateOf, taskShape, taskText } from '../shapes.js'

export const taskBody = v.strictObject({
  payload: v.unknown(),
  type: v.optional(s.name),
  key: v.optional(s.name),
  priority: v.optional(s.whole(-100, 100)),
  delayMs: v.optional(s.whole(0, Number.MAX_SAFE_INTEGER)),
  dueAt: v.optional(v.union([s.text, v.number()])),
  deadlineMs: v.optional(s.whole(1, Number.MAX_SAFE_INTEGER)),
  dedupKey: v.optional(s.name),
  onDuplicate: v.optional(s.text),
  batch: v.optional(s.name),
  headers: v.optional(v.record(s.text, s.text)),
})
type TaskBody = v.InferOutput<typeof taskBody>

const answer = v.strictObject({ id: s.text, duplicate: v.boolean() })
const counts = v.strictObject({ enqueued: v.number(), duplicates: v.number() })
const readers = ['produce', 'work', 'operate'] as const

/** The engine's task; the payload is the text that was sent. */
export function taskFor(queue: string, { payload: _, dueAt, ...options }: TaskBody, text: string): NewTask {
  const payload = checkPayloadBounds(rawMembers(text).get('payload') ?? 'null')
  return taskOf(queue, payload, { ...options, dueAt: instantOf(dueAt) } as TaskOptions)
}

async function enqueue(call: Call): Promise<Reply> {
  const { broker, params, body, text, key } = call
  const queue = params.q as string
  if (body === undefined) return { body: await enqueueLines(call, queue) }
  if (!Array.isArray(body)) {
    const task = taskFor(queue, body as TaskBody, text)
    const [made] = key === null ? [await broker.connection.enqueue(task)] : await broker.engine.enqueue(key, [task])
    const { id, duplicate } = made as { id: string; duplicate: boolean }
    return { status: duplicate ? 200 : 201, body: { id, duplicate } }
  }
  if (body.length > bulkTasksMax) {
    throw new PieceworkError('PW_BODY_TOO_LARGE', `The array has ${body.length} tasks, more than ${bulkTasksMax}.`)
  }
  const texts = rawElements(text)
  const tasks = body.map((item: TaskBody, at) => taskFor(queue, item, texts[at] as string))
  const made = key === null ? await broker.connection.enqueueAll(tasks) : await broker.engine.enqueue(key, tasks)
  return { body: { results: made.map(({ id, duplicate }) => ({ id, duplicate })) } }
}

/** A stream in constant memory; a line that is refused ends it, and the refusal says what came in before. */
function enqueueLines({ broker, request, key }: Call, queue: string) {
  if (key !== null) {
    const text = 'A stream cannot be repeated by Idempotency-Key; give each line a dedupKey.'
    throw new PieceworkError('PW_OPTION_INVALID', text, { field: 'Idempotency-Key' })
  }
  const lines = bodyLines({ request, clock: broker.clock, meter: broker.meter })
  return enqueueAll(broker.connection, failing(lines), (line) => {
    if (typeof line !== 'string') throw line
    const item = checked(taskBody, parseJson(line, payloadDepthMax + 2), 'The line')
    return { task: taskFor(queue, item as TaskBody, line) }
  })
}

/** A failure of the stream as its last item, so that it is told with what came in before it. */
async function* failing(lines: AsyncGenerator<string>): AsyncGenerator<unknown> {
  try {
    yield* lines
  } catch (error) {
    yield error
  }
}

async function list({ broker, params, query, who }: Call): Promise<Reply> {
  const { cursor, state: _, ...fields } = query
  const filter = filterFor(params.q as string, { ...fields, state: stateOf(query) })
  const page = await broker.engine.select('task', filter, (cursor as string | undefined) ?? null)
  const rows = page.items as unknown as TaskRecord[]
  return {
    text: pageText(
      rows.map((row) => taskText(row, who)),
      page.next,
    ),
  }
}

async function look({ broker, params, who }: Call): Promise<Reply> {
  const { q, id } = params as { q: string; id: string }
  const row = (await broker.engine.select('task', { ids: [id] }, null)).items[0] as TaskRecord | undefined
  if (row === undefined) {
    const end = await readEnd(broker.as(who), id)
    if (end?.outcome === 'done' && end.queue === q) return { text: doneText(end, who) }
  }
  if (row === undefined || row.queue !== q) {
    throw new PieceworkError('PW_TASK_GONE', `There is no task ${id} in queue ${JSON.stringify(q)}.`, { id })
  }
  return { text: taskText(row, who) }
}

async function cancel({ broker, params, who }: Call): Promise<Reply> {
  const { q, id } = params as { q: string; id: string }
  const filter = { ...filterFor(q, { ids: [id] }), states: ['scheduled', 'waiting', 'ready', 'leased'] as const }
  const { changed, asked } = await amendAll(broker.as(who), filter, { do: 'cancel' }, false)
  return { body: { cancelled: changed, asked } }
}

export const taskRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: '/v1/queues/{q}/tasks',
    scope: ['produce'],
    summary: 'Enqueue one task, an array of them in one commit, or a stream of lines',
    body: v.union([taskBody, v.array(taskBody)]),
    lines: true,
    keyed: true,
    answers: { 200: v.union([answer, v.strictObject({ results: v.array(answer) }), counts]), 201: answer },
    handle: enqueue,
  },
  {
    method: 'GET',
    path: '/v1/queues/{q}/tasks',
    scope: ['operate'],
    summary: 'Tasks of a queue, by id',
    query: v.strictObject({
      ...{ state: v.optional(v.picklist(states)), type: v.optional(s.name), key: v.optional(s.name) },
      ...{ batch: v.optional(s.name), ...pageQuery },
    }),
    answers: { 200: pageOf(taskShape) },
    handle: list,
  },
  {
    method: 'GET',
    path: '/v1/queues/{q}/tasks/{id}',
    scope: readers,
    summary: 'One task, also when it is done and its result is kept',
    answers: { 200: v.union([taskShape, doneShape]) },
    handle: look,
  },
  {
    method: 'DELETE',
    path: '/v1/queues/{q}/tasks/{id}',
    scope: ['operate'],
    summary: 'Cancel a task; one that is leased is asked to end',
    answers: { 200: v.strictObject({ cancelled: v.number(), asked: v.number() }) },
    handle: cancel,
  },
]
