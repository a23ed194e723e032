// Rows of workers that nobody will ever hear of again go, and never one that holds something or may come back.
import { expect, it } from 'vitest'
import { engineFor } from '../../dist/engines/open.js'
import { manualClock } from '../../dist/testing/manual-clock.js'

const hour = 3_600_000

it('prunes workers that were silent for a day and hold nothing', async () => {
  const clock = manualClock()
  const engine = engineFor('sqlite::memory:', { clock })
  await engine.open()
  const names = async () => (await engine.select('worker', {}, null)).items.map(({ worker }) => worker)
  const claim = async (worker: string, leaseMs: number) => {
    await engine.enqueue(null, [{ queue: 'q', payload: '1' }])
    const want = { queue: 'q', types: null, max: 1 }
    return (await engine.claim({ worker, requestId: null, wants: [want], leaseMs })).deliveries[0]?.receipt ?? ''
  }
  // Neither joined: that is how a client over HTTP is known.
  const receipt = await claim('gone', hour)
  await engine.settle({ worker: 'gone', flush: null }, [{ receipt, do: 'ack' }])
  await claim('holding', 30 * hour)
  const info = { host: 'h', pid: 1, bootId: 'b', queues: ['q'], concurrency: 1, busy: 0, prefetched: 0, proof: null }
  await engine.worker('join', { worker: 'beating', ...info })
  expect(await names()).toEqual(['beating', 'gone', 'holding'])
  await clock.advance(23 * hour)
  await engine.worker('beat', { worker: 'beating', ...info })
  await engine.sweep(100)
  expect(await names()).toEqual(['beating', 'gone', 'holding'])
  await clock.advance(2 * hour)
  await engine.enqueue(null, [{ queue: 'q', payload: '1', delayMs: 1 }])
  await clock.advance(2)
  await engine.sweep(100)
  expect(await names()).toEqual(['beating', 'holding'])
  expect((await engine.worker('beat', { worker: 'gone', ...info })).alive).toBe(false)
  await engine.close()
})
