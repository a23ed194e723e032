// P1, the part a SIGKILL can test: whatever a process was told is accepted is there when the process is gone.
import { connect } from 'piecework'
import { describe, expect, it, onTestFinished } from 'vitest'
import { readLogs } from './evidence.js'
import { start } from './processes.js'
import { storeOf, subjects } from './stores.js'

const kills = 3

describe.each(subjects)('P1 on $name', (subject) => {
  it('keeps each accepted enqueue and each accepted ack', async () => {
    const store = await storeOf(subject)
    const pw = await connect(store.url)
    onTestFinished(() => pw.close())
    const tasks = pw.queue('work', { deliveriesMax: 50 })
    const common = { url: store.url, queue: 'work', policy: { deliveriesMax: 50 } }
    const rounds = Array.from({ length: 400 }, (_, n) =>
      Array.from({ length: 5 }, (_, m) => ({ payload: { do: 'quick' }, options: { dedupKey: `${n}-${m}` } })),
    )
    for (let kill = 0; kill < kills; kill++) {
      const log = (name: string) => `${store.folder}/${name}-${kill}.log`
      const producer = start('producer', { ...common, rounds, log: log('producer') })
      const worker = start('worker', { ...common, log: log('worker') })
      await Promise.all([producer.heard('accepted', 20 + kill * 30), worker.heard('done', 10 + kill * 20)])
      producer.kill('SIGKILL')
      worker.kill('SIGKILL')
      await Promise.all([producer.exit, worker.exit])
    }
    const lines = readLogs(store.folder)
    const accepted = new Set(lines.filter(({ what }) => what === 'accepted').map(({ id }) => id))
    const acked = new Set(lines.filter(({ what }) => what === 'done').map(({ id }) => id))
    const there = new Set((await store.tasks()).map(({ id }) => id))
    const gone = new Set(
      store
        .chronicle()
        .filter(({ event }) => event === 'leave')
        .map(({ task }) => task),
    )
    expect(accepted.size).toBeGreaterThan(80)
    expect(acked.size).toBeGreaterThan(60)
    expect([...accepted].filter((id) => !there.has(id ?? '') && !gone.has(id ?? ''))).toEqual([])
    expect([...acked].filter((id) => there.has(id ?? ''))).toEqual([])
    // Nothing went but by an ack that a worker had sent.
    expect((await tasks.stats()).done).toBe(gone.size)
  })
})
