// The routes of schedules: set, look, list, remove; whose they are, and who may do what.
import { expect, it } from 'vitest'
import { newToken } from '../../dist/server/auth.js'
import { refusal, room } from './ask.js'

const nightly = '/v1/schedules/nightly'

it('sets a schedule, shows it, lets it fire, and removes it', async () => {
  const { ask, get, clock, engine } = await room()
  const put = (body: unknown, path = nightly) => ask('PUT', path, { body })
  const raw = '{"queue":"q","payload":{"n":1.50},"cron":"0 4 * * *","tz":"Europe/Berlin","headers":{"a":"b"}}'
  const set = await ask('PUT', nightly, { raw, headers: { 'content-type': 'application/json' } })
  expect(set.status).toBe(200)
  expect(set.text).toContain('"payload":{"n":1.50}')
  expect((await get(nightly)).json).toEqual(set.json)
  expect(set.json).toMatchObject({ queue: 'q', name: 'nightly', nextAt: '2033-05-19T02:00:00.000Z', lastAt: null })
  await put({ queue: 'p', payload: 1, dueAt: '2033-05-18T03:33:21Z' }, '/v1/schedules/once')
  await clock.advance(1000)
  await engine.sweep(100)
  expect((await get('/v1/schedules/once')).json).toMatchObject({ nextAt: null, lastAt: '2033-05-18T03:33:21.000Z' })
  expect((await get('/v1/queues/p/tasks')).json.items).toMatchObject([{ payload: 1 }])
  const names = (await get('/v1/schedules')).json.items.map(({ name }: { name: string }) => name)
  expect(names).toEqual(['once', 'nightly'])
  expect((await ask('DELETE', nightly)).json).toEqual({ queue: 'q', name: 'nightly', removed: true })
  expect(refusal(await get(nightly))).toEqual([404, 'PW_SCHEDULE_UNKNOWN'])
  expect(refusal(await ask('DELETE', nightly))).toEqual([404, 'PW_SCHEDULE_UNKNOWN'])
})

it('asks of which queue a name is that several have', async () => {
  const { ask, get } = await room()
  for (const queue of ['a', 'b']) await ask('PUT', nightly, { body: { queue, payload: 1, everyMs: 1000 } })
  expect(refusal(await get(nightly))).toEqual([400, 'PW_OPTION_INVALID'])
  expect((await get(`${nightly}?queue=b`)).json).toMatchObject({ queue: 'b', everyMs: 1000 })
  expect((await ask('DELETE', `${nightly}?queue=a`)).json).toMatchObject({ queue: 'a' })
  expect((await get(nightly)).json).toMatchObject({ queue: 'b' })
})

it('refuses what does not fit, and changes nothing', async () => {
  const { ask, get } = await room()
  const refused = async (body: object) =>
    refusal(await ask('PUT', nightly, { body: { queue: 'q', payload: 1, ...body } }))
  expect(await refused({ cron: '0 0 30 2 *' })).toEqual([400, 'PW_SCHEDULE_NEVER'])
  expect(await refused({ cron: '0 0 * * *', tz: 'Mars' })).toEqual([400, 'PW_ZONE_UNKNOWN'])
  expect(await refused({ cron: '0 0 * *' })).toEqual([400, 'PW_SCHEDULE_INVALID'])
  expect(await refused({ dueAt: 'tomorrow' })).toEqual([400, 'PW_OPTION_INVALID'])
  expect(await refused({ everyMs: 1000, batch: 'b' })).toEqual([400, 'PW_OPTION_UNKNOWN'])
  expect((await get('/v1/schedules')).json.items).toEqual([])
})

it('shows and sets only schedules of queues that a token covers, and payloads to who may read them', async () => {
  const { ask, get, engine, token } = await roomWithTokens()
  const mine = { authorization: `Bearer ${await token(['produce'], ['mine*'])}` }
  const operator = { authorization: `Bearer ${await token(['operate', 'read-payload'], ['*'])}` }
  const put = (queue: string) =>
    ask('PUT', nightly, { body: { queue, payload: 'secret', everyMs: 1000 }, headers: mine })
  expect(refusal(await put('other'))).toEqual([403, 'PW_FORBIDDEN'])
  expect((await put('mine/1')).json).not.toHaveProperty('payload')
  await engine.configure('schedule', 'other\0nightly', { everyMs: 1000, task: { payload: '2' } }, 'tester')
  expect((await get(nightly, mine)).json).toMatchObject({ queue: 'mine/1' })
  expect((await get('/v1/schedules', operator)).json.items).toMatchObject([{ payload: 'secret' }, { payload: 2 }])
  expect(refusal(await ask('DELETE', nightly, { headers: mine }))).toEqual([403, 'PW_FORBIDDEN'])
})

/** A room whose callers need tokens, and a way to one. */
async function roomWithTokens() {
  const at = await room({ tokens: true })
  const token = async (scopes: string[], queues: string[]) => {
    const { id, text, hash } = newToken()
    await at.engine.configure('token', id, { name: 'somebody', hash, scopes, queues, expiresAt: null }, 'tester')
    return text
  }
  return { ...at, token }
}
