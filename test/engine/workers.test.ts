// Rows of workers that nobody will ever hear of again go, and never one that holds something or may come back.
import { existsSync, readdirSync } from 'node:fs'
import { expect, it, onTestFinished } from 'vitest'
import { engineFor } from '../../dist/engines/open.js'
import { manualClock } from '../../dist/testing/manual-clock.js'
import { newUrl } from '../client/store.js'

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

it('leaves no lock file behind where workers were stopped and nobody called close()', async () => {
  const url = newUrl()
  const folder = `${url.slice('sqlite:'.length)}-alive`
  const engine = engineFor(url)
  await engine.open()
  onTestFinished(() => engine.close())
  const bootId = (await import('../../dist/ground/clock.js')).systemClock.bootId
  const info = (worker: string) => ({
    ...{ worker, host: 'h', pid: 1, bootId, queues: ['q'], concurrency: 1, busy: 0, prefetched: 0, proof: null },
  })
  const locks = () => (existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.lock')) : [])
  await engine.worker('join', info('one'))
  await engine.worker('join', info('two'))
  expect(locks()).toHaveLength(1)
  await engine.worker('leave', info('one'))
  expect(locks()).toHaveLength(1)
  // Who comes while the last one goes keeps the lock that it was promised.
  await Promise.all([engine.worker('leave', info('two')), engine.worker('join', info('three'))])
  const [row] = (await engine.select('worker', { name: 'three' }, null)).items
  expect(row).toMatchObject({ worker: 'three' })
  expect(locks()).toHaveLength(1)
  await engine.worker('leave', info('three'))
  expect(locks()).toEqual([])
  await engine.worker('join', info('four'))
  expect(locks()).toHaveLength(1)
})
