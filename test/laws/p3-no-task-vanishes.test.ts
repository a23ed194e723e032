// P3: no task vanishes: what a killed process leaves is whole, and every figure counts it.
import { connect } from 'piecework'
import { describe, expect, it, onTestFinished } from 'vitest'
import { passed, start, until } from './processes.js'
import { storeOf, subjects } from './stores.js'

describe.each(subjects)('P3 on $name', (subject) => {
  it('keeps the beginning of a stream whose producer was killed, without holes', async () => {
    const store = await storeOf(subject)
    const pw = await connect(store.url)
    onTestFinished(() => pw.close())
    const tasks = pw.queue('stream')
    const producer = start('producer', { url: store.url, queue: 'stream', policy: {}, bulk: 200_000 })
    await until('some of it to be there', async () => (await tasks.stats()).enqueued > 2000)
    producer.kill('SIGKILL')
    await producer.exit
    const rows = await store.tasks()
    expect(rows.length).toBeLessThan(200_000)
    expect(rows.map(({ payload }) => (JSON.parse(payload) as { n: number }).n)).toEqual(rows.map((_, n) => n))
    expect(await tasks.stats()).toMatchObject({ enqueued: rows.length, ready: rows.length })
    expect(await store.proof()).toMatchObject([{ shown: { ready: rows.length }, counted: { ready: rows.length } }])
  })

  it('runs on defaults what is delayed and what a killed worker held (case 7)', async () => {
    const store = await storeOf(subject)
    const pw = await connect(store.url)
    onTestFinished(() => pw.close())
    const tasks = pw.queue('work')
    const held = await tasks.enqueue({ do: 'die', times: 1 })
    const first = start('worker', { url: store.url, queue: 'work' })
    await first.exit
    const delayed = await tasks.enqueue({ do: 'quick' }, { delayMs: 400 })
    const second = start('worker', { url: store.url, queue: 'work' })
    const done = await second.heard('done', 2)
    expect(new Set(done.map(({ id }) => id))).toEqual(new Set([held.id, delayed.id]))
    expect(done.find(({ id }) => id === held.id)?.number).toBe(2)
    const due = store.chronicle([delayed.id]).map(({ event, from, to }) => [event, from, to])
    expect(due).toEqual([
      ['enter', null, 'scheduled'],
      ['step', 'scheduled', 'ready'],
      ['step', 'ready', 'leased'],
      ['leave', 'leased', null],
    ])
    const [enter, ready] = store.chronicle([delayed.id])
    expect((ready?.at ?? 0) - (enter?.at ?? 0)).toBeGreaterThanOrEqual(399)
  })

  it('frees the key of a killed worker with its task: the next of the key runs (case 8)', async () => {
    const store = await storeOf(subject)
    const pw = await connect(store.url)
    onTestFinished(() => pw.close())
    const tasks = pw.queue('work')
    const ids: string[] = []
    for (const work of [{ do: 'die', times: 1 }, { do: 'quick' }]) {
      ids.push((await tasks.enqueue(work, { key: 'account 7' })).id)
    }
    await start('worker', { url: store.url, queue: 'work' }).exit
    expect(await store.task(ids[1] ?? '')).toMatchObject({ state: 'waiting' })
    const heir = start('worker', { url: store.url, queue: 'work' })
    const done = await heir.heard('done', 2)
    expect(done.map(({ id, number }) => [id, number])).toEqual([
      [ids[0], 2],
      [ids[1], 1],
    ])
  })

  it('fails with the signal that killed the child process of a handler; the slot works on (case 19)', async () => {
    const store = await storeOf(subject)
    const pw = await connect(store.url)
    onTestFinished(() => pw.close())
    const tasks = pw.queue('work', { backoff: { baseMs: 3_600_000, jitter: 'none' } })
    const { id } = await tasks.enqueue({ do: 'delegate' })
    const worker = start('worker', { url: store.url, queue: 'work', options: { concurrency: 1 } })
    const [child] = await worker.heard('child')
    await passed(20)
    process.kill(child?.child ?? 0, 'SIGKILL')
    expect((await worker.heard('retry'))[0]).toMatchObject({ id, number: 1 })
    expect(await store.history(id)).toMatchObject([{ outcome: 'retry', error: expect.stringContaining('SIGKILL') }])
    await tasks.enqueue({ do: 'quick' })
    await worker.heard('done')
  })
})
