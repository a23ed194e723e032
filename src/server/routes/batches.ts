// Routes of batches: make and say what follows, look, seal, cancel, forget.
import * as v from 'valibot'
import { PieceworkError } from '../../ground/errors.js'
import { cancelBatch } from '../../queue/batch.js'
import type { BatchRecord } from '../../task/records.js'
import { s } from '../check.js'
import { rawMembers } from '../raw.js'
import type { Call, Reply, Route } from '../route.js'
import { batchOf, batchShape, pageOf, pageQuery } from '../shapes.js'
import { taskBody, taskFor } from './tasks.js'

const putBody = v.strictObject({
  onDone: v.optional(v.strictObject({ queue: s.name, ...v.omit(taskBody, ['dedupKey', 'onDuplicate']).entries })),
})

async function list({ broker, query, who }: Call): Promise<Reply> {
  const { limit = 100, cursor = null } = query as { limit?: number; cursor?: string }
  const page = await broker.engine.select('batch', { limit }, cursor)
  const mine = (page.items as unknown as BatchRecord[]).filter(({ name }) => who.covers(name))
  return { body: { items: mine.map(batchOf), next: page.next } }
}

async function read({ broker, params }: Call): Promise<BatchRecord> {
  const name = params.name as string
  const batch = (await broker.engine.select('batch', { name }, null)).items[0] as BatchRecord | undefined
  if (batch) return batch
  throw new PieceworkError('PW_BATCH_UNKNOWN', `There is no batch ${JSON.stringify(name)}.`, { batch: name })
}

const look = async (call: Call): Promise<Reply> => ({ body: batchOf(await read(call)) })

const configured = (patch: Record<string, unknown>) => async (call: Call) => {
  const { broker, params, who } = call
  await broker.engine.configure('batch', params.name as string, patch, who.actor)
  return look(call)
}

/** What follows the batch; its payload is the text that was sent. */
async function put(call: Call): Promise<Reply> {
  const { onDone } = call.body as v.InferOutput<typeof putBody>
  if (onDone === undefined) return configured({})(call)
  const { queue, ...task } = onDone
  if (!call.who.may('produce') || !call.who.covers(queue)) {
    const text = `This token may not enqueue into ${JSON.stringify(queue)}.`
    throw new PieceworkError('PW_FORBIDDEN', text, { queue })
  }
  return configured({ followUp: taskFor(queue, task, rawMembers(call.text).get('onDone') ?? '{}') })(call)
}

async function cancel({ broker, params, who }: Call): Promise<Reply> {
  return { body: await cancelBatch(broker.as(who), params.name as string) }
}

async function forget(call: Call): Promise<Reply> {
  const { name } = await read(call)
  await call.broker.engine.configure('batch', name, null, call.who.actor)
  return { body: { batch: name, forgotten: true } }
}

const readers = ['produce', 'operate'] as const

export const batchRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/batches',
    scope: ['operate'],
    summary: 'Batches, the oldest first',
    query: v.strictObject(pageQuery),
    answers: { 200: pageOf(batchShape) },
    handle: list,
  },
  {
    method: 'GET',
    path: '/v1/batches/{name}',
    scope: readers,
    summary: 'How one batch stands',
    answers: { 200: batchShape },
    handle: look,
  },
  {
    method: 'PUT',
    path: '/v1/batches/{name}',
    scope: readers,
    summary: 'Make a batch before its first task, or say what is enqueued exactly once when it has finished',
    body: putBody,
    answers: { 200: batchShape },
    handle: put,
  },
  {
    method: 'DELETE',
    path: '/v1/batches/{name}',
    scope: ['operate'],
    summary: 'Forget a batch and the identities of its items; its tasks stay',
    answers: { 200: v.strictObject({ batch: s.text, forgotten: v.boolean() }) },
    handle: forget,
  },
  {
    method: 'POST',
    path: '/v1/batches/{name}/seal',
    scope: readers,
    summary: 'Say that nothing will be added any more',
    answers: { 200: batchShape },
    handle: configured({ sealed: true }),
  },
  {
    method: 'POST',
    path: '/v1/batches/{name}/cancel',
    scope: ['operate'],
    summary: 'Seal a batch and cancel what is open of it; what is leased is asked to end',
    answers: { 200: v.strictObject({ cancelled: v.number(), asked: v.number() }) },
    handle: cancel,
  },
]
