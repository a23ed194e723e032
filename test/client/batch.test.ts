// Batches as a program holds them: what follows them, how far they are, and how they are cancelled.
import { expect, it } from 'vitest'
import { ackAll, buryAll, holdSome, latch, openStore, refusalOf } from './store.js'

it('are followed by a draft, once, with whatever failed before', async () => {
  const { pw, connection } = await openStore()
  const mail = pw.queue('mail')
  const batch = pw.batch('import', { onDone: mail.draft({ sum: 1 }, { type: 'summary', headers: { a: 'b' } }) })
  await mail.enqueueMany([1, 2], () => ({ batch }))
  expect(await batch.stats()).toMatchObject({ total: 2, followUp: { queue: 'mail', type: 'summary', id: null } })
  await buryAll(connection, 'mail', 1, 'no')
  await ackAll(connection, await holdSome(connection, 'mail', 1))
  const done = batch.done()
  await batch.seal()
  expect(await done).toEqual({ total: 2, done: 1, dead: 1, cancelled: 0 })
  const { items } = await mail.list({ state: 'ready' })
  expect(items).toMatchObject([{ payload: { sum: 1 }, type: 'summary', headers: { a: 'b' }, batch: null }])
  expect(await batch.stats()).toMatchObject({ open: 0, progress: 1, etaMs: 0, followUp: { id: items[0]?.id } })
  await mail.dead.redrive({ all: true })
  expect(await batch.done()).toEqual({ total: 2, done: 1, dead: 0, cancelled: 0 })
})

it('store what follows before their first task, whichever call comes first', async () => {
  const { pw, connection } = await openStore()
  const mail = pw.queue('mail')
  const followed = async (name: string) =>
    (await connection.engine().select('batch', { name }, null)).items[0]?.followUp ?? null
  const onDone = () => ({ onDone: mail.draft('end') })
  await mail.enqueue(1, { batch: pw.batch('one', onDone()) })
  await mail.enqueueMany([1], { batch: pw.batch('many', onDone()) })
  pw.batch('ready', onDone())
  await pw.ready
  await pw.batch('sealed', onDone()).seal()
  for (const name of ['one', 'many', 'ready', 'sealed']) expect(await followed(name)).toMatchObject({ queue: 'mail' })
})

it('refuse what cannot follow, at the first call that is awaited', async () => {
  const { pw } = await openStore()
  const mail = pw.queue('mail')
  const refusedFor = async (onDone: unknown) => (await refusalOf(pw.batch('b', { onDone } as never).seal())).message
  expect(await refusedFor('mail')).toContain('queue.draft()')
  expect(await refusedFor(mail.draft(1, { dedupKey: 'd' }))).toContain('dedupKey')
  expect(await refusedFor(mail.draft(1n as never))).toContain('JSON')
  expect(await refusedFor(mail.draft(1, { tx: {} } as never))).toContain('draft has no option "tx"')
  expect(await refusalOf(pw.batch('b', { onEnd: 1 } as never).seal())).toMatchObject({ code: 'PW_OPTION_UNKNOWN' })
  expect(await pw.batch('b').stats()).toBeNull()
  const batch = pw.batch('c', { onDone: mail.draft(1) })
  await batch.seal()
  expect(await refusalOf(batch.seal())).toMatchObject({ code: 'PW_BATCH_SEALED' })
  expect(await refusalOf(pw.batch('c', { onDone: mail.draft(2) }).done())).toMatchObject({ code: 'PW_BATCH_FINISHED' })
  expect(await pw.batch('c', { onDone: mail.draft(1) }).done()).toMatchObject({ total: 0 })
})

it('take a payload as it was when the draft was made', async () => {
  const { pw } = await openStore()
  const mail = pw.queue<{ n: number }>('mail')
  const payload = { n: 1 }
  const batch = pw.batch('b', { onDone: mail.draft(payload) })
  payload.n = 2
  await batch.seal()
  expect((await mail.list()).items).toMatchObject([{ payload: { n: 1 } }])
})

it('say how long they will take, by what ended since an earlier look', async () => {
  const { pw, connection, clock } = await openStore()
  const mail = pw.queue('mail')
  const batch = pw.batch('b')
  await mail.enqueueMany([1, 2, 3, 4], { batch })
  expect(await batch.stats()).toMatchObject({ open: 4, progress: 0, etaMs: null })
  clock.advance(1000)
  await ackAll(connection, await holdSome(connection, 'mail', 1))
  const { etaMs, progress, open } = (await batch.stats()) ?? {}
  expect({ progress, open }).toEqual({ progress: 0.25, open: 3 })
  expect(etaMs).toBeGreaterThanOrEqual(3000)
  expect(etaMs).toBeLessThan(30_000)
})

it('are cancelled from another process: sealed, what is open ended, who runs asked within a second', async () => {
  const { pw, connection } = await openStore()
  const mail = pw.queue('mail')
  const batch = pw.batch('b', { onDone: mail.draft('after', { type: 'after' }) })
  await mail.enqueueMany([1, 2, 3], { batch })
  const started = latch()
  const reasons: unknown[] = []
  const handler = (_: unknown, { signal }: { signal: AbortSignal }) => {
    started.hit()
    return new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => {
        reasons.push((signal.reason as { code?: string }).code)
        reject(signal.reason)
      })
    })
  }
  mail.work({ mail: handler }, { concurrency: 1, prefetch: 0 })
  await started.reached
  const other = await openStore({ url: `sqlite:${(connection.ports.engine.descriptor() as { file?: string }).file}` })
  const from = performance.now()
  expect(await other.pw.batch('b').cancel()).toEqual({ cancelled: 2, asked: 1 })
  expect(await batch.done()).toEqual({ total: 3, done: 0, dead: 0, cancelled: 3 })
  // Twice what it takes where nobody else wants the processor.
  expect(performance.now() - from).toBeLessThan(2000)
  expect(reasons).toEqual(['PW_CANCELLED'])
  expect((await mail.list({ type: 'after' })).items).toMatchObject([{ payload: 'after' }])
  expect(await other.pw.batch('b').cancel()).toEqual({ cancelled: 0, asked: 0 })
  expect(await refusalOf(other.pw.batch('none').cancel())).toMatchObject({ code: 'PW_BATCH_UNKNOWN' })
})
