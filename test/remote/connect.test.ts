// The library over a broker: the same calls, the same answers, the same refusals as over a file.
import { connect } from 'piecework'
import { expect, it, onTestFinished } from 'vitest'
import { engineFor } from '../../dist/engines/open.js'
import { newToken } from '../../dist/server/auth.js'
import { latch, newUrl, refusalOf } from '../client/store.js'
import { startBroker, type TestBroker } from './broker.js'

async function served(options: { tokens?: boolean } = {}): Promise<TestBroker> {
  const engine = engineFor(newUrl())
  await engine.open()
  const broker = await startBroker(engine, options)
  onTestFinished(() => broker.stop())
  return broker
}

async function connected(url: string) {
  const pw = await connect(url)
  onTestFinished(() => pw.close())
  return pw
}

it('enqueues, works, retries, buries and drains', async () => {
  const { url } = await served()
  const pw = await connected(url)
  const mail = pw.queue('mail', { backoff: { baseMs: 0 }, deliveriesMax: 2 })
  const { id, duplicate } = await mail.enqueue({ to: 'ada' }, { dedupKey: 'd', batch: 'b' })
  expect(await mail.enqueue({ to: 'ada' }, { dedupKey: 'd' })).toEqual({ id, duplicate: true })
  expect([duplicate, await mail.get(id)]).toMatchObject([false, { id, payload: { to: 'ada' }, state: 'ready' }])
  expect(await mail.enqueueMany(Array.from({ length: 2500 }, (_, n) => ({ n })))).toEqual({
    enqueued: 2500,
    duplicates: 0,
  })
  const seen = new Set<unknown>()
  const worker = mail.work((payload, delivery) => {
    if (payload.n === 7) throw new Error('never')
    if (payload.n === 8 && delivery.number === 1) throw new Error('once')
    expect(delivery.deliveriesMax).toBe(2)
    seen.add(payload.n ?? payload.to)
  })
  await worker.ready
  expect(await mail.drained()).toEqual({ dead: 1 })
  expect(seen.size).toBe(2500)
  expect((await mail.dead.list()).items).toMatchObject([{ payload: { n: 7 }, deliveries: 2, reason: 'spent' }])
  const [history] = (await mail.dead.get((await mail.dead.list()).items[0]?.id ?? ''))?.history ?? []
  expect(history).toMatchObject({ number: 1, outcome: 'retry', error: expect.stringContaining('never') })
  await pw.batch('b').seal()
  expect(await pw.batch('b').done()).toEqual({ total: 1, done: 1, dead: 0, cancelled: 0 })
  expect(await mail.stats()).toMatchObject({ done: 2500, dead: 1, drained: true, workers: 1 })
})

it('reports progress, extends, hears of a cancel, and stops without a charge', async () => {
  const { url } = await served()
  const pw = await connected(url)
  const slow = pw.queue('slow')
  const begun = latch()
  const ended = latch()
  let reason: unknown
  const worker = slow.work(async (_, delivery) => {
    await delivery.progress({ at: 1 })
    await delivery.extend(60_000)
    begun.hit()
    await new Promise((resolve) => delivery.signal.addEventListener('abort', resolve))
    reason = delivery.signal.reason
    ended.hit()
    throw reason
  })
  const { id } = await slow.enqueue(1)
  await begun.reached
  expect(await slow.get(id)).toMatchObject({ state: 'leased', progress: { at: 1 } })
  expect(await slow.cancel(id)).toEqual({ cancelled: 0, asked: 1 })
  await ended.reached
  expect(reason).toMatchObject({ code: 'PW_CANCELLED' })
  await worker.stop()
  expect(await slow.get(id)).toEqual({ state: 'gone' })
})

it('joins without a proof of life: the lock of the broker says nothing of workers elsewhere', async () => {
  const { url, connection } = await served()
  const pw = await connected(url)
  const worker = pw.queue('q').work(() => {})
  await worker.ready
  const { items } = await connection.engine().select('worker', {}, null)
  expect(items).toMatchObject([{ pid: process.pid, proof: null, queues: ['q'] }])
  await worker.stop()
})

it('refuses a transaction, a policy that is none, an address that is none and a token in it', async () => {
  const { url } = await served()
  const pw = await connected(url)
  expect((await refusalOf(pw.queue('q').enqueue(1, { tx: {} as never }))).code).toBe('PW_TX_UNSUPPORTED')
  expect((await refusalOf(pw.queue('q').configure({ leaseMs: 1 }))).code).toBe('PW_OPTION_INVALID')
  for (const bad of ['http://', 'http://u:p@127.0.0.1:1', 'http://127.0.0.1:1/?token=x', 'ftp://x']) {
    expect((await refusalOf(connect(bad))).code, bad).toBe('PW_ENGINE_UNKNOWN')
  }
})

it('says that nobody is there, or that somebody else is', async () => {
  const gone = await served()
  await gone.stop()
  const missing = await refusalOf(connect(gone.url))
  expect([missing.code, missing.retryable]).toEqual(['PW_BROKER_UNREACHABLE', true])
  const { createServer } = await import('node:http')
  const other = createServer((_, response) => response.end('<html>')).listen(0, '127.0.0.1')
  onTestFinished(() => void other.close())
  await new Promise((resolve) => other.once('listening', resolve))
  const { port } = other.address() as { port: number }
  expect((await refusalOf(connect(`http://127.0.0.1:${port}`))).code).toBe('PW_BROKER_FAILED')
})

it('takes its token from PIECEWORK_TOKEN and is told what it may not do', async () => {
  const { url, connection } = await served({ tokens: true })
  expect((await refusalOf(connect(url))).code).toBe('PW_TOKEN_INVALID')
  const { id, text, hash } = newToken()
  const patch = { name: 'producer', hash, scopes: ['produce'], queues: ['mail*'], expiresAt: null }
  await connection.engine().configure('token', id, patch, 'tester')
  process.env.PIECEWORK_TOKEN = text
  onTestFinished(() => void delete process.env.PIECEWORK_TOKEN)
  const pw = await connected(url)
  await pw.queue('mail').enqueue(1)
  expect((await refusalOf(pw.queue('other').enqueue(1))).code).toBe('PW_FORBIDDEN')
  expect((await refusalOf(pw.queue('mail').list())).code).toBe('PW_FORBIDDEN')
  expect((await refusalOf(pw.queue('mail', { leaseMs: 5000 }).enqueue(1))).code).toBe('PW_FORBIDDEN')
  const worker = pw.queue('mail').work(() => {})
  expect((await refusalOf(worker.ready)).code).toBe('PW_FORBIDDEN')
})
