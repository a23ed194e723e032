// Routes that tell how the store and the broker stand: figures, events, probes, the plan, and the API about itself.
import type { ServerResponse } from 'node:http'
import * as v from 'valibot'
import { PieceworkError } from '../../ground/errors.js'
import { type PlanAsk, plan } from '../../insight/planner.js'
import { type Status, statusOf } from '../../insight/status.js'
import { s } from '../check.js'
import { feedEveryMs } from '../feed.js'
import { openApi } from '../openapi.js'
import type { Call, Reply, Route } from '../route.js'

/** A comment so often keeps proxies from closing a stream that is quiet. */
const quietMs = 15_000

const statusShape = v.strictObject({
  at: s.text,
  queues: v.array(v.record(s.text, v.unknown())),
  workers: v.array(v.record(s.text, v.unknown())),
  utilisationSpread: v.nullable(v.number()),
})

function visible(status: Status, { query, who }: Call): Status {
  const covers = (queue: string) => who.covers(queue) && (query.queue === undefined || query.queue === queue)
  const queues = status.queues.filter(({ queue }) => covers(queue))
  const workers = status.workers.filter((worker) => (worker.queues as string[]).some(covers))
  return { ...status, queues, workers }
}

async function stats(call: Call): Promise<Reply> {
  const { engine, clock } = call.broker
  const queue = (call.query.queue as string | undefined) ?? null
  return { body: visible((await statusOf({ engine, clock }, queue, null)).status, call) }
}

/** Server-sent events: `status` at once and whenever it changed, at most once a second. */
async function events(call: Call): Promise<Reply> {
  const { broker, ending } = call
  if (!broker.roomToWait) throw new PieceworkError('PW_SERVER_BUSY', 'Too many clients listen already.')
  return { stream: (response) => told(call, response, ending) }
}

function told(call: Call, response: ServerResponse, ending: AbortSignal): Promise<void> {
  const { broker } = call
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store', connection: 'close' })
  response.flushHeaders()
  let before = ''
  let quiet = 0
  const deaf = broker.feed.listen((status) => {
    // Who reads too slowly misses the figures of a second, never gets them late.
    if (response.writableNeedDrain) return
    const shown = visible(status, call)
    const text = JSON.stringify({ ...shown, at: undefined })
    quiet = text === before ? quiet + feedEveryMs : 0
    if (text === before && quiet < quietMs) return
    response.write(text === before ? ': still here\n\n' : `event: status\ndata: ${JSON.stringify(shown)}\n\n`)
    before = text
    if (quiet >= quietMs) quiet = 0
  })
  broker.meter.waiting++
  return new Promise((resolve) => {
    const end = () => {
      deaf()
      broker.meter.waiting--
      response.end()
      resolve()
    }
    if (ending.aborted) end()
    else ending.addEventListener('abort', end, { once: true })
  })
}

async function metrics({ broker, who }: Call): Promise<Reply> {
  const figures = await broker.engine.measure(null, false)
  return { text: broker.meter.text(figures, (queue) => who.covers(queue)), type: 'text/plain; version=0.0.4' }
}

async function ready({ broker }: Call): Promise<Reply> {
  const stopping = broker.stopping.aborted
  const well =
    !stopping &&
    (await broker.engine.measure([], false).then(
      () => true,
      () => false,
    ))
  return { status: well ? 200 : 503, body: { live: true, ready: well } }
}

const planQuery = v.strictObject({
  items: s.queryWhole(1, Number.MAX_SAFE_INTEGER),
  eachMs: s.queryWhole(1, Number.MAX_SAFE_INTEGER),
  eachP99Ms: v.optional(s.queryWhole(1, Number.MAX_SAFE_INTEGER)),
  deadlineMs: v.optional(s.queryWhole(1, Number.MAX_SAFE_INTEGER)),
  workers: v.optional(s.queryWhole(1, Number.MAX_SAFE_INTEGER)),
  failureRate: v.optional(s.queryNumber),
  enqueuePerSecond: v.optional(s.queryNumber),
  dispatchPerSecond: v.optional(s.queryNumber),
  downstreamPerSecond: v.optional(s.queryNumber),
})

function planned({ query }: Call): Promise<Reply> {
  if ((query.deadlineMs === undefined) === (query.workers === undefined)) {
    throw new PieceworkError('PW_OPTION_INVALID', 'plan needs deadlineMs or workers, and not both.')
  }
  return Promise.resolve({ body: plan(query as unknown as PlanAsk) })
}

const notYet = () => Promise.reject(new PieceworkError('PW_NOT_SUPPORTED', 'This part of the API is not built yet.'))
const later = (method: Route['method'], path: string, summary: string): Route => ({
  ...{ method, path, summary, scope: ['operate'], answers: {}, handle: notYet },
})
const probe = { 200: v.strictObject({ live: v.boolean(), ready: v.optional(v.boolean()) }) }
const operate = { method: 'GET', scope: ['operate'] } as const
const open = { method: 'GET', scope: null } as const
const queueQuery = v.strictObject({ queue: v.optional(s.name) })

const figureRoutes: readonly Route[] = [
  {
    ...operate,
    path: '/v1/stats',
    summary: 'How queues and workers stand',
    query: queueQuery,
    answers: { 200: statusShape },
    handle: stats,
  },
  {
    ...operate,
    path: '/v1/events',
    summary: 'The same as server-sent events, whenever it changed',
    query: queueQuery,
    answers: { 200: 'text/event-stream' },
    handle: events,
  },
  {
    ...operate,
    path: '/v1/plan',
    summary: 'How many workers a pile of work needs, or how long so many take',
    query: planQuery,
    answers: { 200: v.record(s.text, v.unknown()) },
    handle: planned,
  },
  later('GET', '/v1/doctor', 'What is wrong and what to do'),
  later('GET', '/v1/explain/{id}', 'Why a task waits'),
  later('GET', '/v1/autoscale/{q}', 'How many workers a queue wants'),
  { ...operate, path: '/metrics', summary: 'Figures for Prometheus', answers: { 200: 'text/plain' }, handle: metrics },
  {
    ...open,
    path: '/healthz',
    summary: 'The process lives',
    answers: probe,
    handle: () => Promise.resolve({ body: { live: true } }),
  },
  {
    ...open,
    path: '/readyz',
    summary: 'The engine answers',
    answers: { ...probe, 503: probe[200] },
    handle: ready,
  },
]

/** These, and the route that describes all of them. */
export function withFigures(others: readonly Route[]): readonly Route[] {
  const about: Route = {
    ...open,
    path: '/v1/openapi.json',
    summary: 'This API as OpenAPI 3.1',
    answers: { 200: v.record(s.text, v.unknown()) },
    handle: ({ broker }) => Promise.resolve({ body: openApi(all, broker.version) }),
  }
  const all = [...others, ...figureRoutes, about]
  return all
}
