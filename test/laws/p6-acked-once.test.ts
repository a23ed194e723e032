// P6: acked at most once and never delivered after it, also when the worker dies the moment it hears of its ack.
import { connect } from 'piecework'
import { describe, expect, it, onTestFinished } from 'vitest'
import { readLogs } from './evidence.js'
import { start } from './processes.js'
import { storeOf, subjects } from './stores.js'

describe.each(subjects)('P6 on $name', (subject) => {
  it('delivers no task again whose ack was accepted', async () => {
    const store = await storeOf(subject)
    const pw = await connect(store.url)
    onTestFinished(() => pw.close())
    const policy = { leaseMs: 30_000, deliveriesMax: 100 }
    const tasks = pw.queue('work', policy)
    await tasks.enqueueMany(Array.from({ length: 400 }, () => ({ do: 'quick' })))
    const orders = { url: store.url, queue: 'work', policy, log: `${store.folder}/worker.log` }
    let kills = 0
    // Each life acks a few tasks and is cut off in the middle of the next.
    for (; kills < 3; kills++) {
      const worker = start('worker', { ...orders, options: { concurrency: 8, prefetch: kills * 8 } })
      await worker.heard('done', 1 + kills * 15)
      worker.kill('SIGKILL')
      await worker.exit
    }
    start('worker', orders)
    expect(await tasks.drained({ waitMs: 25_000 })).toEqual({ dead: 0 })

    const lines = readLogs(store.folder)
    const acked = lines.filter(({ what }) => what === 'done')
    expect(new Set(acked.map(({ id }) => id)).size).toBe(acked.length)
    const ackedAt = new Map(acked.map(({ id, at }) => [id, at]))
    for (const { id, at, what } of lines) {
      if (what === 'started') expect(at).toBeLessThan(ackedAt.get(id) ?? Number.POSITIVE_INFINITY)
    }
    const { done, deaths } = await tasks.stats()
    expect(done).toBe(400)
    expect(deaths, 'VACUOUS: no kill hit a held task').toBeGreaterThan(0)
    expect(store.chronicle().filter(({ event }) => event === 'leave')).toHaveLength(400)
  })
})
