// The shared board between two real threads: no entry is ever seen half written, and each delivery has one end.
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { describe, expect, it } from 'vitest'
import { Board, BoardReader } from '../../dist/worker/board.js'

const receipt = '1764537723123456.1764537723123499.281474976710655.12'

describe('the board', () => {
  it('shows what is held, and what was changed', () => {
    const board = new Board(2)
    const reader = new BoardReader(board.memory)
    expect(reader.entries()).toEqual([])
    const slot = board.hold(receipt, 30_000, 1000.5, Number.POSITIVE_INFINITY)
    const entry = { slot, receipt, leaseMs: 30_000, endsAt: 1000.5, overdueAt: Number.POSITIVE_INFINITY }
    expect(reader.entries()).toMatchObject([{ ...entry, started: false }])
    expect(board.change(slot, 2000.5, true, 77)).toBe(true)
    expect(reader.entries()).toMatchObject([{ ...entry, endsAt: 2000.5, started: true, overdueAt: 77 }])
    expect(board.clear(slot)).toBe(true)
    expect(reader.entries()).toEqual([])
  })

  it.each([
    ['longer than a slot', '1'.repeat(96)],
    ['not ASCII', '12.34.é'],
  ])('refuses a receipt that is %s, and what comes when it is full', (_name, strange) => {
    const board = new Board(1)
    expect(board.hold(strange, 1, 1, 1)).toBe(-1)
    expect(board.hold(receipt, 1, 1, 1)).toBe(0)
    expect(board.hold(receipt, 1, 1, 1)).toBe(-1)
    board.clear(0)
    expect(board.hold('1'.repeat(95), 1, 1, 1)).toBe(0)
    expect(new BoardReader(board.memory).entries()[0]!.receipt).toBe('1'.repeat(95))
  })

  it('gives a delivery one end: the first of the two threads has it', () => {
    const board = new Board(4)
    const reader = new BoardReader(board.memory)
    const slot = board.hold(receipt, 1, 1, 1)
    const seen = reader.entries()[0]!
    expect(reader.take(seen)).toBe(true)
    expect(reader.take(seen)).toBe(false)
    expect(reader.entries()).toEqual([])
    expect(board.clear(slot)).toBe(false)

    const again = board.hold(receipt, 1, 1, 1)
    expect(reader.take(seen)).toBe(false)
    const late = reader.entries()[0]!
    expect(board.clear(again)).toBe(true)
    expect(reader.take(late)).toBe(false)

    const third = board.hold(receipt, 1, 1, 1)
    reader.take(reader.entries()[0]!)
    expect(board.change(third, 2, true, 2)).toBe(false)
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
      const slot = board.hold(String(n), n, n + 0.25, n + 0.5)
      if (n % 3 > 0 || board.change(slot, n + 0.75, true, n + 0.5)) slots.push(slot)
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
