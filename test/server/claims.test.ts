// The routes of workers: claims and long polls, what comes back when nobody got it, settles and extensions.
import { connect } from 'node:net'
import { expect, it } from 'vitest'
import { type Room, reached, refusal, room } from './ask.js'

const claims = '/v1/queues/q/claims'

async function take({ post }: Room, body: object = {}) {
  return (await post(claims, { worker: 'w', max: 100, ...body })).json.deliveries
}

it('hands out what a worker must know, and an empty list when there is nothing', async () => {
  const at = await room()
  expect((await at.post(claims, { worker: 'w' })).json).toEqual({ deliveries: [] })
  await at.post('/v1/queues/q/tasks', { payload: { a: 1 }, type: 't', key: 'k', headers: { h: 'x' } })
  const [delivery] = await take(at, { leaseMs: 5000 })
  expect(delivery).toEqual({
    id: expect.any(String),
    receipt: expect.any(String),
    number: 1,
    fence: expect.any(Number),
    type: 't',
    key: 'k',
    payload: { a: 1 },
    headers: { h: 'x' },
    enqueuedAt: '2033-05-18T03:33:20.000Z',
    leaseMs: 5000,
  })
})

it('claims one by default, at most max, and only the types asked for', async () => {
  const at = await room()
  const tasks = ['a', 'a', 'b', 'c'].map((type) => ({ payload: type, type }))
  await at.post('/v1/queues/q/tasks', tasks)
  expect((await at.post(claims, { worker: 'w' })).json.deliveries).toHaveLength(1)
  expect((await take(at, { types: ['b', 'none'] })).map(({ payload }: { payload: string }) => payload)).toEqual(['b'])
  expect(await take(at, { max: 1 })).toHaveLength(1)
})

it.each([{}, { worker: '' }, { worker: 'w', max: 0 }, { worker: 'w', waitMs: 20_001 }, { worker: 'w', leaseMs: 99 }])(
  'refuses a claim such as %j',
  async (body) => {
    const { post } = await room()
    expect(refusal(await post(claims, body))).toEqual([400, 'PW_OPTION_INVALID'])
  },
)

it('waits for work, takes it when it comes, and ends empty when none came', async () => {
  const at = await room()
  const waiting = at.post(claims, { worker: 'w', waitMs: 20_000 })
  await reached('a long poll', () => at.broker.meter.waiting === 1)
  await at.post('/v1/queues/other/tasks', { payload: 0 })
  await at.post('/v1/queues/q/tasks', { payload: 1 })
  expect((await waiting).json.deliveries).toHaveLength(1)
  const idle = at.post(claims, { worker: 'w', waitMs: 20_000 })
  await reached('a long poll', () => at.broker.meter.waiting === 1)
  await at.clock.advance(19_999)
  expect(at.broker.meter.waiting).toBe(1)
  await at.clock.advance(1)
  expect((await idle).json).toEqual({ deliveries: [] })
})

it('takes what falls due while it waits', async () => {
  const at = await room()
  await at.post('/v1/queues/q/tasks', { payload: 1, delayMs: 5000 })
  const waiting = at.post(claims, { worker: 'w', waitMs: 20_000 })
  await reached('a long poll', () => at.broker.meter.waiting === 1)
  await at.clock.advance(5000)
  expect((await waiting).json.deliveries).toHaveLength(1)
})

it('gives a claimId the same deliveries while they are leased, and what there is after that', async () => {
  const at = await room()
  await at.post('/v1/queues/q/tasks', [{ payload: 1 }, { payload: 2 }, { payload: 3 }])
  const first = await take(at, { max: 2, claimId: 'c' })
  expect(await take(at, { max: 2, claimId: 'c' })).toEqual(first)
  await at.post('/v1/settle', { settles: [{ receipt: first[0].receipt, outcome: 'ack' }] })
  expect(await take(at, { max: 2, claimId: 'c' })).toEqual(first.slice(1))
  await at.post('/v1/settle', { settles: [{ receipt: first[1].receipt, outcome: 'ack' }] })
  expect((await take(at, { max: 2, claimId: 'c' }))[0].payload).toBe(3)
})

it('claims nothing for a client that has gone while it waited', async () => {
  const at = await room()
  const leaving = new AbortController()
  const asked = at.ask('POST', claims, { body: { worker: 'w', waitMs: 20_000 }, signal: leaving.signal })
  asked.catch(() => {})
  await reached('a long poll', () => at.broker.meter.waiting === 1)
  leaving.abort()
  await reached('its end', () => at.broker.meter.waiting === 0)
  await at.post('/v1/queues/q/tasks', { payload: 1 })
  expect((await take(at))[0].number).toBe(1)
})

/** Claims over a bare socket that reads nothing, and hangs up once the store has answered. */
async function hangUp(at: Room, body: object): Promise<void> {
  const { engine, url } = at
  const claim = engine.claim.bind(engine)
  const text = JSON.stringify(body)
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  socket.once('error', () => {})
  let claimed = () => {}
  const done = new Promise<void>((resolve) => {
    claimed = resolve
  })
  engine.claim = async (ask) => {
    const answer = await claim(ask)
    engine.claim = claim
    socket.pause()
    const gone = new Promise<void>((resolve) => socket.once('close', () => resolve()))
    socket.resetAndDestroy()
    await gone
    claimed()
    return answer
  }
  const head = `POST ${claims} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n`
  socket.write(`${head}content-length: ${text.length}\r\n\r\n${text}`)
  await done
}

it('gives back at once, uncounted, what a client never got', async () => {
  const at = await room()
  const large = 'x'.repeat(500_000)
  await at.post('/v1/queues/q/tasks', [{ payload: large }, { payload: large }, { payload: large }])
  await hangUp(at, { worker: 'w', max: 3 })
  await reached('the tasks back', () => at.broker.meter.givenBack === 3)
  const again = await take(at)
  expect(again.map(({ number }: { number: number }) => number)).toEqual([2, 2, 2])
  const { json } = await at.get(`/v1/queues/q/tasks/${again[0].id}`)
  expect(json).toMatchObject({ spent: 1, releases: 0 })
})

it('leaves them with the newer answer when the same claimId was asked again meanwhile', async () => {
  const at = await room()
  await at.post('/v1/queues/q/tasks', { payload: 'x'.repeat(500_000) })
  const { engine } = at
  const claim = engine.claim.bind(engine)
  let second: Promise<unknown> = Promise.resolve()
  const body = { worker: 'w', claimId: 'c' }
  const hung = hangUp(at, body)
  const inner = engine.claim
  engine.claim = async (ask) => {
    const answer = await inner(ask)
    engine.claim = claim
    second = at.post(claims, body)
    await second
    return answer
  }
  await hung
  await second
  await reached('the first answer lost', () => at.broker.meter.waiting === 0)
  const [held] = ((await second) as { json: { deliveries: { receipt: string }[] } }).json.deliveries
  const settled = await at.post('/v1/settle', { settles: [{ receipt: held?.receipt, outcome: 'ack' }] })
  expect(settled.json.results[0].outcome).toBe('done')
  expect(at.broker.meter.givenBack).toBe(0)
})

it('settles in every way, each receipt with its outcome', async () => {
  const at = await room()
  await at.post(
    '/v1/queues/q/tasks',
    ['ack', 'retry', 'release', 'bury', 'late'].map((payload) => ({ payload })),
  )
  const [ack, retry, release, bury, late] = await take(at)
  const { json } = await at.post('/v1/settle', {
    settles: [
      { receipt: ack.receipt, outcome: 'ack', result: { big: 1 } },
      { receipt: retry.receipt, outcome: 'retry', delayMs: 1000, error: 'it failed' },
      { receipt: release.receipt, outcome: 'release' },
      { receipt: bury.receipt, outcome: 'bury', error: { code: 'E_BAD', text: 'bad data' } },
      { receipt: late.receipt, outcome: 'release', delayMs: 5000 },
      { receipt: 'none', outcome: 'ack' },
    ],
  })
  const outcomes = json.results.map(({ outcome }: { outcome: string }) => outcome)
  expect(outcomes).toEqual(['done', 'scheduled', 'ready', 'dead', 'scheduled', 'stale'])
  expect(json.results[0].receipt).toBe(ack.receipt)
  const dead = (await at.get(`/v1/queues/q/dead/${bury.id}`)).json
  expect(dead).toMatchObject({ reason: 'buried', code: 'E_BAD', error: 'bad data', deliveries: 1 })
  expect(dead.history[0]).toMatchObject({ outcome: 'bury', worker: 'w' })
})

it('answers a settle again under its Idempotency-Key as the first time, never stale for its own success', async () => {
  const at = await room()
  await at.post('/v1/queues/q/tasks', [{ payload: 1 }, { payload: 2 }])
  const [one, two] = await take(at)
  const settle = (receipt: string) =>
    at.post('/v1/settle', { settles: [{ receipt, outcome: 'ack' }] }, { 'idempotency-key': 'k' })
  const first = await settle(one.receipt)
  expect(first.json.results[0].outcome).toBe('done')
  expect((await settle(one.receipt)).text).toBe(first.text)
  expect(refusal(await settle(two.receipt))).toEqual([409, 'PW_REQUEST_CHANGED'])
})

it('extends and shortens leases, keeps progress as it was written, and tells what was cancelled', async () => {
  const at = await room()
  await at.post('/v1/queues/q/tasks', [{ payload: 1 }, { payload: 2 }])
  const [one, two] = await take(at, { leaseMs: 1000 })
  await at.ask('DELETE', `/v1/queues/q/tasks/${two.id}`)
  const extend = (receipt: string, leaseMs: number) => `{"receipt":"${receipt}","leaseMs":${leaseMs}`
  const raw = `{"extends":[${extend(one.receipt, 60_000)},"progress":{"at": 1e400}},${extend(two.receipt, 500)}}]}`
  const { json } = await at.ask('POST', '/v1/extend', { raw })
  expect(json.results.map(({ outcome }: { outcome: string }) => outcome)).toEqual(['held', 'cancelled'])
  const [row] = (await at.engine.select('task', { ids: [one.id] }, null)).items
  expect(row?.progress).toBe('{"at": 1e400}')
  await at.clock.advance(1000)
  const [later] = (await at.post('/v1/settle', { settles: [{ receipt: one.receipt, outcome: 'ack' }] })).json.results
  expect(later.outcome).toBe('done')
})

it('buries a stored payload that is no JSON instead of spoiling the answer of the others', async () => {
  const at = await room()
  await at.engine.enqueue(null, [
    { queue: 'q', payload: '{"a":' },
    { queue: 'q', payload: '"good"' },
  ])
  expect((await take(at)).map(({ payload }: { payload: string }) => payload)).toEqual(['good'])
  const { items } = (await at.get('/v1/queues/q/dead')).json
  expect(items).toMatchObject([{ code: 'PW_PAYLOAD_CORRUPT', payload: '{"a":' }])
})
