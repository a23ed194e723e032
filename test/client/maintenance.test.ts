// The sweeps of a connection: when they come, that failures are said once and never thrown, and that they end.
import { describe, expect, it } from 'vitest'
import type { Clock } from '../../dist/ground/clock.js'
import { systemClock } from '../../dist/ground/clock.js'
import { PieceworkError } from '../../dist/ground/errors.js'
import { Maintenance } from '../../dist/queue/maintenance.js'
import { sweepEveryMs } from '../../dist/task/limits.js'
import { openStore, refusalOf, warningsOf } from './store.js'

/** A clock whose timers fire only when the test says so; `pauses` are those that wait. */
function heldClock() {
  let nowMs = 0
  let timers: { atMs: number; fn: () => void }[] = []
  const clock: Clock = {
    ...systemClock,
    monotonicMs: () => nowMs,
    after(ms, fn) {
      const timer = { atMs: nowMs + ms, fn }
      timers.push(timer)
      const cancel = () => {
        timers = timers.filter((other) => other !== timer)
      }
      return { cancel }
    },
  }
  return {
    clock,
    pauses: () => timers.map((timer) => timer.atMs - nowMs),
    /** Fires the next timer at its time. */
    fire() {
      const next = timers.sort((a, b) => a.atMs - b.atMs).shift()
      if (!next) throw new Error('no timer waits')
      nowMs = next.atMs
      next.fn()
    },
  }
}

/** Maintenance over a real store in memory; each sweep's answer can be changed, and awaited. */
async function underTest(random: number) {
  const { connection } = await openStore({ url: 'sqlite::memory:' })
  const { engine } = connection.ports
  const real = engine.sweep.bind(engine)
  const held = heldClock()
  const reports: unknown[] = []
  let sweeps = 0
  let answer = real
  engine.sweep = (max) => {
    sweeps++
    return answer(max)
  }
  const maintenance = new Maintenance(
    engine,
    held.clock,
    () => random,
    (error) => reports.push(error),
  )
  return {
    engine,
    maintenance,
    reports,
    held,
    sweeps: () => sweeps,
    answers: (sweep: typeof answer | null) => {
      answer = sweep ?? real
    },
    /** Fires the timer and waits until the sweep has planned the next one. */
    async sweep() {
      held.fire()
      while (held.pauses().length === 0) await new Promise((resolve) => setImmediate(resolve))
    },
  }
}

describe('maintenance', () => {
  it('waits until the connection is used, then sweeps at most every sweepEveryMs, jittered to earlier', async () => {
    for (const random of [0, 0.999]) {
      const t = await underTest(random)
      expect(t.held.pauses()).toEqual([])
      t.maintenance.start()
      t.maintenance.start()
      expect(t.held.pauses()).toHaveLength(1)
      expect(t.held.pauses()[0]).toBeLessThanOrEqual(sweepEveryMs / 4)
      await t.sweep()
      const [pause = 0] = t.held.pauses()
      expect(pause).toBeLessThanOrEqual(sweepEveryMs)
      expect(pause).toBeGreaterThanOrEqual(sweepEveryMs * 0.7)
      expect(t.sweeps()).toBe(1)
    }
  })

  it('comes earlier when something is due, and at once when the last sweep did not get through', async () => {
    const t = await underTest(0.5)
    t.maintenance.start()
    const none = { expired: 0, died: 0, matured: 0, promoted: 0, folded: 0, nextMs: null }
    t.answers(async () => ({ ...none, nextMs: 17 }))
    await t.sweep()
    expect(t.held.pauses()).toEqual([17])
    t.answers(async () => ({ ...none, matured: 900, expired: 100, nextMs: 60_000 }))
    await t.sweep()
    expect(t.held.pauses()).toEqual([2])
    t.answers(async () => ({ ...none, nextMs: 0 }))
    await t.sweep()
    expect(t.held.pauses()).toEqual([2])
    t.answers(null)
    await t.sweep()
    t.maintenance.expect(30)
    expect(t.held.pauses()).toEqual([30])
    t.maintenance.expect(50)
    expect(t.held.pauses()).toEqual([30])
  })

  it('reports the first of a row of failures, goes on, and reports again after it went well', async () => {
    const t = await underTest(0.5)
    t.maintenance.start()
    const broken = async () => {
      throw new PieceworkError('PW_BUSY', 'locked')
    }
    t.answers(broken)
    await t.sweep()
    await t.sweep()
    expect(t.reports).toHaveLength(1)
    t.answers(null)
    await t.sweep()
    t.answers(broken)
    await t.sweep()
    expect(t.reports).toMatchObject([{ code: 'PW_BUSY' }, { code: 'PW_BUSY' }])
  })

  it('ends with stop(), which waits for the sweep that runs', async () => {
    const t = await underTest(0.5)
    t.maintenance.start()
    let finish = () => {}
    const none = { expired: 0, died: 0, matured: 0, promoted: 0, folded: 0, nextMs: null }
    t.answers(
      () =>
        new Promise((resolve) => {
          finish = () => resolve(none)
        }),
    )
    t.held.fire()
    let stopped = false
    const stopping = t.maintenance.stop().then(() => {
      stopped = true
    })
    await new Promise((resolve) => setImmediate(resolve))
    expect(stopped).toBe(false)
    finish()
    await stopping
    expect(t.held.pauses()).toEqual([])
    t.maintenance.start()
    t.maintenance.expect(1)
    expect(t.held.pauses()).toEqual([])
  })

  it('a failing store is told as a process warning, and the program lives on', async () => {
    const { pw, connection } = await openStore()
    const { engine } = connection.ports
    const real = engine.sweep.bind(engine)
    let failed = () => {}
    const failure = new Promise<void>((resolve) => {
      failed = resolve
    })
    engine.sweep = async () => {
      failed()
      throw new PieceworkError('PW_STORE_FAILED', 'the disk is gone')
    }
    const warnings = await warningsOf(async () => {
      await pw.queue('mail').enqueue(1)
      await failure
      await refusalOf(pw.queue('mail').drained({ waitMs: 5 }))
    })
    engine.sweep = real
    expect(warnings.map(({ code }) => code)).toEqual(['PW_STORE_FAILED'])
    expect(await pw.queue('mail').stats()).toMatchObject({ ready: 1 })
  })
})
