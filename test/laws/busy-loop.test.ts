// A blocked event loop loses no lease: its thread extends what it holds, whatever the handlers do (case 4).
import { connect } from 'piecework'
import { describe, expect, it, onTestFinished } from 'vitest'
import { start } from './processes.js'
import { storeOf, subjects } from './stores.js'

describe.each(subjects)('a blocked loop on $name', (subject) => {
  it('keeps every lease through a busy loop of three lease lengths, and what it did is accepted', async () => {
    const store = await storeOf(subject)
    const pw = await connect(store.url)
    onTestFinished(() => pw.close())
    const policy = { leaseMs: 800 }
    const tasks = pw.queue('work', policy)
    const blocked = start('worker', { url: store.url, queue: 'work', policy, options: { concurrency: 2 } })
    await blocked.heard('ready')
    // One that waits while its neighbour blocks the loop for both.
    const waits = await tasks.enqueue({ do: 'wait' })
    await blocked.heard('started')
    const spins = await tasks.enqueue({ do: 'busy', ms: 2500 })
    await blocked.heard('started', 2)
    // Somebody who would take whatever comes back.
    const thief = start('worker', { url: store.url, queue: 'work', policy })
    await thief.heard('ready')
    expect((await blocked.heard('done'))[0]).toMatchObject({ id: spins.id, number: 1 })
    expect(await store.task(waits.id)).toMatchObject({ state: 'leased', number: 1 })
    blocked.tell({ say: 'open' })
    expect((await blocked.heard('done', 2))[1]).toMatchObject({ id: waits.id, number: 1 })

    const figures = await tasks.stats()
    expect(figures).toMatchObject({ done: 2, deliveries: 2, expiries: 0, deaths: 0, stale: 0 })
    expect(thief.lines.filter(({ what }) => what === 'started')).toEqual([])
    expect(thief.ended).toBeNull()
    const [started, over] = [
      blocked.lines.find(({ id }) => id === spins.id),
      blocked.lines.findLast(({ what }) => what === 'effect'),
    ]
    expect((over?.at ?? 0) - (started?.at ?? 0)).toBeGreaterThan(2500)
  })
})
