// When the disk refuses to sync, is slow about it, or the machine starts again: what was accepted, and which numbers.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { manualClock, seededRandom } from 'piecework/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Engine } from '../../dist/engine/contract.js'
import { engineFor, type OpenOptions } from '../../dist/engines/open.js'
import { syncer } from '../../dist/engines/sqlite/sync.js'
import { sqliteStore } from './subject.js'

/** A disk whose syncs a test lets through one by one, or fails. */
function disk() {
  const waiting: ((error: Error | null) => void)[] = []
  const clock = manualClock()
  let now: Error | null = null
  const port = {
    now() {
      if (now) throw now
    },
    close() {},
  }
  return {
    clock,
    syncer: syncer(clock, (done) => waiting.push(done), port),
    waiting,
    /** Ends the sync that runs. */
    async end(error: Error | null = null): Promise<void> {
      waiting.shift()?.(error)
      await clock.settle()
    },
    failNow: (error: Error) => {
      now = error
    },
  }
}

async function openOn(options: OpenOptions): Promise<{ engine: Engine; file: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'piecework-sync-'))
  const file = join(folder, 'work.db')
  const engine = engineFor(`sqlite:${file}`, { random: seededRandom(1), ...options })
  await engine.open()
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return { engine, file }
}

const task = { queue: 'q', payload: '1' }
const wants = [{ queue: 'q', types: null, max: 1 }]
const eio = new Error('EIO: i/o error, fdatasync')

/** Which of these have answered so far. */
function watch(calls: Record<string, Promise<unknown>>): { answered: string[]; refused: [string, unknown][] } {
  const seen = { answered: [] as string[], refused: [] as [string, unknown][] }
  for (const [name, call] of Object.entries(calls)) {
    call.then(
      () => seen.answered.push(name),
      (error) => seen.refused.push([name, error.code]),
    )
  }
  return seen
}

describe('an answer', () => {
  it('waits for a sync that started after its commit, which it shares', async () => {
    const { clock, syncer, waiting, end } = disk()
    const { engine } = await openOn({ clock, syncer })
    const seen = watch({ a: engine.enqueue(null, [task]), b: engine.enqueue(null, [task]) })
    await clock.settle()
    expect([seen.answered, waiting.length]).toEqual([[], 1])
    const late = watch({ c: engine.enqueue(null, [task]) })
    await clock.settle()
    await end()
    // The first sync began before c was committed: c needs the next one.
    expect([seen.answered, late.answered, waiting.length]).toEqual([['a', 'b'], [], 1])
    await end()
    expect(late.answered).toEqual(['c'])
    const closing = engine.close()
    await clock.settle()
    await end()
    await closing
  })

  it('of a first claim does not wait, that of a later one does', async () => {
    const { clock, syncer, waiting, end } = disk()
    const { engine } = await openOn({ clock, syncer })
    const added = engine.enqueue(null, [task])
    await clock.settle()
    await end()
    await added
    const first = (await engine.claim({ worker: 'w', requestId: 'one', wants })).deliveries[0]
    expect(waiting).toEqual([])
    // Its claim is synced by and by, without anybody waiting.
    await clock.advance(50)
    expect(waiting).toHaveLength(1)
    await end()
    const receipt = first?.receipt ?? ''
    const settled = engine.settle({ worker: 'w', flush: null }, [{ receipt, do: 'release', by: 'stop' }])
    await clock.settle()
    await end()
    expect(await settled).toEqual(['ready'])
    const seen = watch({ second: engine.claim({ worker: 'w', requestId: 'two', wants }) })
    await clock.settle()
    expect(seen.answered).toEqual([])
    await end()
    expect(seen.answered).toEqual(['second'])
    const closing = engine.close()
    await clock.settle()
    await end()
    await closing
  })
})

describe('a sync that fails', () => {
  it('is final: nothing is reported as accepted, and nothing is written through this handle any more', async () => {
    const { clock, syncer, waiting, end } = disk()
    const { engine, file } = await openOn({ clock, syncer })
    const accepted = engine.enqueue(null, [task])
    await clock.settle()
    await end()
    const [{ id } = { id: '' }] = await accepted
    const seen = watch({ a: engine.enqueue(null, [task]), b: engine.enqueue(null, [task]) })
    await clock.settle()
    const late = watch({ c: engine.enqueue(null, [task]) })
    await clock.settle()
    await end(eio)
    expect(seen).toEqual({
      answered: [],
      refused: [
        ['a', 'PW_SYNC_FAILED'],
        ['b', 'PW_SYNC_FAILED'],
      ],
    })
    expect(late).toEqual({ answered: [], refused: [['c', 'PW_SYNC_FAILED']] })
    // A sync after a failed one would tell nothing: the disk may have dropped what it could not write.
    expect(waiting).toEqual([])
    const after = watch({
      enqueue: engine.enqueue(null, [task]),
      claim: engine.claim({ worker: 'w', requestId: 'r', wants }),
      settle: engine.settle({ worker: 'w', flush: null }, [{ receipt: '1.1.1.1', do: 'ack' }]),
      extend: engine.extend('w', [{ receipt: '1.1.1.1', leaseMs: 1000 }]),
      amend: engine.amend({}, { do: 'cancel' }, 'tester', { max: 1, dryRun: false }),
      configure: engine.configure('queue', 'q', { paused: true }, 'tester'),
      measure: engine.measure(null, true),
    })
    await clock.settle()
    expect(after.answered).toEqual([])
    expect(new Set(after.refused.map(([, code]) => code))).toEqual(new Set(['PW_SYNC_FAILED']))
    expect(after.refused).toHaveLength(7)
    await engine.close()

    const next = engineFor(`sqlite:${file}`)
    await next.open()
    onTestFinished(() => next.close())
    const { items } = await next.select('task', {}, null)
    expect(items[0]).toMatchObject({ id, state: 'ready' })
  })

  it('while numbers are reserved refuses the calls that would use them', async () => {
    const { clock, syncer, end, failNow } = disk()
    const { engine } = await openOn({ clock, syncer })
    const first = engine.enqueue(null, [task])
    await clock.settle()
    await end()
    await first
    failNow(eio)
    // Beyond half of the reservation of two minutes it is renewed, before a number gets out.
    await clock.advance(90_000)
    await expect(engine.enqueue(null, [task])).rejects.toMatchObject({ code: 'PW_SYNC_FAILED' })
    await expect(engine.enqueue(null, [task])).rejects.toMatchObject({ code: 'PW_SYNC_FAILED' })
    await engine.close()
  })
})

describe('a machine that starts again', () => {
  it('and whose wall clock is set back repeats no id or fence, and knows its former workers dead', async () => {
    const store = sqliteStore({ file: true })
    onTestFinished(() => store.remove())
    const ids: number[] = []
    const fences: number[] = []
    for (let boot = 0; boot < 4; boot++) {
      const engine = store.engine()
      await engine.open()
      const bootId = store.clock.bootId
      const info = { worker: `w${boot}`, host: 'here', pid: 1, bootId, queues: ['q'], concurrency: 1 }
      await engine.worker('join', { ...info, busy: 0, prefetched: 0, proof: null })
      expect((await engine.sweep(100)).died).toBe(boot === 0 ? 0 : 1)
      const tasks = boot === 0 ? [{ ...task, type: 'held' }, task] : [task]
      ids.push(...(await engine.enqueue(null, tasks)).map(({ id }) => Number(id)))
      const held = [{ queue: 'q', types: ['held'], max: 1 }]
      const { deliveries } = await engine.claim({ worker: `w${boot}`, requestId: null, wants: held, leaseMs: 9e6 })
      expect(deliveries).toMatchObject([{ id: String(ids[0]), number: boot + 1, deaths: boot }])
      fences.push(deliveries[0]?.fence ?? 0)
      await engine.close()
      store.clock.reboot()
      store.jumpWall(-86_400_000)
    }
    for (const numbers of [ids, fences]) {
      expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b))
      expect(numbers.every((n) => n < 2 ** 53)).toBe(true)
    }
  })
})
