// Routes of workers in any language: claim, settle, extend.
import * as v from 'valibot'
import type { ClaimedTask, ErrorText, Verdict } from '../../engine/contract.js'
import { PieceworkError } from '../../ground/errors.js'
import { bulkTasksMax, checkName } from '../../task/limits.js'
import { checkPayloadBounds } from '../../task/payload.js'
import { errorText } from '../../worker/failure.js'
import type { Broker } from '../broker.js'
import { s } from '../check.js'
import { givingBack, poll } from '../claims.js'
import { isJson, rawElements, rawMembers, withRaw } from '../raw.js'
import type { Call, Reply, Route } from '../route.js'
import { isoOf } from '../shapes.js'

const leaseMs = s.whole(100, 43_200_000)
const delayMsMax = 365 * 86_400_000

const claimBody = v.strictObject({
  worker: s.name,
  max: v.optional(s.whole(1, bulkTasksMax)),
  waitMs: v.optional(s.whole(0, 20_000)),
  leaseMs: v.optional(leaseMs),
  types: v.optional(v.pipe(v.array(s.name), v.minLength(1))),
  claimId: v.optional(s.name),
})
type ClaimBody = v.InferOutput<typeof claimBody>

const delivery = v.strictObject({
  ...{ id: s.text, receipt: s.text, number: v.number(), fence: v.number(), type: s.text, key: v.nullable(s.text) },
  ...{ headers: v.record(s.text, s.text), enqueuedAt: s.text, leaseMs: v.number(), payload: v.unknown() },
})

const settleBody = v.strictObject({
  settles: v.pipe(
    v.array(
      v.strictObject({
        receipt: s.text,
        outcome: v.picklist(['ack', 'retry', 'release', 'bury']),
        delayMs: v.optional(s.whole(0, delayMsMax)),
        error: v.optional(v.union([s.text, v.strictObject({ code: v.optional(s.name), text: s.text })])),
        result: v.optional(v.unknown()),
      }),
    ),
    v.maxLength(bulkTasksMax),
  ),
})
type Settle = v.InferOutput<typeof settleBody>['settles'][number]

const extendBody = v.strictObject({
  extends: v.pipe(
    v.array(v.strictObject({ receipt: s.text, leaseMs, progress: v.optional(v.unknown()) })),
    v.maxLength(bulkTasksMax),
  ),
})

const results = <T extends readonly string[]>(outcomes: T) =>
  v.strictObject({ results: v.array(v.strictObject({ receipt: s.text, outcome: v.picklist(outcomes) })) })

async function claim({ broker, params, body, who, ending }: Call): Promise<Reply> {
  const { worker, max = 1, waitMs = 0, leaseMs, types = null, claimId } = body as ClaimBody
  checkName('worker', worker)
  const wants = [{ queue: params.q as string, types, max }]
  const requestId = claimId === undefined ? null : `http ${who.name ?? ''} ${claimId}`
  const asked = requestId === null ? null : broker.names.asked(`claim ${worker.length} ${worker} ${requestId}`)
  const claimed = await poll(broker, { worker, requestId, wants, leaseMs }, waitMs, ending)
  const sound = await soundOnes(broker, worker, claimed.deliveries)
  return {
    text: `{"deliveries":[${sound.map(deliveryText).join(',')}]}`,
    undelivered: givingBack(broker, worker, sound, asked?.last ?? (() => true)),
  }
}

/** A stored payload that is no JSON would spoil the whole answer: it goes where a worker of ours would put it. */
async function soundOnes(broker: Broker, worker: string, deliveries: readonly ClaimedTask[]): Promise<ClaimedTask[]> {
  const corrupt = deliveries.filter(({ payload }) => !isJson(payload))
  if (corrupt.length > 0) {
    const error = { code: 'PW_PAYLOAD_CORRUPT', text: 'The stored payload is not JSON.' }
    const verdicts = corrupt.map(({ receipt }) => ({ receipt, do: 'bury', error }) as const)
    await broker.engine.settle({ worker, flush: null }, verdicts)
  }
  return deliveries.filter((one) => !corrupt.includes(one))
}

function deliveryText({ payload, headers, enqueuedAt, ...task }: ClaimedTask): string {
  const { id, receipt, number, fence, type, key, leaseMs } = task
  const shape = { id, receipt, number, fence, type, key, headers: headersOf(headers), enqueuedAt: isoOf(enqueuedAt) }
  return withRaw({ ...shape, leaseMs }, 'payload', payload)
}

const headersOf = (text: string | null) => (text !== null && isJson(text) ? (JSON.parse(text) as object) : {})

async function settle({ broker, body, text, key }: Call): Promise<Reply> {
  const { settles } = body as v.InferOutput<typeof settleBody>
  const raw = settles.some((one) => one.result !== undefined)
    ? rawElements(rawMembers(text).get('settles') ?? '[]')
    : []
  const verdicts = settles.map((one, at) => verdictOf(one, raw[at]))
  const outcomes = await broker.engine.settle({ worker: 'http', flush: key }, verdicts)
  return { body: { results: settles.map(({ receipt }, at) => ({ receipt, outcome: outcomes[at] })) } }
}

function verdictOf({ receipt, outcome, delayMs, error, result }: Settle, text: string | undefined): Verdict {
  switch (outcome) {
    case 'ack':
      return result === undefined ? { receipt, do: 'ack' } : { receipt, do: 'ack', result: rawField(text, 'result') }
    case 'release':
      return { receipt, do: 'release', by: 'handler', delayMs, error: error === undefined ? undefined : textOf(error) }
    case 'retry':
      return { receipt, do: 'retry', delayMs, error: textOf(error ?? 'The worker gave no reason.') }
    case 'bury':
      if (delayMs === undefined) return { receipt, do: 'bury', error: textOf(error ?? 'The worker gave no reason.') }
      throw new PieceworkError('PW_OPTION_INVALID', 'What is buried has no delayMs.', { field: 'delayMs' })
  }
}

function textOf(error: string | { code?: string | undefined; text: string }): ErrorText {
  if (typeof error === 'string') return errorText(error)
  return { code: error.code ?? null, text: errorText(error.text).text }
}

const rawField = (text: string | undefined, field: string) =>
  checkPayloadBounds(rawMembers(text ?? '{}').get(field) ?? 'null')

async function extend({ broker, body, text }: Call): Promise<Reply> {
  const { extends: asked } = body as v.InferOutput<typeof extendBody>
  const raw = asked.some((one) => one.progress !== undefined)
    ? rawElements(rawMembers(text).get('extends') ?? '[]')
    : []
  const asks = asked.map(({ receipt, leaseMs, progress }, at) => ({
    receipt,
    leaseMs,
    progress: progress === undefined ? undefined : rawField(raw[at], 'progress'),
  }))
  const held = await broker.engine.extend('http', asks)
  return { body: { results: asks.map(({ receipt }, at) => ({ receipt, outcome: held[at] })) } }
}

export const claimRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: '/v1/queues/{q}/claims',
    scope: ['work'],
    summary: 'Claim tasks under a lease; waits up to waitMs when there are none',
    body: claimBody,
    answers: { 200: v.strictObject({ deliveries: v.array(delivery) }) },
    handle: claim,
  },
  {
    method: 'POST',
    path: '/v1/settle',
    scope: ['work'],
    summary: 'End deliveries: ack, retry, release or bury',
    body: settleBody,
    keyed: true,
    answers: { 200: results(['done', 'scheduled', 'ready', 'dead', 'cancelled', 'stale']) },
    handle: settle,
  },
  {
    method: 'POST',
    path: '/v1/extend',
    scope: ['work'],
    summary: 'Give deliveries a new lease from now, longer or shorter',
    body: extendBody,
    answers: { 200: results(['held', 'cancelled', 'stale']) },
    handle: extend,
  },
]
