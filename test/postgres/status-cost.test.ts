// A status costs the same number of statements however many types have work, and its ages are those of their tasks.
import pg from 'pg'
import { expect, it, vi } from 'vitest'
import { opened } from './client.js'
import { serverOfFile } from './server.js'

const server = serverOfFile()

it('asks as often for 30 types as for one', async () => {
  const { database, sql } = await server()
  const url = await database()
  const engine = await opened(url)
  const asked = vi.spyOn(pg.Client.prototype, 'query')
  const statements = async () => {
    await engine.measure(null, true)
    asked.mockClear()
    await engine.measure(null, true)
    // Whoever enqueued is still telling others of it.
    return asked.mock.calls.filter(([config]) => !JSON.stringify(config).includes('pg_notify')).length
  }
  const payload = '1'
  await engine.enqueue(null, [{ queue: 'q', type: 'type 0', payload }])
  const ofOne = await statements()
  const many = Array.from({ length: 30 }, (_, n) => ({ queue: 'q', type: `type ${n}`, payload, priority: n % 2 }))
  await engine.enqueue(null, [...many, { queue: 'q', type: 'type 1', payload, priority: 50 }])
  expect(await statements()).toBe(ofOne)

  // The oldest is the head where nothing mixed the order, and anywhere where priorities did.
  await sql(url, 'update piecework.task set dueAt = dueAt - 60000 where priority = 1 or id = 1')
  await sql(url, 'update piecework.task set dueAt = dueAt - 90000 where id = 3')
  const { types } = await engine.measure(['q'], true)
  const ages = new Map(types.map(({ type, backlogAgeMs }) => [type, Math.floor((backlogAgeMs ?? 0) / 30_000)]))
  expect([0, 1, 2, 3].map((n) => ages.get(`type ${n}`))).toEqual([2, 5, 0, 2])
  expect((await engine.measure(['another'], true)).types).toEqual([])
})
