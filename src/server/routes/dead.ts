// Routes of dead letters: look at them, edit one, redrive or discard some.
import * as v from 'valibot'
import { PieceworkError } from '../../ground/errors.js'
import { amendAll } from '../../queue/amend.js'
import { checkRedrive, type RedriveOptions, redrive } from '../../queue/redrive.js'
import { filterFor } from '../../queue/tasks.js'
import { checkPayloadBounds } from '../../task/payload.js'
import type { HistoryRecord, TaskRecord } from '../../task/records.js'
import { s } from '../check.js'
import { rawMembers } from '../raw.js'
import type { Call, Reply, Route } from '../route.js'
import { deadShape, deadText, filterBody, isoOf, pageOf, pageQuery, pageText } from '../shapes.js'
import { meant } from './queues.js'

const errorFields = { fingerprint: v.optional(s.name), text: v.optional(s.name) }
const deadBody = { ...filterBody, ...errorFields }
const redriveBody = v.strictObject({
  ...deadBody,
  ...{ perSecond: v.optional(v.number()), canary: v.optional(v.number()), dryRun: v.optional(v.boolean()) },
})

async function list({ broker, params, query, who }: Call): Promise<Reply> {
  const { cursor = null, ...fields } = query as Record<string, string>
  const filter = { ...filterFor(params.q as string, fields), states: ['dead'] as const }
  const page = await broker.engine.select('task', filter, cursor)
  const rows = page.items as unknown as TaskRecord[]
  return {
    text: pageText(
      rows.map((row) => deadText(row, who)),
      page.next,
    ),
  }
}

async function oneDead({ broker, params }: Call): Promise<TaskRecord> {
  const { q, id } = params as { q: string; id: string }
  const row = (await broker.engine.select('task', { ids: [id] }, null)).items[0] as TaskRecord | undefined
  if (row?.queue === q && row.state === 'dead') return row
  throw new PieceworkError('PW_TASK_GONE', `There is no dead letter ${id} in queue ${JSON.stringify(q)}.`, { id })
}

async function look(call: Call): Promise<Reply> {
  const row = await oneDead(call)
  const page = await call.broker.engine.select('history', { ids: [row.id] }, null)
  const history = (page.items as unknown as HistoryRecord[]).map(({ task: _, ...past }) => ({
    ...past,
    startedAt: isoOf(past.startedAt),
    endedAt: isoOf(past.endedAt),
  }))
  return { text: deadText(row, call.who, { history }) }
}

async function edit(call: Call): Promise<Reply> {
  const { broker, text, who } = call
  const payload = checkPayloadBounds(rawMembers(text).get('payload') ?? 'null')
  const { id } = await oneDead(call)
  await broker.engine.amend({ ids: [id] }, { do: 'edit', payload }, who.actor, { max: 1, dryRun: false })
  return { text: deadText(await oneDead(call), who) }
}

async function redriven(call: Call): Promise<Reply> {
  const { perSecond, canary, dryRun, ...fields } = call.body as RedriveOptions
  const options = { perSecond, canary, dryRun }
  checkRedrive(options)
  const filter = meant({ ...call, body: fields } as Call, 'redrive')
  return { body: await redrive(call.broker.as(call.who), filter, options) }
}

async function discard(call: Call): Promise<Reply> {
  const filter = { ...meant(call, 'discard'), states: ['dead'] as const }
  return { body: { discarded: (await amendAll(call.broker.as(call.who), filter, { do: 'discard' }, false)).changed } }
}

const base = { scope: ['operate'] } as const

export const deadRoutes: readonly Route[] = [
  {
    ...base,
    method: 'GET',
    path: '/v1/queues/{q}/dead',
    summary: 'Dead letters of a queue, by id',
    query: v.strictObject({
      ...{ type: v.optional(s.name), key: v.optional(s.name), batch: v.optional(s.name) },
      ...errorFields,
      ...pageQuery,
    }),
    answers: { 200: pageOf(deadShape) },
    handle: list,
  },
  {
    ...base,
    method: 'POST',
    path: '/v1/queues/{q}/dead/redrive',
    summary: 'Make dead letters ready again; with perSecond or canary it answers when the last one has gone',
    body: redriveBody,
    answers: { 200: v.strictObject({ redriven: v.number(), failed: v.optional(v.number()) }) },
    handle: redriven,
  },
  {
    ...base,
    method: 'POST',
    path: '/v1/queues/{q}/dead/discard',
    summary: 'Remove dead letters for good',
    body: v.strictObject(deadBody),
    answers: { 200: v.strictObject({ discarded: v.number() }) },
    handle: discard,
  },
  {
    ...base,
    method: 'GET',
    path: '/v1/queues/{q}/dead/{id}',
    summary: 'One dead letter with the history of its deliveries',
    answers: { 200: deadShape },
    handle: look,
  },
  {
    ...base,
    method: 'PATCH',
    path: '/v1/queues/{q}/dead/{id}',
    summary: 'Give a dead letter another payload; redrive it afterwards',
    body: v.strictObject({ payload: v.unknown() }),
    answers: { 200: deadShape },
    handle: edit,
  },
]
