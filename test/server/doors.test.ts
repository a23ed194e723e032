// Who may do what: every route of the table, without a token, with each that will not do, and with the one that will.
import { describe, expect, it } from 'vitest'
import { newToken, type Scope, scopes } from '../../dist/server/auth.js'
import { routes } from '../../dist/server/routes.js'
import { type Answer, type Room, refusal, room } from './ask.js'

/** What each route asks for, written down a second time: a change of the table has to be made twice. */
const wanted: Record<string, readonly Scope[] | null> = {
  'POST /v1/queues/{q}/tasks': ['produce'],
  'GET /v1/queues/{q}/tasks': ['operate'],
  'GET /v1/queues/{q}/tasks/{id}': ['produce', 'work', 'operate'],
  'DELETE /v1/queues/{q}/tasks/{id}': ['operate'],
  'POST /v1/queues/{q}/claims': ['work'],
  'POST /v1/settle': ['work'],
  'POST /v1/extend': ['work'],
  'GET /v1/queues': ['operate'],
  'GET /v1/queues/{q}': ['operate'],
  'PATCH /v1/queues/{q}': ['operate'],
  'POST /v1/queues/{q}/pause': ['operate'],
  'POST /v1/queues/{q}/resume': ['operate'],
  'POST /v1/queues/{q}/purge': ['operate'],
  'POST /v1/queues/{q}/move': ['operate'],
  'GET /v1/queues/{q}/dead': ['operate'],
  'POST /v1/queues/{q}/dead/redrive': ['operate'],
  'POST /v1/queues/{q}/dead/discard': ['operate'],
  'GET /v1/queues/{q}/dead/{id}': ['operate'],
  'PATCH /v1/queues/{q}/dead/{id}': ['operate'],
  'GET /v1/batches': ['operate'],
  'GET /v1/batches/{name}': ['produce', 'operate'],
  'PUT /v1/batches/{name}': ['produce', 'operate'],
  'DELETE /v1/batches/{name}': ['operate'],
  'POST /v1/batches/{name}/seal': ['produce', 'operate'],
  'POST /v1/batches/{name}/cancel': ['operate'],
  'GET /v1/limits': ['operate'],
  'GET /v1/limits/{name}': ['operate'],
  'PUT /v1/limits/{name}': ['operate'],
  'DELETE /v1/limits/{name}': ['operate'],
  'GET /v1/schedules': ['produce', 'operate'],
  'GET /v1/schedules/{schedule}': ['produce', 'operate'],
  'PUT /v1/schedules/{schedule}': ['produce', 'operate'],
  'DELETE /v1/schedules/{schedule}': ['operate'],
  'GET /v1/stats': ['operate'],
  'GET /v1/events': ['operate'],
  'GET /v1/plan': ['operate'],
  'GET /v1/doctor': ['operate'],
  'GET /v1/explain/{id}': ['operate'],
  'GET /v1/autoscale/{q}': ['operate'],
  'GET /metrics': ['operate'],
  'GET /healthz': null,
  'GET /readyz': null,
  'GET /v1/openapi.json': null,
}

const task = { queue: 'orders', payload: '1' }
const info = { worker: 'w', host: 'h', pid: 1, bootId: '', queues: ['orders'], proof: null }
const verbs: Record<string, { wanted: readonly Scope[]; body: object; queue?: false }> = {
  enqueue: { wanted: ['produce'], body: { tasks: [task] } },
  claim: { wanted: ['work'], body: { worker: 'w', wants: [{ queue: 'orders', types: null, max: 1 }] } },
  settle: { wanted: ['work'], body: { worker: 'w', verdicts: [] }, queue: false },
  extend: { wanted: ['work'], body: { worker: 'w', asks: [] }, queue: false },
  worker: {
    wanted: ['work'],
    body: { event: 'join', info: { ...info, concurrency: 1, busy: 0, prefetched: 0 } },
  },
  sweep: { wanted: ['work', 'operate'], body: { max: 1 }, queue: false },
  wait: { wanted: ['work'], body: { queues: ['orders'], ms: 0 } },
  amend: {
    wanted: ['operate'],
    body: {
      filter: { queue: 'orders' },
      change: { do: 'cancel' },
      actor: 'a',
      bounds: { max: 1, dryRun: true },
    },
  },
  measure: { wanted: ['produce', 'work', 'operate'], body: { queues: null, durable: false }, queue: false },
  migrate: { wanted: ['admin'], body: { dryRun: true }, queue: false },
}
const settings: Record<string, { wanted: readonly Scope[]; body: object }> = {
  "a program's policy": { wanted: ['work', 'operate'], body: { kind: 'queue', name: 'orders', patch: { code: {} } } },
  "an operator's policy": { wanted: ['operate'], body: { kind: 'queue', name: 'orders', patch: { operator: {} } } },
  'a pause': { wanted: ['operate'], body: { kind: 'queue', name: 'orders', patch: { paused: true } } },
  'a batch': { wanted: ['produce', 'operate'], body: { kind: 'batch', name: 'orders', patch: {} } },
  "a batch's end": { wanted: ['operate'], body: { kind: 'batch', name: 'orders', patch: null } },
  'a limit': { wanted: ['operate'], body: { kind: 'limit', name: 'orders', patch: { code: {} } } },
}
const reads: Record<string, readonly Scope[]> = {
  ...{ queue: ['produce', 'work', 'operate'], batch: ['produce', 'work', 'operate'] },
  ...{ schedule: ['produce', 'operate'], task: ['operate'], result: ['operate'], route: ['operate'] },
  ...{ limit: ['operate'], type: ['operate'], history: ['operate'], worker: ['operate'], proof: ['operate'] },
  ...{ audit: ['admin'], token: ['admin'] },
}

/** The bodies of routes that need one to get as far as to what a token's queues cover. */
const bodies: Record<string, object> = {
  'POST /v1/queues/{q}/move': { type: 'x', to: 'orders' },
  'PUT /v1/schedules/{schedule}': { queue: 'orders', payload: 1, everyMs: 1000 },
}

const pathOf = (path: string) => path.replace(/\{\w+\}/g, 'orders')
const labelOf = ({ method, path }: { method: string; path: string }) => `${method} ${path}`
const table = routes.filter(({ path }) => !path.startsWith('/v1/engine/'))
const closed = table.filter((route) => wanted[labelOf(route)] !== null)
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** A token with these scopes. */
async function tokenOf(
  { engine, clock }: Room,
  held: readonly Scope[],
  queues = ['*'],
  expiresAt: number | null = null,
) {
  const { id, text, hash } = newToken()
  await engine.configure('token', id, { name: id, hash, scopes: held, queues, expiresAt }, 'tester')
  // A broker looks for new tokens no more often than every 50 ms.
  await clock.advance(50)
  return { id, text }
}

/** What the call answers, on a clock that passes only while it waits: wrong tokens are answered slowly. */
async function slowly({ clock }: Room, call: Promise<Answer>): Promise<Answer> {
  let over = false
  void call.finally(() => {
    over = true
  })
  while (!over) await clock.advance(500)
  return call
}

it('is written down for every route', () => {
  expect(table.map(labelOf).sort()).toEqual(Object.keys(wanted).sort())
  expect(Object.fromEntries(table.map((route) => [labelOf(route), route.scope]))).toEqual(wanted)
  const known = [...Object.keys(verbs), 'open', 'configure', 'select'].sort()
  const served = routes.flatMap(({ path }) => (path.startsWith('/v1/engine/') ? [path.slice(11)] : []))
  expect(served.sort()).toEqual(known)
})

describe('strangers', () => {
  it('get nowhere without a token, nor with one that is malformed, unknown, expired or revoked', async () => {
    const at = await room({ tokens: true })
    const expired = await tokenOf(at, ['admin'], ['*'], at.clock.wallMs() - 1)
    const revoked = await tokenOf(at, ['admin'])
    expect((await at.get('/v1/queues', bearer(revoked.text))).status).toBe(200)
    await at.engine.configure('token', revoked.id, null, 'tester')
    await at.clock.advance(1000)
    const real = await tokenOf(at, ['admin'])
    const wrong: Record<string, Record<string, string>> = {
      nothing: {},
      empty: { authorization: '' },
      basic: { authorization: 'Basic cHc6cHc=' },
      malformed: bearer('pw_short'),
      unknown: bearer(newToken().text),
      'of another secret': bearer(`${real.text.slice(0, 17)}${newToken().text.slice(17)}`),
      expired: bearer(expired.text),
      revoked: bearer(revoked.text),
    }
    for (const [name, headers] of Object.entries(wrong)) {
      for (const { method, path } of routes) {
        if (wanted[`${method} ${path}`] === null) continue
        const answer = await slowly(at, at.ask(method, pathOf(path), { headers }))
        expect([name, method, path, ...refusal(answer)]).toEqual([name, method, path, 401, 'PW_TOKEN_INVALID'])
        expect(answer.headers['www-authenticate']).toMatch(/^Bearer/)
      }
    }
    expect((await at.get('/v1/queues', bearer(real.text))).json.items).toEqual([])
  })

  it('in a browser get nowhere: not from another origin, and on an open broker not under another name', async () => {
    for (const tokens of [true, false]) {
      const at = await room({ tokens })
      const { text } = await tokenOf(at, ['admin'])
      const auth = tokens ? bearer(text) : {}
      const strange = [{ origin: 'https://evil.example' }, { origin: 'null' }, { origin: 'http://127.0.0.1:1' }]
      const forged = tokens ? [] : [{ host: 'evil.example' }, { host: '127.0.0.1.evil.example' }]
      for (const headers of [...strange, ...forged]) {
        for (const { method, path } of routes) {
          const answer = await at.ask(method, pathOf(path), { headers: { ...auth, ...headers } })
          const seen = [headers, method, path, ...refusal(answer)]
          expect(seen).toEqual([headers, method, path, 403, 'PW_ORIGIN_REFUSED'])
        }
      }
      expect((await at.get('/healthz', { origin: new URL(at.url).origin })).status).toBe(200)
    }
  })
})

/** Each scope, and what it may call: what is refused says 403, what is let in says anything but 401 and 403. */
async function judged(at: Room, allowed: readonly Scope[], call: (headers: Record<string, string>) => Promise<Answer>) {
  for (const scope of scopes) {
    const { text } = await tokenOf(at, [scope])
    const { status, json } = await slowly(at, call(bearer(text)))
    const may = scope === 'admin' || allowed.includes(scope)
    expect([scope, may ? status !== 401 && status !== 403 : json?.code]).toEqual([scope, may ? true : 'PW_FORBIDDEN'])
  }
}

describe('a token of another kind', () => {
  it.each(closed.map((route) => [labelOf(route), route] as const))('%s takes its scopes only', async (label, route) => {
    if (route.path === '/v1/events') return
    const at = await room({ tokens: true })
    const { method, path } = route
    const body = bodies[label] ?? (route.body ? {} : undefined)
    await judged(at, wanted[label] ?? [], (headers) => at.ask(method, pathOf(path), { body, headers }))
  })

  it.each(Object.entries(verbs))('engine %s takes its scopes only', async (verb, { wanted: allowed, body }) => {
    const at = await room({ tokens: true })
    await judged(at, allowed, (headers) => at.post(`/v1/engine/${verb}`, body, headers))
  })

  it.each(Object.entries(settings))('engine configure: %s', async (_, { wanted: allowed, body }) => {
    const at = await room({ tokens: true })
    await judged(at, allowed, (headers) => at.post('/v1/engine/configure', { ...body, actor: 'a' }, headers))
  })

  it.each(Object.entries(reads))('engine select of %s', async (kind, allowed) => {
    const at = await room({ tokens: true })
    const body = { kind, filter: {}, cursor: null }
    await judged(at, allowed, (headers) => at.post('/v1/engine/select', body, headers))
  })
})

describe('a token of other queues', () => {
  it('may not touch this one, whatever its scopes', async () => {
    const at = await room({ tokens: true })
    const { text } = await tokenOf(at, scopes, ['mine*', 'o?ders', 'order', 'orders/*'])
    const covered = closed.filter(({ path }) => /\{(q|name)\}/.test(path) || path.includes('{schedule}'))
    expect(covered.length).toBeGreaterThan(20)
    for (const route of covered) {
      const body = bodies[labelOf(route)] ?? (route.body ? {} : undefined)
      // A schedule is found by its queue; where there is none of a covered queue, there is none.
      const found = route.path.includes('{schedule}') && route.method !== 'PUT' ? [404, 'PW_SCHEDULE_UNKNOWN'] : null
      const answer = await at.ask(route.method, pathOf(route.path), { body, headers: bearer(text) })
      expect([labelOf(route), ...refusal(answer)]).toEqual([labelOf(route), ...(found ?? [403, 'PW_FORBIDDEN'])])
    }
    for (const [verb, { body, queue }] of Object.entries(verbs)) {
      if (queue === false) continue
      const answer = await at.post(`/v1/engine/${verb}`, body, bearer(text))
      expect([verb, ...refusal(answer)]).toEqual([verb, 403, 'PW_FORBIDDEN'])
    }
    for (const [name, { body }] of Object.entries(settings)) {
      const answer = await at.post('/v1/engine/configure', { ...body, actor: 'a' }, bearer(text))
      expect([name, ...refusal(answer)]).toEqual([name, 403, 'PW_FORBIDDEN'])
    }
  })

  it('reaches no other queue through its own: not by a move, a follow-up, a route or dead letters', async () => {
    const at = await room({ tokens: true })
    const { text } = await tokenOf(at, ['produce', 'work', 'operate'], ['mine*'])
    const headers = bearer(text)
    await at.engine.configure('queue', 'mine', { code: {} }, 'tester')
    const configured = (body: object) => at.post('/v1/engine/configure', { ...body, actor: 'a' }, headers)
    const calls: Record<string, () => Promise<Answer>> = {
      move: () => at.post('/v1/queues/mine/move', { type: 'x', to: 'orders' }, headers),
      'follow-up': () => at.ask('PUT', '/v1/batches/mine', { body: { onDone: { ...task, payload: 1 } }, headers }),
      'policy over HTTP': () => at.ask('PATCH', '/v1/queues/mine', { body: { deadTo: 'orders' }, headers }),
      "a program's policy": () => configured({ kind: 'queue', name: 'mine', patch: { code: { deadTo: 'orders' } } }),
      "an operator's policy": () =>
        configured({ kind: 'queue', name: 'mine', patch: { operator: { deadTo: 'orders' } } }),
      "a program's follow-up": () => configured({ kind: 'batch', name: 'mine', patch: { followUp: task } }),
      'a route': () => configured({ kind: 'route', name: 'mine\0x', patch: { to: 'orders' } }),
      "a program's move": () =>
        at.post(
          '/v1/engine/amend',
          {
            ...{ filter: { queue: 'mine' }, change: { do: 'move', to: 'orders' }, actor: 'a' },
            bounds: { max: 1, dryRun: false },
          },
          headers,
        ),
    }
    for (const [name, call] of Object.entries(calls)) {
      expect([name, ...refusal(await call())]).toEqual([name, 403, 'PW_FORBIDDEN'])
    }
  })
})
