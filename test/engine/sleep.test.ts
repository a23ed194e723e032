// A machine that slept: the time asleep is taken into the engine's clock once, whoever notices it first.
import { expect, it } from 'vitest'
import { sqliteStore } from './subject.js'

it('takes the sleep in once when two sweeps share a transaction (simulation, seed 3)', async () => {
  const store = sqliteStore({ file: false })
  const engine = store.engine()
  await engine.open()
  await engine.enqueue(null, [{ queue: 'q', payload: '1', delayMs: 100_000 }])
  const before = (await engine.select('task', {}, null)).items[0]

  store.clock.sleep(60_000)
  await Promise.all([engine.sweep(1000), engine.sweep(1000)])
  const after = (await engine.select('task', {}, null)).items[0]
  expect(after).toMatchObject({ state: 'scheduled', dueAt: before?.dueAt })
  await store.remove()
})
