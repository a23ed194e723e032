// Routes of limits: look at them, set them over what programs declared, remove them.
import * as v from 'valibot'
import { PieceworkError } from '../../ground/errors.js'
import type { LimitRecord } from '../../task/records.js'
import { s } from '../check.js'
import type { Call, Reply, Route } from '../route.js'
import { pageOf } from '../shapes.js'

const ceiling = v.nullable(v.number())
const limitShape = v.strictObject({
  ...{ limit: s.text, concurrencyMax: ceiling, perSecondMax: ceiling, adaptive: v.boolean() },
  ...{ leased: v.number(), queues: v.array(s.text), share: v.number(), concurrencyNow: ceiling },
})
const limitBody = v.strictObject({
  ...{ concurrencyMax: v.optional(ceiling), perSecondMax: v.optional(ceiling), adaptive: v.optional(v.boolean()) },
})

const shapeOf = ({ name, ...record }: LimitRecord) => ({ limit: name, ...record })

async function list({ broker, who }: Call): Promise<Reply> {
  const limits = (await broker.engine.select('limit', {}, null)).items as unknown as LimitRecord[]
  return { body: { items: limits.filter(({ name }) => who.covers(name)).map(shapeOf), next: null } }
}

async function look({ broker, params }: Call): Promise<Reply> {
  const name = params.name as string
  const limit = (await broker.engine.select('limit', { name }, null)).items[0] as LimitRecord | undefined
  if (limit) return { body: shapeOf(limit) }
  throw new PieceworkError('PW_LIMIT_UNKNOWN', `There is no limit ${JSON.stringify(name)}.`, { limit: name })
}

async function set({ broker, params, body, who }: Call): Promise<Reply> {
  const made = await broker.engine.configure('limit', params.name as string, { operator: body }, who.actor)
  return { body: shapeOf(made as unknown as LimitRecord) }
}

async function remove({ broker, params, who }: Call): Promise<Reply> {
  await broker.engine.configure('limit', params.name as string, null, who.actor)
  return { body: { limit: params.name, removed: true } }
}

const base = { scope: ['operate'], path: '/v1/limits/{name}' } as const

export const limitRoutes: readonly Route[] = [
  {
    ...base,
    method: 'GET',
    path: '/v1/limits',
    summary: 'Limits, by name',
    answers: { 200: pageOf(limitShape) },
    handle: list,
  },
  {
    ...base,
    method: 'GET',
    summary: 'One limit: its ceilings, what is under it, and what of it is in force',
    answers: { 200: limitShape },
    handle: look,
  },
  {
    ...base,
    method: 'PUT',
    summary: 'Set fields of a limit; they win over what programs declare',
    body: limitBody,
    answers: { 200: limitShape },
    handle: set,
  },
  {
    ...base,
    method: 'DELETE',
    summary: 'Remove a limit that no queue uses',
    answers: { 200: v.strictObject({ limit: s.text, removed: v.boolean() }) },
    handle: remove,
  },
]
