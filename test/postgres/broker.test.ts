// What a broker asks of PostgreSQL: tokens, workers that live on other machines, and claims that are sent again.
import { beforeAll, expect, it } from 'vitest'
import type { WorkerInfo } from '../../dist/engine/contract.js'
import { systemClock } from '../../dist/ground/clock.js'
import { opened } from './client.js'
import { type Server, serverOfFile } from './server.js'

const starting = serverOfFile()
let server: Server

beforeAll(async () => {
  server = await starting()
}, 60_000)

it('keeps tokens, two live ones of a name at most however many ask at once, until they are revoked', async () => {
  const url = await server.database()
  const [one, two] = [await opened(url), await opened(url)]
  const token = { name: 'ci', hash: 'h', scopes: ['claim'], queues: ['*'], expiresAt: null }
  const made = await Promise.allSettled(
    Array.from({ length: 6 }, (_, n) => (n % 2 ? one : two).configure('token', `t${n}`, token, 'tester')),
  )
  const refused = made.filter((answer) => answer.status === 'rejected').map(({ reason }) => reason.code)
  expect(refused).toEqual(Array(4).fill('PW_TOKEN_THIRD'))
  const { items } = await one.select('token', { name: 'ci' }, null)
  expect(items).toMatchObject([token, token])
  await two.configure('token', String(items[0]?.id), null, 'tester')
  expect((await one.select('token', {}, null)).items).toEqual([items[1]])
  await expect(one.configure('token', String(items[0]?.id), null, 'tester')).rejects.toMatchObject({
    code: 'PW_TOKEN_UNKNOWN',
  })
  const acts = (await one.select('audit', {}, null)).items.map(({ action }) => action)
  expect(acts).toEqual(['create token', 'create token', 'revoke token'])
})

it('holds no proof of life for a worker of another machine', async () => {
  const engine = await opened(await server.database())
  const info: WorkerInfo = {
    ...{ worker: 'here', host: 'h', pid: 1, bootId: systemClock.bootId, queues: ['q'] },
    ...{ concurrency: 1, busy: 0, prefetched: 0, proof: null },
  }
  await engine.worker('join', info)
  await engine.worker('join', { ...info, worker: 'there', bootId: 'of another machine' })
  const { items } = await engine.select('worker', {}, null)
  expect(items).toMatchObject([
    { worker: 'here', proof: expect.any(String) },
    { worker: 'there', proof: null },
  ])
})

it('gives a claim sent by two handles at once one answer, also where an earlier answer is over', async () => {
  const url = await server.database()
  const engines = [await opened(url), await opened(url)]
  await engines[0]?.enqueue(
    null,
    Array.from({ length: 40 }, () => ({ queue: 'q', payload: '1' })),
  )
  const ask = { worker: 'w', requestId: 'r', wants: [{ queue: 'q', types: null, max: 2 }] }
  for (let round = 0; round < 10; round++) {
    const answers = await Promise.all(engines.map((engine) => engine.claim(ask)))
    const [one, two] = answers.map(({ deliveries }) => deliveries.map(({ receipt }) => receipt))
    expect(one).toHaveLength(2)
    expect(two).toEqual(one)
    const acks = (one ?? []).map((receipt) => ({ receipt, do: 'ack' as const }))
    expect(await engines[0]?.settle({ worker: 'w', flush: null }, acks)).toEqual(['done', 'done'])
  }
})
