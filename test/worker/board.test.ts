// The shared board between two real threads: no entry is ever seen half written, and each delivery has one end.
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { describe, expect, it } from 'vitest'
import { Board, BoardReader } from '../../dist/worker/board.js'
import { phases } from '../../dist/worker/pulse.js'

const receipt = '1764537723123456.1764537723123499.281474976710655.12'
const { unstarted, running } = phases
const lease = (of: string) => ({ receipt: of, leaseMs: 30_000, endsAt: 1000.5, overdueAt: Infinity, phase: unstarted })

describe('the board', () => {
  it('shows what is held, and what was changed', () => {
    const board = new Board(2)
    const reader = new BoardReader(board.memory)
    expect(reader.entries()).toEqual([])
    const slot = board.hold(lease(receipt))
    expect(reader.entries()).toMatchObject([{ slot, ...lease(receipt) }])
    const later = { ...lease(receipt), endsAt: 2000.5, phase: running, overdueAt: 77 }
    expect(board.change(slot, later)).toBe(true)
    expect(reader.entries()).toMatchObject([{ slot, ...later }])
    expect(board.clear(slot)).toBe(true)
    expect(reader.entries()).toEqual([])
  })

  it.each([
    ['longer than a slot', '1'.repeat(96)],
    ['not ASCII', '12.34.é'],
  ])('refuses a receipt that is %s, and what comes when it is full', (_name, strange) => {
    const board = new Board(1)
    expect(board.hold(lease(strange))).toBe(-1)
    expect(board.hold(lease(receipt))).toBe(0)
    expect(board.hold(lease(receipt))).toBe(-1)
    board.clear(0)
    expect(board.hold(lease('1'.repeat(95)))).toBe(0)
    expect(new BoardReader(board.memory).entries()[0]!.receipt).toBe('1'.repeat(95))
  })

  it('gives a delivery one end: the first of the two threads has it', () => {
    const board = new Board(4)
    const reader = new BoardReader(board.memory)
    const slot = board.hold(lease(receipt))
    const seen = reader.entries()[0]!
    expect(reader.take(seen)).toBe(true)
    expect(reader.take(seen)).toBe(false)
    expect(reader.entries()).toEqual([])
    expect(board.clear(slot)).toBe(false)

    const again = board.hold(lease(receipt))
    expect(reader.take(seen)).toBe(false)
    const late = reader.entries()[0]!
    expect(board.clear(again)).toBe(true)
    expect(reader.take(late)).toBe(false)

    const third = board.hold(lease(receipt))
    reader.take(reader.entries()[0]!)
    expect(board.change(third, { ...lease(receipt), phase: running })).toBe(false)
    expect(reader.entries()).toEqual([])
  })

  it('two threads at full speed: nothing torn, and both count the same deliveries as taken', async () => {
    const board = new Board(8)
    const stop = new Int32Array(new SharedArrayBuffer(4))
    const workerData = { memory: board.memory, stop }
    const thread = new Worker(new URL('./board-reader.js', import.meta.url), { workerData })
    await once(thread, 'message')
    const answer = once(thread, 'message') as Promise<[Record<'read' | 'changed' | 'torn' | 'taken', number>]>
    const slots: number[] = []
    let takenHere = 0
    const end = () => {
      if (!board.clear(slots.shift()!)) takenHere++
    }
    for (let n = 1; n <= 400_000; n++) {
      if (slots.length === 8) end()
      const fresh = { receipt: String(n), leaseMs: n, endsAt: n + 0.25, phase: unstarted, overdueAt: n + 0.5 }
      const slot = board.hold(fresh)
      if (n % 3 > 0 || board.change(slot, { ...fresh, endsAt: n + 0.75, phase: running })) slots.push(slot)
      else takenHere++
    }
    while (slots.length > 0) end()
    Atomics.store(stop, 0, 1)
    const [{ read, changed, torn, taken }] = await answer
    expect(read).toBeGreaterThan(1000)
    expect(changed).toBeGreaterThan(0)
    expect(torn).toBe(0)
    expect(taken).toBeGreaterThan(10)
    expect(taken).toBe(takenHere)
  })
})
