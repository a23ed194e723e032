// The routes that tell how things stand, and the API's description of itself.
import { request } from 'node:http'
import { Validator } from '@seriousme/openapi-schema-validator'
import { expect, it } from 'vitest'
import { routes } from '../../dist/server/routes.js'
import { type Room, reached, refusal, room } from './ask.js'

it('answers the figures of all queues or one', async () => {
  const { post, get } = await room()
  await post('/v1/queues/a/tasks', [{ payload: 1 }, { payload: 2, delayMs: 1000 }])
  await post('/v1/queues/b/tasks', { payload: 1 })
  const all = (await get('/v1/stats')).json
  expect(all).toMatchObject({ at: '2033-05-18T03:33:20.000Z', queues: [{ queue: 'a' }, { queue: 'b' }] })
  const { queues } = (await get('/v1/stats?queue=a')).json
  expect(queues).toMatchObject([{ queue: 'a', ready: 1, scheduled: 1, backlogAgeMs: 0, etaMs: null }])
})

interface Stream {
  text: string
  end(): void
}

async function listen({ url }: Room, path: string): Promise<Stream> {
  const stream: Stream = { text: '', end: () => {} }
  await new Promise<void>((resolve, reject) => {
    const sent = request(new URL(path, url), (response) => {
      expect(response.headers['content-type']).toBe('text/event-stream')
      response.on('data', (chunk) => {
        stream.text += chunk
      })
      stream.end = () => response.destroy()
      resolve()
    })
    sent.once('error', reject)
    sent.end()
  })
  return stream
}

it('tells the figures as events: at once, and when they have changed', async () => {
  const at = await room()
  await at.post('/v1/queues/a/tasks', { payload: 1 })
  const one = await listen(at, '/v1/events?queue=a')
  const all = await listen(at, '/v1/events')
  const events = ({ text }: Stream) => text.split('\n\n').filter((event) => event.startsWith('event: status\ndata: '))
  await reached('the first events', () => events(one).length === 1 && events(all).length === 1)
  await at.post('/v1/queues/b/tasks', { payload: 1 })
  await at.clock.advance(1000)
  await reached('the second of all', () => events(all).length === 2)
  expect(events(one)).toHaveLength(2)
  const data = JSON.parse(events(all)[1]?.split('data: ')[1] ?? '')
  expect(data.queues).toMatchObject([
    { queue: 'a', ready: 1 },
    { queue: 'b', ready: 1, enqueuedPerSecond: null },
  ])
  expect(at.broker.meter.waiting).toBe(2)
  one.end()
  await reached('the end of one', () => at.broker.meter.waiting === 1)
  const stopping = at.stop()
  await reached('the end of all', () => at.broker.meter.waiting === 0)
  await stopping
})

it('speaks to Prometheus: states, totals, ages where they are known, requests by route', async () => {
  const at = await room()
  await at.post('/v1/queues/a%22%5Cb/tasks', { payload: 1 })
  await at.post('/v1/queues/a%0Ab/tasks', { payload: 1 })
  await at.post('/v1/queues/q/tasks', { payload: 1 })
  await at.post('/v1/queues/q/tasks', { payload: 1, priority: 'x' })
  await at.clock.advance(1500)
  const { text, headers } = await at.get('/metrics')
  expect(headers['content-type']).toMatch(/^text\/plain/)
  const line = (start: string) => text.split('\n').filter((one) => one.startsWith(start))
  expect(line('piecework_tasks{queue="q",type="q",state="ready"}')).toEqual([
    'piecework_tasks{queue="q",type="q",state="ready"} 1',
  ])
  expect(line('piecework_enqueued_total{queue="q"')).toEqual(['piecework_enqueued_total{queue="q",type="q"} 1'])
  expect(line('piecework_backlog_age_seconds{')).toEqual([
    'piecework_backlog_age_seconds{queue="a\\"\\\\b",type="a\\"\\\\b"} 1.5',
    'piecework_backlog_age_seconds{queue="q",type="q"} 1.5',
  ])
  const counted = line('piecework_http_requests_total{route="POST /v1/queues/{q}/tasks"')
  expect(counted.sort()).toEqual([
    'piecework_http_requests_total{route="POST /v1/queues/{q}/tasks",status="201"} 2',
    'piecework_http_requests_total{route="POST /v1/queues/{q}/tasks",status="400"} 2',
  ])
})

it('answers probes: alive as long as the process is, ready as long as the engine answers', async () => {
  const at = await room()
  expect((await at.get('/healthz')).json).toEqual({ live: true })
  expect((await at.get('/readyz')).json).toEqual({ live: true, ready: true })
  at.engine.measure = () => Promise.reject(new Error('the disk is away'))
  expect([(await at.get('/readyz')).status, (await at.get('/healthz')).status]).toEqual([503, 200])
})

it('plans, both ways', async () => {
  const { get } = await room()
  const query = '/v1/plan?items=1000&eachMs=1000&failureRate=0.1'
  expect((await get(`${query}&deadlineMs=100000`)).json).toMatchObject({ workers: 12, meetsDeadline: true })
  expect((await get(`${query}&workers=10`)).json).toMatchObject({ workers: 10, binds: 'workers' })
  expect(refusal(await get(query))).toEqual([400, 'PW_OPTION_INVALID'])
})

const later: [string, string][] = [
  ['GET', '/v1/doctor'],
  ['GET', '/v1/explain/1'],
  ['GET', '/v1/autoscale/q'],
]

it.each(later)('says of %s %s that it is not there yet', async (method, path) => {
  const { ask } = await room()
  expect(refusal(await ask(method, path))).toEqual([501, 'PW_NOT_SUPPORTED'])
})

it('describes itself in valid OpenAPI 3.1, with every route of the table', async () => {
  const { get } = await room()
  const document = (await get('/v1/openapi.json')).json
  expect(await new Validator().validate(structuredClone(document))).toEqual({ valid: true })
  expect(document.openapi).toBe('3.1.0')
  const described = Object.entries(document.paths as Record<string, object>).flatMap(([path, item]) =>
    Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
  )
  expect(described.sort()).toEqual(routes.map(({ method, path }) => `${method} ${path}`).sort())
  const ids = Object.values(document.paths as Record<string, Record<string, { operationId: string }>>).flatMap((item) =>
    Object.values(item).map(({ operationId }) => operationId),
  )
  expect(new Set(ids).size).toBe(ids.length)
  const claim = document.paths['/v1/queues/{q}/claims'].post
  expect(claim.requestBody.content['application/json'].schema).toMatchObject({
    required: ['worker'],
    properties: { waitMs: { type: 'integer', minimum: 0, maximum: 20_000 }, types: { type: 'array', minItems: 1 } },
  })
})

it('knows no other paths and methods, and says which it knows', async () => {
  const { ask, get } = await room()
  for (const path of ['/', '/v1', '/v1/queues/', '/v1/queues/a/b/tasks', '/v1//queues', '/V1/queues', '/v1/queues/%']) {
    expect((await get(path)).status, path).toBe(path.endsWith('%') ? 400 : 404)
  }
  const wrong = await ask('DELETE', '/v1/queues')
  expect([refusal(wrong), wrong.headers.allow]).toEqual([[405, 'PW_METHOD_UNKNOWN'], 'GET'])
  const head = await ask('HEAD', '/healthz')
  expect([head.status, head.text]).toEqual([200, ''])
  expect(refusal(await get('/v1/stats?queu=a'))).toEqual([400, 'PW_OPTION_UNKNOWN'])
  expect(refusal(await get('/v1/stats?queue=a&queue=b'))).toEqual([400, 'PW_OPTION_INVALID'])
})
