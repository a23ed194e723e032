// A broker that stops: long polls end empty, what is under way is answered, nothing new begins.
import { Agent } from 'node:http'
import { expect, it } from 'vitest'
import { reached, refusal, room } from './ask.js'

it('answers long polls with an empty list, finishes what is under way, and refuses what comes after', async () => {
  const at = await room()
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  await at.ask('GET', '/healthz', { agent })
  const poll = at.post('/v1/queues/q/claims', { worker: 'w', waitMs: 20_000 })
  await reached('a long poll', () => at.broker.meter.waiting === 1)
  let goOn = () => {}
  const gate = new Promise<void>((resolve) => {
    goOn = resolve
  })
  const enqueue = at.engine.enqueue.bind(at.engine)
  let asked = false
  at.engine.enqueue = async (...args) => {
    asked = true
    await gate
    return enqueue(...args)
  }
  const slow = at.post('/v1/queues/q/tasks', { payload: 1 }, { 'idempotency-key': 'k' })
  await reached('an enqueue under way', () => asked)
  const ended = at.broker.stop()
  expect((await poll).json).toEqual({ deliveries: [] })
  const late = await at.ask('POST', '/v1/queues/q/claims', { body: { worker: 'w' }, agent })
  expect(refusal(late)).toEqual([503, 'PW_SERVER_BUSY'])
  expect([late.headers.connection, late.headers['retry-after']]).toEqual(['close', '1'])
  expect([(await at.get('/readyz')).status, (await at.get('/healthz')).status]).toEqual([503, 200])
  goOn()
  expect((await slow).status).toBe(201)
  await ended
})
