// The routes of tasks: what goes in comes out as it was, one, many or as a stream, and again under the same key.
import { request } from 'node:http'
import { expect, it } from 'vitest'
import { reached, refusal, room } from './ask.js'

const claimAll = { worker: 'w', max: 100 }

it('enqueues one: 201, and 200 for the duplicate of a task that is there', async () => {
  const { post } = await room()
  const first = await post('/v1/queues/mail/tasks', { payload: { to: 'ada' }, dedupKey: 'd' })
  expect([first.status, first.json]).toEqual([201, { id: expect.stringMatching(/^\d+$/), duplicate: false }])
  const second = await post('/v1/queues/mail/tasks', { payload: { to: 'ada' }, dedupKey: 'd' })
  expect([second.status, second.json]).toEqual([200, { id: first.json.id, duplicate: true }])
})

it('hands a payload on as it was written: big numbers, keys twice, spaces, escapes', async () => {
  const { ask, post, get } = await room()
  const payloads = [
    '12345678901234567890.5e-400',
    '{"a":1, "a" : 2}',
    '[ 1 ,2 ]',
    '"\\u0000\\ud800 日本"',
    'null',
    '{"payload":{"payload":[]}}',
    '"}],\\"\\\\"',
  ]
  for (const payload of payloads) {
    const raw = ` { "type" : "t" , "payload" : ${payload} , "headers" : { "payload" : "x" } } `
    expect((await ask('POST', '/v1/queues/q/tasks', { raw })).status).toBe(201)
  }
  const many = `[${payloads.map((payload) => `{"\\u0070ayload":${payload}}`).join(' , ')}]`
  expect((await ask('POST', '/v1/queues/q/tasks', { raw: many })).status).toBe(200)
  const { text, json } = await post('/v1/queues/q/claims', claimAll)
  expect(json.deliveries).toHaveLength(payloads.length * 2)
  for (const payload of payloads) expect(text.split(`"payload":${payload}}`)).toHaveLength(3)
  const { id } = json.deliveries[0]
  expect((await get(`/v1/queues/q/tasks/${id}`)).text).toContain(`"payload":${payloads[0]}}`)
})

it('takes every option of an enqueue, and shows the task with instants as text', async () => {
  const { post, get } = await room()
  const options = { type: 't', key: 'k', priority: 7, dedupKey: 'd', batch: 'b', headers: { a: 'b' } }
  const { json } = await post('/v1/queues/q/tasks', {
    payload: [1],
    ...options,
    dueAt: '2033-05-18T04:00:00.000Z',
    deadlineMs: 60_000,
  })
  const task = (await get(`/v1/queues/q/tasks/${json.id}`)).json
  expect(task).toMatchObject({ id: json.id, queue: 'q', state: 'scheduled', payload: [1], ...options })
  expect(task).toMatchObject({ dueAt: '2033-05-18T04:00:00.000Z', deadlineAt: '2033-05-18T03:34:20.000Z' })
  expect((await get('/v1/queues/q/tasks?state=scheduled&type=t')).json.items).toEqual([task])
  expect((await get('/v1/queues/q/tasks?state=ready')).json).toEqual({ items: [], next: null })
})

it('lists in pages', async () => {
  const { post, get } = await room()
  const { json } = await post(
    '/v1/queues/q/tasks',
    Array.from({ length: 5 }, (_, payload) => ({ payload })),
  )
  const ids = json.results.map(({ id }: { id: string }) => id)
  const first = (await get('/v1/queues/q/tasks?limit=3')).json
  const second = (await get(`/v1/queues/q/tasks?limit=3&cursor=${first.next}`)).json
  expect([...first.items, ...second.items].map(({ id }) => id)).toEqual(ids)
  expect(second.next).toBeNull()
})

it('finds nothing of a task that is gone or in another queue, and cancels what is there', async () => {
  const { ask, post, get } = await room()
  const { json } = await post('/v1/queues/a%2Fb/tasks', { payload: 1 })
  expect(refusal(await get(`/v1/queues/b/tasks/${json.id}`))).toEqual([404, 'PW_TASK_GONE'])
  expect(refusal(await get('/v1/queues/b/tasks/nothing'))).toEqual([404, 'PW_TASK_GONE'])
  const cancel = () => ask('DELETE', `/v1/queues/a%2Fb/tasks/${json.id}`)
  expect((await cancel()).json).toEqual({ cancelled: 1, asked: 0 })
  expect((await cancel()).json).toEqual({ cancelled: 0, asked: 0 })
  expect(refusal(await get(`/v1/queues/a%2Fb/tasks/${json.id}`))).toEqual([404, 'PW_TASK_GONE'])
})

const refusedBodies: [string, string | Buffer, number, string][] = [
  ['no JSON', '{"payload":', 400, 'PW_JSON_INVALID'],
  ['nothing', '', 400, 'PW_OPTION_INVALID'],
  ['no payload', '{"type":"t"}', 400, 'PW_OPTION_INVALID'],
  ['an option that is none', '{"payload":1,"prio":1}', 400, 'PW_OPTION_UNKNOWN'],
  ['a transaction', '{"payload":1,"tx":{}}', 400, 'PW_OPTION_UNKNOWN'],
  ['a value out of bounds', '{"payload":1,"priority":101}', 400, 'PW_OPTION_INVALID'],
  ['two instants', '{"payload":1,"delayMs":1,"dueAt":"2030-01-01T00:00:00Z"}', 400, 'PW_OPTION_INVALID'],
  ['an instant that is none', '{"payload":1,"dueAt":"tomorrow"}', 400, 'PW_OPTION_INVALID'],
  ['a name that cannot be', '{"payload":1,"key":"a\\u0000b"}', 400, 'PW_NAME_INVALID'],
  ['bytes that are no UTF-8', Buffer.from([0x22, 0xff, 0x22]), 400, 'PW_UTF8_INVALID'],
  ['a payload too deep', `{"payload":${'['.repeat(65)}${']'.repeat(65)}}`, 400, 'PW_PAYLOAD_TOO_DEEP'],
  ['a body far too deep', '['.repeat(100_000), 400, 'PW_PAYLOAD_TOO_DEEP'],
  ['a payload too large', `{"payload":"${'x'.repeat(1_048_576)}"}`, 413, 'PW_PAYLOAD_TOO_LARGE'],
  ['too many tasks', `[${'{"payload":1},'.repeat(1000)}{"payload":1}]`, 413, 'PW_BODY_TOO_LARGE'],
  ['one bad task among good ones', '[{"payload":1},{"payload":2,"delayMs":-1}]', 400, 'PW_OPTION_INVALID'],
]

it.each(refusedBodies)('refuses %s, and keeps nothing of it', async (_, raw, status, code) => {
  const { ask, get } = await room()
  const answer = await ask('POST', '/v1/queues/q/tasks', { raw })
  expect(refusal(answer)).toEqual([status, code])
  expect(answer.headers['content-type']).toBe('application/problem+json')
  expect((await get('/v1/queues/q/tasks')).json.items).toEqual([])
})

it('refuses a sealed batch with 409, and a body that says it is something else with 415', async () => {
  const { post } = await room()
  await post('/v1/batches/b/seal')
  expect(refusal(await post('/v1/queues/q/tasks', { payload: 1, batch: 'b' }))).toEqual([409, 'PW_BATCH_SEALED'])
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  expect(refusal(await post('/v1/queues/q/tasks', { payload: 1 }, form))).toEqual([415, 'PW_CONTENT_TYPE'])
})

it('answers one Idempotency-Key once: same status, same body, no second task; another body is 409', async () => {
  const { post, get, clock } = await room()
  const key = { 'idempotency-key': 'k 1' }
  const one = () => post('/v1/queues/q/tasks', { payload: 1 }, key)
  const first = await one()
  expect(first.status).toBe(201)
  const again = await Promise.all([one(), one(), one()])
  for (const { status, text } of again) expect([status, text]).toEqual([201, first.text])
  expect(refusal(await post('/v1/queues/q/tasks', { payload: 2 }, key))).toEqual([409, 'PW_REQUEST_CHANGED'])
  expect(refusal(await post('/v1/queues/p/tasks', { payload: 1 }, key))).toEqual([409, 'PW_REQUEST_CHANGED'])
  const list = { 'idempotency-key': 'list' }
  const many = () => post('/v1/queues/q/tasks', [{ payload: 1 }, { payload: 2 }], list)
  expect((await many()).text).toBe((await many()).text)
  expect((await get('/v1/queues/q/tasks')).json.items).toHaveLength(3)
  await clock.advance(601_000)
  expect((await one()).json.id).not.toBe(first.json.id)
})

it('keeps nothing under a key of a call that was refused', async () => {
  const { post } = await room()
  const key = { 'idempotency-key': 'k' }
  expect((await post('/v1/queues/q/tasks', { payload: 1, priority: 1000 }, key)).status).toBe(400)
  expect((await post('/v1/queues/q/tasks', { payload: 1 }, key)).status).toBe(201)
})

const lines = { 'content-type': 'application/x-ndjson' }

it('takes a stream of lines, and says which line was refused and what came in before it', async () => {
  const { ask, post } = await room()
  const stream = (raw: string) => ask('POST', '/v1/queues/q/tasks', { raw, headers: lines })
  expect((await stream('{"payload":1}\r\n\n {"payload":2,"dedupKey":"d"}\n{"payload":3,"dedupKey":"d"}')).json).toEqual(
    {
      enqueued: 2,
      duplicates: 1,
    },
  )
  const refused = await stream('{"payload":4}\n{"payload":5}\n{"payload"\n{"payload":6}\n')
  expect(refusal(refused)).toEqual([400, 'PW_JSON_INVALID'])
  expect(refused.json.details).toMatchObject({ index: 2, enqueued: 2, duplicates: 0 })
  const payloads = (await post('/v1/queues/q/claims', claimAll)).json.deliveries.map(
    (one: { payload: 1 }) => one.payload,
  )
  expect(payloads).toEqual([1, 2, 4, 5])
  const keyed = { ...lines, 'idempotency-key': 'k' }
  expect(refusal(await ask('POST', '/v1/queues/q/tasks', { raw: '{}', headers: keyed }))[0]).toBe(400)
})

it('does not read a stream faster than the store takes it', async () => {
  const { url, engine, broker } = await room()
  let open = () => {}
  const gate = new Promise<void>((resolve) => {
    open = resolve
  })
  const enqueue = engine.enqueue.bind(engine)
  let calls = 0
  engine.enqueue = async (...args) => {
    calls++
    await gate
    return enqueue(...args)
  }
  const line = Buffer.from(`{"payload":"${'x'.repeat(1000)}"}\n`.repeat(1000))
  const sent = request(new URL('/v1/queues/q/tasks', url), { method: 'POST', headers: lines })
  const answer = new Promise<string>((resolve, reject) => {
    sent.once('error', reject)
    sent.once('response', (response) => {
      let text = ''
      response.on('data', (chunk) => {
        text += chunk
      })
      response.once('end', () => resolve(text))
    })
  })
  // Far more than the socket buffers of both sides and the chunks under way can hold.
  const megabytes = 32
  let written = 0
  for (; written < megabytes; written++) if (!sent.write(line) && written > 24) break
  await reached('the first chunk at the store', () => calls === 1)
  await reached('a client that has to wait', () => sent.writableNeedDrain)
  const ahead = sent.writableLength
  for (let turn = 0; turn < 200; turn++) await new Promise<void>((resolve) => setImmediate(resolve))
  expect(sent.writableLength).toBe(ahead)
  expect([calls, broker.meter.buffered]).toEqual([1, 0])
  open()
  sent.end()
  expect(JSON.parse(await answer)).toEqual({ enqueued: (written + 1) * 1000, duplicates: 0 })
})
