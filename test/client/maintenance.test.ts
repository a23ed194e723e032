// The sweeps of a connection: when they come, that failures are said once and never thrown, and that they end.
import { describe, expect, it } from 'vitest'
import type { Swept } from '../../dist/engine/contract.js'
import { PieceworkError } from '../../dist/ground/errors.js'
import { Maintenance } from '../../dist/queue/maintenance.js'
import { sweepEveryMs } from '../../dist/task/limits.js'
import { manualClock } from '../../dist/testing/manual-clock.js'
import { latch, openStore, refusalOf, warningsOf } from './store.js'

const nothing: Swept = { expired: 0, died: 0, matured: 0, promoted: 0, folded: 0, nextMs: null }

/** Maintenance over a real store in memory, on a clock that stands still; what a sweep answers can be changed. */
async function underTest(random: number) {
  const { connection } = await openStore({ url: 'sqlite::memory:' })
  // Its own sweeps would be counted among ours.
  await connection.maintenance.stop()
  const { engine } = connection.ports
  const real = engine.sweep.bind(engine)
  const clock = manualClock()
  const reports: unknown[] = []
  const report = (error: unknown) => reports.push(error)
  const maintenance = new Maintenance(engine, clock, () => random, report)
  const t = { clock, reports, maintenance, real, sweeps: 0, answer: real }
  engine.sweep = (max) => {
    t.sweeps++
    return t.answer(max)
  }
  return t
}

/** Expects the next sweep after exactly `ms`. */
async function expectSweepIn(t: Awaited<ReturnType<typeof underTest>>, ms: number): Promise<void> {
  const before = t.sweeps
  await t.clock.advance(ms - 1)
  expect(t.sweeps).toBe(before)
  await t.clock.advance(1)
  expect(t.sweeps).toBe(before + 1)
}

describe('maintenance', () => {
  it('waits for its start, then sweeps at most every sweepEveryMs, jittered to earlier', async () => {
    for (const [random, firstMs, everyMs] of [
      [0, 2, 0.75 * sweepEveryMs],
      [0.96, 0.24 * sweepEveryMs, 0.99 * sweepEveryMs],
    ] as const) {
      const t = await underTest(random)
      expect(t.clock.pending).toBe(0)
      t.maintenance.start()
      t.maintenance.start()
      await expectSweepIn(t, firstMs)
      await expectSweepIn(t, everyMs)
      await expectSweepIn(t, everyMs)
      expect(t.clock.pending).toBe(1)
    }
  })

  it('comes earlier when something is due, and at once when the last sweep did not get through', async () => {
    const t = await underTest(0)
    t.maintenance.start()
    t.answer = async () => ({ ...nothing, nextMs: 17 })
    await expectSweepIn(t, 2)
    t.answer = async () => ({ ...nothing, matured: 900, expired: 100, nextMs: 60_000 })
    await expectSweepIn(t, 17)
    t.answer = async () => ({ ...nothing, nextMs: 0 })
    await expectSweepIn(t, 2)
    t.answer = t.real
    await expectSweepIn(t, 2)
    t.maintenance.expect(30)
    t.maintenance.expect(50)
    await expectSweepIn(t, 30)
  })

  it('reports the first of a row of failures, goes on, and reports again after it went well', async () => {
    const t = await underTest(0)
    t.maintenance.start()
    const broken = async () => {
      throw new PieceworkError('PW_BUSY', 'locked')
    }
    t.answer = broken
    await t.clock.advance(sweepEveryMs * 2)
    expect(t.sweeps).toBeGreaterThan(1)
    expect(t.reports).toHaveLength(1)
    t.answer = t.real
    await t.clock.advance(sweepEveryMs)
    t.answer = broken
    await t.clock.advance(sweepEveryMs)
    expect(t.reports).toMatchObject([{ code: 'PW_BUSY' }, { code: 'PW_BUSY' }])
  })

  it('ends with stop(), which waits for the sweep that runs', async () => {
    const t = await underTest(0)
    let finish = () => {}
    t.answer = () =>
      new Promise((resolve) => {
        finish = () => resolve(nothing)
      })
    t.maintenance.start()
    await t.clock.advance(2)
    let stopped = false
    const stopping = t.maintenance.stop().then(() => {
      stopped = true
    })
    await t.clock.settle()
    expect(stopped).toBe(false)
    finish()
    await stopping
    t.maintenance.start()
    t.maintenance.expect(1)
    expect(t.clock.pending).toBe(0)
  })

  it('a failing store is told as a process warning, and the program lives on', async () => {
    const { pw, connection } = await openStore()
    const { engine } = connection.ports
    const real = engine.sweep.bind(engine)
    const failed = latch()
    engine.sweep = async () => {
      failed.hit()
      throw new PieceworkError('PW_STORE_FAILED', 'the disk is gone')
    }
    const warnings = await warningsOf(async () => {
      await pw.queue('mail').enqueue(1)
      await failed.reached
      await refusalOf(pw.queue('mail').drained({ waitMs: 5 }))
    })
    engine.sweep = real
    expect(warnings.map(({ code }) => code)).toEqual(['PW_STORE_FAILED'])
    expect(await pw.queue('mail').stats()).toMatchObject({ ready: 1 })
  })
})
