// P5: only the newest receipt acts: a process that slept through its lease is refused, whatever it says (case 9).
import { connect } from 'piecework'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Verdict } from '../../dist/engine/contract.js'
import { start, until } from './processes.js'
import { freeze, storeOf, subjects } from './stores.js'

const policy = { leaseMs: 500, deliveriesMax: 50, backoff: { baseMs: 0, jitter: 'none' } } as const

describe.each(subjects)('P5 on $name', (subject) => {
  it('refuses the ack of a process that woke up late; the newer delivery holds, its retry is honoured', async () => {
    const store = await storeOf(subject)
    const pw = await connect(store.url)
    onTestFinished(() => pw.close())
    const tasks = pw.queue('work', policy)
    const orders = { url: store.url, queue: 'work', policy, options: { concurrency: 1 } }
    const late = start('worker', orders)
    const { id } = await tasks.enqueue({ do: 'doubt' })
    await late.heard('started')
    await freeze(late, store)
    const newer = start('worker', orders)
    const { number = 0 } = (await newer.heard('started'))[0] ?? {}
    expect(number).toBeGreaterThan(1)

    late.kill('SIGCONT')
    // Its handler ends well, and knows nothing of the time that has passed.
    late.tell({ say: 'open' })
    expect((await late.heard('stale'))[0]).toMatchObject({ id, number: 1 })
    expect(await store.task(id)).toMatchObject({ state: 'leased', number, spent: number })
    // The newer one fails, and then somebody succeeds.
    newer.tell({ say: 'open' })
    expect((await newer.heard('retry'))[0]).toMatchObject({ id, number })
    await tasks.drained()
    const stats = await tasks.stats()
    expect(stats).toMatchObject({ done: 1, dead: 0, failures: 1, expiries: number - 1, deaths: 0 })
    expect(stats.stale).toBeGreaterThan(0)
    const acks = await until('the ack to be told', () => {
      const told = [late, newer].flatMap(({ lines }) => lines.filter(({ what }) => what === 'done'))
      return told.length > 0 && told
    })
    expect(acks.map((ack) => ack.number)).toEqual([number + 1])
    expect(store.chronicle([id]).at(-1)).toMatchObject({ event: 'leave', number: number + 1 })
  })

  const late: ((receipt: string) => Verdict)[] = [
    (receipt) => ({ receipt, do: 'ack' }),
    (receipt) => ({ receipt, do: 'retry', error: { code: null, text: 'late' } }),
    (receipt) => ({ receipt, do: 'release', by: 'handler' }),
    (receipt) => ({ receipt, do: 'release', by: 'counted' }),
    (receipt) => ({ receipt, do: 'bury', error: { code: null, text: 'late' } }),
  ]

  it('answers stale to every late call of another process, counts it and changes nothing', async () => {
    const store = await storeOf(subject)
    const { engine } = store
    await engine.configure('queue', 'work', { code: policy }, 'law')
    const payload = JSON.stringify({ do: 'hang' })
    const tasks = late.map(() => ({ queue: 'work', payload }))
    await engine.enqueue(null, tasks)
    const wants = [{ queue: 'work', types: null, max: late.length }]
    const { deliveries } = await engine.claim({ worker: 'late', requestId: null, leaseMs: 100, wants })
    const receipts = deliveries.map(({ receipt }) => receipt)
    const newer = start('worker', { url: store.url, queue: 'work', policy })
    await newer.heard('started', late.length)

    const before = store.chronicle()
    const stale = late.map(() => 'stale')
    const verdicts = receipts.map((receipt, i) => late[i]?.(receipt) as Verdict)
    expect(await engine.settle({ worker: 'late', flush: null }, verdicts)).toEqual(stale)
    const asks = receipts.map((receipt) => ({ receipt, leaseMs: 60_000 }))
    expect(await engine.extend('late', asks)).toEqual(stale)
    const progress = asks.map((ask) => ({ ...ask, progress: '"late"' }))
    expect(await engine.extend('late', progress)).toEqual(stale)

    expect(store.chronicle()).toEqual(before)
    for (const { id } of deliveries) {
      expect(await store.task(id)).toMatchObject({ state: 'leased', number: 2, progress: null, spent: 2 })
    }
    const { types } = await engine.measure(['work'], false)
    expect(types[0]).toMatchObject({ stale: 3 * late.length, failures: 0, releases: 0, done: 0 })
    newer.tell({ say: 'open' })
    await newer.heard('done', late.length)
  })
})
