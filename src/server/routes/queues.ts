// Routes of queues: what they are, their policy, and what operators do to them.
import * as v from 'valibot'
import { PieceworkError } from '../../ground/errors.js'
import { amendAll } from '../../queue/amend.js'
import { queueStats } from '../../queue/figures.js'
import { moveBack, moveTasks, routeOf } from '../../queue/move.js'
import { configureQueue, pauseQueue, readQueue } from '../../queue/policy.js'
import { checkMeant, filterFor } from '../../queue/tasks.js'
import { policyDefaults } from '../../task/limits.js'
import type { QueueRecord } from '../../task/records.js'
import { s } from '../check.js'
import type { Call, Reply, Route } from '../route.js'
import { filterBody, isoOf, pageOf, pageQuery, stateBody } from '../shapes.js'

const layer = v.nullable(v.record(s.text, v.unknown()))
const queueShape = v.strictObject({
  ...{ queue: s.text, paused: v.boolean(), createdAt: s.text },
  policy: v.record(s.text, v.unknown()),
  code: layer,
  operator: layer,
})
const figureShape = v.object({
  ...{ queue: s.text, paused: v.boolean(), drained: v.boolean(), workers: v.number() },
  ...{ ready: v.number(), scheduled: v.number(), waiting: v.number(), leased: v.number(), dead: v.number() },
  ...{ backlogAgeMs: v.nullable(v.number()), leaseAgeMaxMs: v.nullable(v.number()) },
})

/** Any field of a policy, which the library checks by itself; or what takes fields away. */
const policyPatch = v.nullable(
  v.strictObject({
    ...Object.fromEntries(Object.keys(policyDefaults).map((field) => [field, v.optional(v.unknown())])),
    unset: v.optional(v.array(s.text)),
  }),
)
const purgeBody = v.strictObject({ ...filterBody, state: stateBody })
const moveBody = v.strictObject({
  ...{ ...filterBody, state: stateBody, to: v.optional(s.name), back: v.optional(v.literal(true)) },
})

const shapeOf = ({ name, paused, createdAt, policy, code, operator }: QueueRecord) => ({
  ...{ queue: name, paused, createdAt: isoOf(createdAt) },
  ...{ policy, code, operator },
})

async function list({ broker, query, who }: Call): Promise<Reply> {
  const { limit = 100, cursor = '' } = query as { limit?: number; cursor?: string }
  const all = (await broker.engine.select('queue', {}, null)).items as unknown as QueueRecord[]
  const mine = all.filter(({ name }) => who.covers(name) && name > cursor).sort((a, b) => (a.name < b.name ? -1 : 1))
  const page = mine.slice(0, limit)
  const figures = await broker.engine.measure(
    page.map(({ name }) => name),
    false,
  )
  const items = page.map(({ name, paused }) => {
    const { at: _, types: _types, ...stats } = queueStats(figures, name, paused)
    return stats
  })
  return { body: { items, next: mine.length > limit ? (page.at(-1)?.name ?? null) : null } }
}

async function queueOf({ broker, params, who }: Call): Promise<QueueRecord> {
  const name = params.q as string
  const queue = await readQueue(broker.as(who), name)
  if (queue) return queue
  throw new PieceworkError('PW_QUEUE_UNKNOWN', `There is no queue ${JSON.stringify(name)}.`, { queue: name })
}

const show = async (call: Call): Promise<Reply> => ({ body: shapeOf(await queueOf(call)) })

async function patch(call: Call): Promise<Reply> {
  const { broker, params, body, who } = call
  const name = params.q as string
  const { unset, ...fields } = (body ?? {}) as Record<string, unknown>
  if (typeof fields.deadTo === 'string') refuseOther(who, fields.deadTo)
  const acting = broker.as(who)
  if (body === null) await configureQueue(acting, name, null)
  if (unset !== undefined) await broker.engine.configure('queue', name, { unset }, who.actor)
  if (Object.keys(fields).length > 0) await configureQueue(acting, name, fields)
  return show(call)
}

const paused = (value: boolean) => async (call: Call) => {
  const { name } = await queueOf(call)
  await pauseQueue(call.broker.as(call.who), name, value)
  return { body: { queue: name, paused: value } }
}

/** The filter of a body that must name tasks or say `all`. */
export function meant({ params, body }: Call, what: string) {
  const { all, ...fields } = body as Record<string, unknown>
  checkMeant(what, { all, ...fields })
  return filterFor(params.q as string, fields)
}

async function purge(call: Call): Promise<Reply> {
  await queueOf(call)
  const { changed } = await amendAll(call.broker.as(call.who), meant(call, 'purge'), { do: 'purge' }, false)
  return { body: { purged: changed } }
}

/** Throws PW_FORBIDDEN where tasks would come into a queue that the caller may not use. */
function refuseOther(who: Call['who'], queue: string): void {
  if (!who.covers(queue)) throw new PieceworkError('PW_FORBIDDEN', 'Its queues do not cover the other queue.')
}

async function move(call: Call): Promise<Reply> {
  const { name } = await queueOf(call)
  const { to, back, all: _, ...fields } = call.body as Record<string, unknown>
  if ((to === undefined) === (back === undefined)) {
    throw new PieceworkError('PW_OPTION_INVALID', 'A move takes either to, or back: true with a type.')
  }
  const filter = filterFor(name, fields)
  const acting = call.broker.as(call.who)
  const other = back ? (await routeOf(acting, name, filter.type ?? '')).to : String(to)
  refuseOther(call.who, other)
  return { body: await (back ? moveBack(acting, name, filter, false) : moveTasks(acting, name, filter, to, false)) }
}

const count = (field: string) => v.strictObject({ [field]: v.number() })
const pauseShape = v.strictObject({ queue: s.text, paused: v.boolean() })
const base = { scope: ['operate'] } as const

export const queueRoutes: readonly Route[] = [
  {
    ...base,
    method: 'GET',
    path: '/v1/queues',
    summary: 'Queues with their figures, by name',
    query: v.strictObject(pageQuery),
    answers: { 200: pageOf(figureShape) },
    handle: list,
  },
  {
    ...base,
    method: 'GET',
    path: '/v1/queues/{q}',
    summary: 'One queue: what is in force, and the layers it is made of',
    answers: { 200: queueShape },
    handle: show,
  },
  {
    ...base,
    method: 'PATCH',
    path: '/v1/queues/{q}',
    summary: "Lay fields over the operator's policy; null drops it, `unset` names fields it gives up",
    body: policyPatch,
    answers: { 200: queueShape },
    handle: patch,
  },
  {
    ...base,
    method: 'POST',
    path: '/v1/queues/{q}/pause',
    summary: 'No claims until it is resumed; what is leased goes on',
    answers: { 200: pauseShape },
    handle: paused(true),
  },
  {
    ...base,
    method: 'POST',
    path: '/v1/queues/{q}/resume',
    summary: 'Let claims go on',
    answers: { 200: pauseShape },
    handle: paused(false),
  },
  {
    ...base,
    method: 'POST',
    path: '/v1/queues/{q}/purge',
    summary: 'Remove tasks that nobody holds; leased and dead ones stay',
    body: purgeBody,
    answers: { 200: count('purged') },
    handle: purge,
  },
  {
    ...base,
    method: 'POST',
    path: '/v1/queues/{q}/move',
    summary: 'Take tasks to another queue, a whole type with a route that later ones follow; or `back`',
    body: moveBody,
    answers: { 200: v.strictObject({ moved: v.number(), asked: v.number(), routed: v.boolean() }) },
    handle: move,
  },
]
