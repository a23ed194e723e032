// P13: SIGTERM and stop() claim no more, give unstarted tasks back at once, and release what outlives the grace time.
import { connect } from 'piecework'
import { describe, expect, it, onTestFinished } from 'vitest'
import { passed, start, until } from './processes.js'
import { storeOf, subjects } from './stores.js'

describe.each(subjects)('P13 on $name', (subject) => {
  it('gives prefetched tasks back at once and uncounted on SIGTERM', async () => {
    const store = await storeOf(subject)
    const pw = await connect(store.url)
    onTestFinished(() => pw.close())
    const tasks = pw.queue('work', { leaseMs: 30_000 })
    await tasks.enqueueMany(Array.from({ length: 500 }, () => ({ do: 'quick' })))
    const worker = start('worker', { url: store.url, queue: 'work', policy: {}, options: { graceMs: 20_000 } })
    const done = await worker.heard('done', 500)
    const runMs = done.map((line) => line.runMs ?? Number.NaN).sort((a, b) => a - b)
    expect(runMs[250]).toBeLessThan(1)

    await tasks.enqueueMany(Array.from({ length: 30 }, () => ({ do: 'wait' })))
    await worker.heard('started', 510)
    worker.kill('SIGTERM')
    await worker.heard('stopping')
    await until('10 to be left', async () => (await tasks.stats()).leased === 10)

    const waiting = await store.tasks()
    const started = new Set(worker.lines.filter(({ act }) => act === 'wait').map(({ id }) => id))
    expect(started.size).toBe(10)
    const unstarted = waiting.filter(({ id }) => !started.has(id))
    const prefetched = unstarted.filter(({ number }) => number > 0)
    console.log(`prefetched when SIGTERM came: ${prefetched.length}`)
    expect(prefetched.length, 'VACUOUS: nothing was prefetched').toBeGreaterThan(0)
    for (const task of unstarted) expect(task).toMatchObject({ state: 'ready', spent: 0 })
    // Claimable now, while the first worker still has its grace time.
    const wants = [{ queue: 'work', types: null, max: 30 }]
    const { deliveries } = await store.engine.claim({ worker: 'heir', requestId: null, wants })
    expect(deliveries.map(({ id, spent }) => [id, spent]).sort()).toEqual(unstarted.map(({ id }) => [id, 1]).sort())

    worker.tell({ say: 'open' })
    expect(await worker.exit).toMatchObject({ code: 0 })
    expect(await tasks.stats()).toMatchObject({ done: 510, leased: 20, failures: 0, deaths: 0, expiries: 0, stale: 0 })
  })

  it('ends within its deadline; what runs on is visible at once (case 18)', async () => {
    const store = await storeOf(subject)
    const pw = await connect(store.url)
    onTestFinished(() => pw.close())
    const tasks = pw.queue('work', { leaseMs: 30_000 })
    await tasks.enqueueMany(Array.from({ length: 5 }, () => ({ do: 'hang' })))
    // A second in all, with the moment that handlers get to hear of their signal.
    const options = { concurrency: 5, graceMs: 750 }
    const worker = start('worker', { url: store.url, queue: 'work', policy: {}, options })
    await worker.heard('started', 5)
    worker.kill('SIGTERM')
    const [stopping] = await worker.heard('stopping')
    const { code, at } = await worker.exit
    expect(code).toBe(0)
    const ms = at - (stopping?.at ?? Number.NaN)
    console.log(`5 deaf handlers, a deadline of 1 s: ended after ${ms.toFixed(0)} ms`)
    expect(ms).toBeLessThan(1500)
    expect(await store.tasks()).toHaveLength(5)
    for (const task of await store.tasks()) expect(task).toMatchObject({ state: 'ready', spent: 0, deaths: 0 })
  })

  it('a second signal ends the grace time', async () => {
    const store = await storeOf(subject)
    const pw = await connect(store.url)
    onTestFinished(() => pw.close())
    const { id } = await pw.queue('work', { leaseMs: 30_000 }).enqueue({ do: 'wait' })
    const worker = start('worker', { url: store.url, queue: 'work', policy: {}, options: { graceMs: 3_600_000 } })
    await worker.heard('started')
    worker.kill('SIGTERM')
    await worker.heard('stopping')
    // Two signals in one moment are one to the kernel.
    await passed(50)
    worker.kill('SIGTERM')
    expect(await worker.exit).toMatchObject({ code: 0 })
    expect(await store.task(id)).toMatchObject({ state: 'ready', spent: 0, number: 1 })
  })
})
