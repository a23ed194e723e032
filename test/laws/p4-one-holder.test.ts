// P4: never two deliveries hold one task, however many processes claim at once (case 2).
import { connect } from 'piecework'
import { describe, expect, it, onTestFinished } from 'vitest'
import { readLogs } from './evidence.js'
import { start } from './processes.js'
import { storeOf, subjects } from './stores.js'

describe.each(subjects)('P4 on $name', (subject) => {
  it('gives 1000 tasks to two processes, each task once', async () => {
    const store = await storeOf(subject)
    const pw = await connect(store.url)
    onTestFinished(() => pw.close())
    const tasks = pw.queue('work')
    await tasks.pause()
    await tasks.enqueueMany(Array.from({ length: 1000 }, () => ({ do: 'quick' })))
    const orders = { url: store.url, queue: 'work', policy: {}, talks: ['ready'] }
    const processes = ['a', 'b'].map((name) => start('worker', { ...orders, log: `${store.folder}/${name}.log` }))
    await Promise.all(processes.map((process) => process.heard('ready')))
    await tasks.resume()
    expect(await tasks.drained({ waitMs: 25_000 })).toEqual({ dead: 0 })

    const started = readLogs(store.folder).filter(({ what }) => what === 'started')
    expect(new Set(started.map(({ id }) => id)).size).toBe(1000)
    expect(started).toHaveLength(1000)
    expect(new Set(started.map(({ pid }) => pid)).size).toBe(2)
    for (const { from, to, spent } of store.chronicle())
      if (to === 'leased') expect([from, spent]).toEqual(['ready', 1])
    // What a process had claimed ahead and gave back unstarted was nobody's run.
    const { done, deliveries, releases, stale } = await tasks.stats()
    expect({ done, runs: deliveries - releases, stale }).toEqual({ done: 1000, runs: 1000, stale: 0 })
  })

  it('keeps what was accepted while another program rolls back, and what it commits', async () => {
    const store = await storeOf(subject)
    const pw = await connect(store.url)
    onTestFinished(() => pw.close())
    const tasks = pw.queue('work')
    for (const rollback of [true, false]) {
      const holder = start('holder', { url: store.url, file: store.file, rollback })
      await holder.heard('ready')
      await tasks.enqueue({ do: 'quick' })
      holder.tell({ say: 'hold' })
      await holder.heard('held')
      const accepted = Array.from({ length: 10 }, () => tasks.enqueue({ do: 'quick' }))
      holder.tell({ say: 'let go' })
      await holder.heard('released')
      await Promise.all(accepted)
    }
    expect(await tasks.stats()).toMatchObject({ enqueued: 22, ready: 22 })
    expect(await store.tasks()).toHaveLength(22)
  })
})
