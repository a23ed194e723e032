// The routes of operators: policies, pauses, purges and moves, dead letters, batches.
import { expect, it } from 'vitest'
import { type Room, refusal, room } from './ask.js'

async function buried(at: Room, ...payloads: unknown[]): Promise<string[]> {
  await at.post(
    '/v1/queues/q/tasks',
    payloads.map((payload) => ({ payload })),
  )
  const { deliveries } = (await at.post('/v1/queues/q/claims', { worker: 'w', max: 100 })).json
  const settles = deliveries.map(({ receipt, payload }: { receipt: string; payload: unknown }) => ({
    receipt,
    outcome: 'bury',
    error: `cannot do ${JSON.stringify(payload)}`,
  }))
  await at.post('/v1/settle', { settles })
  return deliveries.map(({ id }: { id: string }) => id)
}

it('lists queues by name with their figures, a page at a time', async () => {
  const { post, get } = await room()
  for (const queue of ['b', 'a', 'c']) await post(`/v1/queues/${queue}/tasks`, { payload: 1 })
  await post('/v1/queues/a/pause')
  const first = (await get('/v1/queues?limit=2')).json
  expect(first).toMatchObject({
    items: [
      { queue: 'a', paused: true, ready: 1, drained: false },
      { queue: 'b', paused: false },
    ],
    next: 'b',
  })
  expect((await get('/v1/queues?limit=2&cursor=b')).json).toMatchObject({ items: [{ queue: 'c' }], next: null })
})

it('sets limits that queues share, shows what is under them, and refuses to remove one in use', async () => {
  const { ask, get, post } = await room()
  const put = (body: unknown) => ask('PUT', '/v1/limits/a%2Fb', { body })
  expect((await put({ concurrencyMax: 1 })).json).toMatchObject({ limit: 'a/b', concurrencyMax: 1, queues: [] })
  await ask('PATCH', '/v1/queues/q', { body: { uses: ['a/b'] } })
  await post('/v1/queues/q/tasks', [{ payload: 1 }, { payload: 2 }])
  const { deliveries } = (await post('/v1/queues/q/claims', { worker: 'w', max: 2 })).json
  expect(deliveries).toHaveLength(1)
  expect((await get('/v1/limits/a%2Fb')).json).toMatchObject({ leased: 1, queues: ['q'], concurrencyNow: 1 })
  expect((await get('/v1/limits')).json.items).toHaveLength(1)
  expect(refusal(await ask('DELETE', '/v1/limits/a%2Fb'))).toEqual([409, 'PW_LIMIT_IN_USE'])
  expect(refusal(await get('/v1/limits/nowhere'))).toEqual([404, 'PW_LIMIT_UNKNOWN'])
  expect(refusal(await put({ concurrencyMax: 0 }))).toEqual([400, 'PW_OPTION_INVALID'])
  await ask('PATCH', '/v1/queues/q', { body: { uses: [] } })
  expect((await ask('DELETE', '/v1/limits/a%2Fb')).json).toEqual({ limit: 'a/b', removed: true })
})

it("lays fields over the operator's policy, takes some away, or all of it", async () => {
  const { ask, get } = await room()
  const patch = (body: unknown) => ask('PATCH', '/v1/queues/q', { body })
  const set = (await patch({ leaseMs: 5000, timeoutMs: null, backoff: { baseMs: 10 } })).json
  expect(set).toMatchObject({ queue: 'q', paused: false, policy: { leaseMs: 5000, timeoutMs: null }, code: null })
  expect(set.operator).toEqual({ leaseMs: 5000, timeoutMs: null, backoff: { baseMs: 10 } })
  expect((await patch({ unset: ['leaseMs'], deliveriesMax: 2 })).json.operator).toEqual({
    timeoutMs: null,
    backoff: { baseMs: 10 },
    deliveriesMax: 2,
  })
  expect((await patch(null)).json.operator).toBeNull()
  expect(refusal(await patch({ laeseMs: 1 }))).toEqual([400, 'PW_OPTION_UNKNOWN'])
  expect(refusal(await patch({ leaseMs: 1 }))).toEqual([400, 'PW_OPTION_INVALID'])
  expect(refusal(await get('/v1/queues/nowhere'))).toEqual([404, 'PW_QUEUE_UNKNOWN'])
})

it('stops and lets go claims', async () => {
  const { post } = await room()
  await post('/v1/queues/q/tasks', { payload: 1 })
  expect((await post('/v1/queues/q/pause')).json).toEqual({ queue: 'q', paused: true })
  const claim = async () => (await post('/v1/queues/q/claims', { worker: 'w' })).json.deliveries.length
  expect(await claim()).toBe(0)
  expect((await post('/v1/queues/q/resume')).json).toEqual({ queue: 'q', paused: false })
  expect(await claim()).toBe(1)
  expect(refusal(await post('/v1/queues/nowhere/pause'))).toEqual([404, 'PW_QUEUE_UNKNOWN'])
})

it('purges and moves what a filter picks, and nothing when nobody said what', async () => {
  const { post, get } = await room()
  await post(
    '/v1/queues/q/tasks',
    ['a', 'a', 'b', 'c'].map((type) => ({ payload: 1, type })),
  )
  expect(refusal(await post('/v1/queues/q/purge', {}))).toEqual([400, 'PW_FILTER_MISSING'])
  expect((await post('/v1/queues/q/purge', { type: 'a' })).json).toEqual({ purged: 2 })
  expect((await post('/v1/queues/q/move', { to: 'other', type: 'b' })).json).toEqual({
    moved: 1,
    asked: 0,
    routed: true,
  })
  expect((await get('/v1/queues/other/tasks')).json.items).toMatchObject([{ type: 'b' }])
  await post('/v1/queues/q/tasks', { payload: 2, type: 'b' })
  expect(refusal(await post('/v1/queues/q/move', { back: true }))).toEqual([404, 'PW_MOVE_UNKNOWN'])
  expect((await post('/v1/queues/q/move', { back: true, type: 'b' })).json).toMatchObject({ moved: 2, routed: false })
  expect((await post('/v1/queues/q/purge', { all: true })).json).toEqual({ purged: 3 })
  expect(refusal(await post('/v1/queues/q/move', { to: 'q' }))).toEqual([400, 'PW_OPTION_INVALID'])
})

it('shows dead letters, edits one, redrives and discards what a filter picks, with who did it', async () => {
  const at = await room()
  const { ask, post, get, engine } = at
  const [one, two, three] = await buried(at, 1, 'two', { three: 3 })
  const { items } = (await get('/v1/queues/q/dead')).json
  expect(items).toMatchObject([{ id: one }, { id: two }, { id: three, payload: { three: 3 }, reason: 'buried' }])
  expect((await get('/v1/queues/q/dead?text=two')).json.items).toMatchObject([{ id: two, error: 'cannot do "two"' }])
  const raw = '{"payload": 12345678901234567890 }'
  expect((await ask('PATCH', `/v1/queues/q/dead/${one}`, { raw })).text).toContain('"payload":12345678901234567890}')
  const redrive = (body: object) => post('/v1/queues/q/dead/redrive', body)
  expect(refusal(await redrive({}))).toEqual([400, 'PW_FILTER_MISSING'])
  expect((await redrive({ all: true, dryRun: true })).json).toEqual({ redriven: 3 })
  expect((await redrive({ ids: [one] })).json).toEqual({ redriven: 1 })
  expect((await post('/v1/queues/q/dead/discard', { text: 'two' })).json).toEqual({ discarded: 1 })
  expect(refusal(await get(`/v1/queues/q/dead/${two}`))).toEqual([404, 'PW_TASK_GONE'])
  expect(refusal(await get(`/v1/queues/other/dead/${three}`))).toEqual([404, 'PW_TASK_GONE'])
  const audits = (await engine.select('audit', {}, null)).items
  expect(audits.map(({ action, actor }) => [action, actor])).toEqual(
    ['edit', 'redrive', 'discard'].map((action) => [action, 'somebody at 127.0.0.1']),
  )
})

it('makes, counts, seals and forgets batches', async () => {
  const { ask, post, get } = await room()
  expect(refusal(await get('/v1/batches/b'))).toEqual([404, 'PW_BATCH_UNKNOWN'])
  expect((await ask('PUT', '/v1/batches/b', { body: {} })).json).toMatchObject({ batch: 'b', total: 0, sealed: false })
  await post('/v1/queues/q/tasks', { payload: 1, batch: 'b' })
  expect((await post('/v1/batches/b/seal')).json).toMatchObject({ total: 1, sealed: true, finishedAt: null })
  expect((await get('/v1/batches')).json.items).toMatchObject([{ batch: 'b', createdAt: '2033-05-18T03:33:20.000Z' }])
  expect(refusal(await post('/v1/batches/b/seal'))).toEqual([409, 'PW_BATCH_SEALED'])
  expect((await post('/v1/batches/b/cancel')).json).toEqual({ cancelled: 1, asked: 0 })
  expect((await get('/v1/batches/b')).json).toMatchObject({ cancelled: 1, finishedAt: expect.any(String) })
  expect((await ask('DELETE', '/v1/batches/b')).json).toEqual({ batch: 'b', forgotten: true })
  expect(refusal(await ask('DELETE', '/v1/batches/b'))).toEqual([404, 'PW_BATCH_UNKNOWN'])
})

it('enqueues what follows a batch, with the number that was sent', async () => {
  const { ask, post, get } = await room()
  const raw = '{ "onDone": { "queue": "after", "payload": 1.50, "type": "sum", "delayMs": 0 } }'
  const put = await ask('PUT', '/v1/batches/b', { raw, headers: { 'content-type': 'application/json' } })
  expect(put.json).toMatchObject({ total: 0, followUp: { queue: 'after', type: 'sum', id: null } })
  await post('/v1/batches/b/seal')
  const { items } = (await get('/v1/queues/after/tasks')).json
  expect(items).toMatchObject([{ type: 'sum', batch: null }])
  expect((await get(`/v1/queues/after/tasks/${items[0].id}`)).text).toContain('"payload":1.50')
  const keyed = await ask('PUT', '/v1/batches/c', { body: { onDone: { queue: 'after', payload: 1, dedupKey: 'd' } } })
  expect(refusal(keyed)).toEqual([400, 'PW_OPTION_UNKNOWN'])
})
