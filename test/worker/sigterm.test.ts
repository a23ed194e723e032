// SIGTERM to a real process with tasks running: it ends in time, and what it could not finish is there for others.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { systemClock } from '../../dist/ground/clock.js'
import { openShop, queue } from './shop.js'

const program = fileURLToPath(new URL('./container.js', import.meta.url))

it('five running, a deadline of 1 s: gone within 1.5 s, the unfinished are there at once (case 18)', async () => {
  const shop = await openShop({ where: 'file', policy: { leaseMs: 600_000 } })
  const ids = await shop.enqueue(Array.from({ length: 7 }, (_, n) => n))
  const child = spawn(process.execPath, [program, shop.url, queue, '700'], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(child.stdout, 'data')
  expect(await shop.count('leased')).toBe(5)
  const at = systemClock.monotonicMs()
  child.kill('SIGTERM')
  const [code, signal] = await once(child, 'exit')
  const tookMs = systemClock.monotonicMs() - at
  expect([code, signal]).toEqual([0, null])
  expect(tookMs).toBeGreaterThan(650)
  expect(tookMs).toBeLessThan(1500)
  const wants = [{ queue, types: null, max: 10 }]
  const { deliveries } = await shop.engine.claim({ worker: 'next', requestId: null, wants })
  expect(deliveries.map(({ id }) => id)).toEqual(ids)
  expect(deliveries.map(({ spent }) => spent)).toEqual([1, 1, 1, 1, 1, 1, 1])
  expect(await shop.count('expiries')).toBe(0)
})

it('a second signal ends the grace time', async () => {
  const shop = await openShop({ where: 'file' })
  await shop.enqueue([1, 2, 3, 4, 5])
  const child = spawn(process.execPath, [program, shop.url, queue, '3600000'], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(child.stdout, 'data')
  child.kill('SIGTERM')
  await once(child.stdout, 'data')
  expect(child.exitCode).toBeNull()
  child.kill('SIGTERM')
  expect(await once(child, 'exit')).toEqual([0, null])
  expect(await shop.count('ready')).toBe(5)
})
