// Routes of schedules: list them, look at one, set or remove it; a name is looked for in the queues of the caller.
import * as v from 'valibot'
import { PieceworkError } from '../../ground/errors.js'
import {
  oneSchedule,
  plainSchedule,
  readSchedules,
  removeSchedule,
  type ScheduleOptions,
  scheduleOf,
  setSchedule,
} from '../../queue/schedules.js'
import { checkPayloadBounds } from '../../task/payload.js'
import type { ScheduleRecord } from '../../task/records.js'
import { missedChoices } from '../../task/schedule.js'
import type { Caller } from '../auth.js'
import { s } from '../check.js'
import { rawMembers } from '../raw.js'
import type { Call, Reply, Route } from '../route.js'
import { guardedText, instantOf, pageOf, pageText } from '../shapes.js'

const mayBe = { text: v.nullable(s.text), number: v.nullable(v.number()) }

const scheduleShape = v.strictObject({
  ...{ queue: s.text, name: s.text, cron: mayBe.text, tz: mayBe.text, everyMs: mayBe.number, dueAt: s.instant },
  ...{ missed: v.picklist(missedChoices), nextAt: s.instant, lastAt: s.instant, type: s.text, key: mayBe.text },
  ...{ priority: v.number(), deadlineMs: mayBe.number, dedupKey: mayBe.text },
  /** Left out for who may not read payloads. */
  ...{ headers: v.optional(v.record(s.text, s.text)), payload: v.optional(v.unknown()) },
})

const scheduleBody = v.strictObject({
  ...{ queue: s.name, payload: v.unknown(), cron: v.optional(s.text), tz: v.optional(s.text) },
  ...{ everyMs: v.optional(v.number()), dueAt: v.optional(v.union([s.text, v.number()])) },
  ...{ missed: v.optional(s.text), type: v.optional(s.name), key: v.optional(s.name) },
  ...{ priority: v.optional(v.number()), deadlineMs: v.optional(v.number()), dedupKey: v.optional(s.name) },
  headers: v.optional(v.record(s.text, s.text)),
})
const queueQuery = v.strictObject({ queue: v.optional(s.name) })

function textOf(record: ScheduleRecord, who: Caller): string {
  const { headers, payload } = record.task
  return guardedText(plainSchedule(record), { headers: JSON.parse(headers ?? '{}') }, payload, who)
}

async function found({ broker, query, who }: Call, name?: string): Promise<ScheduleRecord[]> {
  const all = await readSchedules(broker.as(who), { queue: query.queue as string | undefined, name })
  return all.filter(({ queue }) => who.covers(queue))
}

async function one(call: Call): Promise<ScheduleRecord> {
  const name = call.params.schedule as string
  return oneSchedule(await found(call, name), name)
}

const list = async (call: Call): Promise<Reply> => ({
  text: pageText(
    (await found(call)).map((record) => textOf(record, call.who)),
    null,
  ),
})

const look = async (call: Call): Promise<Reply> => ({ text: textOf(await one(call), call.who) })

async function put({ broker, params, body, text, who }: Call): Promise<Reply> {
  const { queue, payload: _, dueAt, ...options } = body as v.InferOutput<typeof scheduleBody>
  if (!who.covers(queue)) throw new PieceworkError('PW_FORBIDDEN', 'Its queues do not cover this one.')
  const payload = checkPayloadBounds(rawMembers(text).get('payload') ?? 'null')
  const patch = scheduleOf(queue, { ...options, dueAt: instantOf(dueAt) } as ScheduleOptions, payload)
  return { text: textOf(await setSchedule(broker.as(who), queue, params.schedule, patch), who) }
}

async function remove(call: Call): Promise<Reply> {
  const { queue, name } = await one(call)
  await removeSchedule(call.broker.as(call.who), queue, name)
  return { body: { queue, name, removed: true } }
}

const path = '/v1/schedules/{schedule}'
const setters = ['produce', 'operate'] as const

export const scheduleRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/schedules',
    scope: setters,
    summary: 'Schedules by queue and name',
    query: queueQuery,
    answers: { 200: pageOf(scheduleShape) },
    handle: list,
  },
  {
    ...{ method: 'GET', path, scope: setters, query: queueQuery },
    summary: 'One schedule; `queue` says whose, where several have one of this name',
    answers: { 200: scheduleShape },
    handle: look,
  },
  {
    ...{ method: 'PUT', path, scope: setters, body: scheduleBody },
    summary: 'Put a task into a queue at each slot; set again, it goes on where it was',
    answers: { 200: scheduleShape },
    handle: put,
  },
  {
    ...{ method: 'DELETE', path, scope: ['operate'], query: queueQuery },
    summary: 'End a schedule; its tasks stay',
    answers: { 200: v.strictObject({ queue: s.text, name: s.text, removed: v.boolean() }) },
    handle: remove,
  },
]
