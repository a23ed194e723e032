// What a program gets back: kept results, the wait for one, and the same handler called without a queue.
import type { Delivery } from 'piecework'
import { Bury } from 'piecework'
import { expect, it } from 'vitest'
import { latch, openStore, refusalOf } from './store.js'

const fileOf = (descriptor: unknown) => (descriptor as { file: string }).file

it('get() has the result as long as the policy keeps it, and then nothing', async () => {
  const { pw, clock, connection } = await openStore()
  const sums = pw.queue<number[]>('sums', { resultKeepMs: 60_000 })
  const worker = sums.work((numbers: number[]) => ({ sum: numbers.reduce((a, b) => a + b, 0), at: new Date(0) }))
  const { id } = await sums.enqueue([1, 2])
  await sums.drained()
  const result = { sum: 3, at: '1970-01-01T00:00:00.000Z' }
  expect(await sums.get(id)).toEqual({ state: 'done', result, endedAt: expect.any(Date) })
  expect(await pw.queue('others').get(id)).toEqual({ state: 'gone' })
  clock.advance(60_000)
  expect(await sums.get(id)).toEqual({ state: 'gone' })
  await connection.engine().sweep(1000)
  await worker.stop()
})

it('enqueueAndWait() resolves with what the handler returned, within ms of its ack', async () => {
  const { pw } = await openStore()
  const sums = pw.queue<number>('sums')
  sums.work((n: number) => (n === 0 ? undefined : n * 2))
  expect(await sums.enqueueAndWait(21)).toBe(42)
  expect(await sums.enqueueAndWait(0)).toBeUndefined()
  const many = Array.from({ length: 20 }, (_, n) => sums.enqueueAndWait(n + 1))
  expect(await Promise.all(many)).toEqual(many.map((_, n) => (n + 1) * 2))
})

it('enqueueAndWait() throws how the task ended', async () => {
  const { pw } = await openStore()
  const tasks = pw.queue<string>('tasks', { deliveriesMax: 1 })
  const held = latch()
  tasks
    .work(async (what: string, { signal }) => {
      if (what === 'bury') throw new Bury('no such thing')
      if (what === 'throw') throw Object.assign(new Error('broken'), { code: 'E_BROKEN' })
      if (what === 'odd') return 1n
      held.hit()
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    })
    .on('error', () => {})
  const buried = await refusalOf(tasks.enqueueAndWait('bury'))
  expect(buried).toMatchObject({ code: 'PW_TASK_DEAD', details: { reason: 'buried', id: expect.any(String) } })
  expect(buried.message).toContain('no such thing')
  const threw = await refusalOf(tasks.enqueueAndWait('throw'))
  expect(threw).toMatchObject({ code: 'PW_TASK_DEAD', details: { reason: 'spent', code: 'E_BROKEN' } })
  expect(await refusalOf(tasks.enqueueAndWait('odd'))).toMatchObject({ code: 'PW_RESULT_LOST' })
  const waited = refusalOf(tasks.enqueueAndWait('wait', { type: 'slow' }))
  await held.reached
  await tasks.cancel({ type: 'slow' })
  expect(await waited).toMatchObject({ code: 'PW_CANCELLED' })
})

it('enqueueAndWait() gives up after waitMs or by its signal, and the task goes on', async () => {
  const { pw } = await openStore()
  const tasks = pw.queue('tasks')
  const late = await refusalOf(tasks.enqueueAndWait(1, { waitMs: 5 }))
  expect(late).toMatchObject({ code: 'PW_WAIT_TIMEOUT', retryable: true })
  expect(late.message).toContain('it is ready')
  const ending = new AbortController()
  const aborted = tasks.enqueueAndWait(2, { signal: ending.signal, key: 'k' })
  ending.abort(new Error('enough'))
  await expect(aborted).rejects.toThrow('enough')
  tasks.work(() => 'done')
  await tasks.drained()
  // Nobody waits any more, but the end is kept for who asks with the id of the refusal.
  expect(await tasks.get(String(late.details.id))).toMatchObject({ state: 'done', result: 'done' })
  expect(await refusalOf(tasks.enqueueAndWait(1, { waitMs: -1 }))).toMatchObject({ code: 'PW_OPTION_INVALID' })
  expect(await refusalOf(tasks.enqueueAndWait(1, { tx: {} } as never))).toMatchObject({ code: 'PW_OPTION_UNKNOWN' })
})

it('enqueueAndWait() hears of an end in another process by looking again', async () => {
  const { pw, connection } = await openStore()
  const tasks = pw.queue('tasks')
  const other = await openStore({ url: `sqlite:${fileOf(connection.ports.engine.descriptor())}` })
  other.pw.queue('tasks').work((n: number) => n + 1)
  expect(await tasks.enqueueAndWait(1)).toBe(2)
})

it('a duplicate of a task that nobody waited for is waited for as far as its end is known', async () => {
  const { pw } = await openStore()
  const tasks = pw.queue('tasks')
  await tasks.enqueue(1, { dedupKey: 'd' })
  const waited = refusalOf(tasks.enqueueAndWait(2, { dedupKey: 'd' }))
  tasks.work(() => 'done')
  expect(await waited).toMatchObject({ code: 'PW_TASK_GONE' })
})

it('inline() calls the same handler at once, so many at a time, and throws what it throws', async () => {
  const { pw } = await openStore()
  const tasks = pw.queue<{ n: number; at?: Date }>('tasks')
  let running = 0
  let most = 0
  const gates = [latch(), latch(), latch()]
  const seen: Pick<Delivery, 'id' | 'queue' | 'number' | 'headers'>[] = []
  const direct = tasks.inline(
    async ({ n, at }, { id, queue, number, headers, signal }) => {
      seen.push({ id, queue, number, headers })
      most = Math.max(most, ++running)
      await gates[n]?.reached
      running--
      signal.throwIfAborted()
      if (n === 2) throw new Error('two is too many')
      return typeof at
    },
    { concurrency: 2 },
  )
  const calls = [direct({ n: 0, at: new Date(0) }, { headers: { a: 'b' } }), direct({ n: 1 }), direct({ n: 2 })]
  const ended = Promise.allSettled(calls)
  for (const gate of gates) gate.hit()
  expect(await ended).toMatchObject([{ value: 'string' }, { value: 'undefined' }, { reason: { message: /two/ } }])
  expect(most).toBe(2)
  expect(seen[0]).toEqual({ id: 'inline-1', queue: 'tasks', number: 1, headers: { a: 'b' } })
  expect(await tasks.stats()).toMatchObject({ enqueued: 0 })
  await expect(direct({ n: 5 }, { signal: AbortSignal.abort(new Error('off')) })).rejects.toThrow('off')
  expect(() => tasks.inline(null as never)).toThrow(/handler/)
  expect(() => tasks.inline(() => 1, { concurrency: 0 })).toThrow(/concurrency/)
  expect(await refusalOf(direct({ n: 1n } as never))).toMatchObject({ code: 'PW_PAYLOAD_NOT_JSON' })
})
