// The end of overdue deliveries by a heartbeat: each is settled once, and what is told of it is the engine's answer.
import { describe, expect, it } from 'vitest'
import type { Engine, Verdict } from '../../dist/engine/contract.js'
import { PieceworkError } from '../../dist/ground/errors.js'
import type { Outcome } from '../../dist/task/lifecycle.js'
import { manualClock } from '../../dist/testing/manual-clock.js'
import { type Lease, type News, Pulse, phases } from '../../dist/worker/pulse.js'

interface Flush {
  flush: string | null
  receipts: string[]
  answer(outcomes: Outcome[]): Promise<void>
  fail(): Promise<void>
}

/** A pulse over an engine whose settles are answered when the test says so. */
function watched(transactions: Engine['traits']['transactions'] = 'async') {
  const clock = manualClock()
  const held = new Set<Lease>()
  const flushes: Flush[] = []
  const told: News[] = []
  const settle = ({ flush }: { flush: string | null }, verdicts: readonly Verdict[]) =>
    new Promise<Outcome[]>((resolve, reject) => {
      const after = (step: () => void) => {
        step()
        return clock.settle()
      }
      flushes.push({
        flush,
        receipts: verdicts.map(({ receipt }) => receipt),
        answer: (outcomes) => after(() => resolve(outcomes)),
        fail: () => after(() => reject(new PieceworkError('PW_STORE_UNREACHABLE', 'It could not be reached.'))),
      })
    })
  const worker = async () => ({ alive: true, cancelled: [] })
  const engine = { traits: { transactions }, settle, worker, extend: async () => [] } as unknown as Engine
  const take = (lease: Lease) => held.delete(lease)
  const tell = (news: News) => void told.push(news)
  const pulse = new Pulse<Lease>({
    ...{ engine, clock, take, tell, held: () => [...held], extended() {} },
    info: {
      worker: 'w',
      host: '',
      pid: 1,
      bootId: '',
      queues: [],
      concurrency: 1,
      busy: 0,
      prefetched: 0,
      proof: null,
    },
  })
  return {
    clock,
    pulse,
    flushes,
    timedOut: () => told.filter((news) => news.is === 'timedOut'),
    hold(receipt: string, overdueAt = clock.monotonicMs()) {
      held.add({ receipt, leaseMs: 1e6, endsAt: 1e9, overdueAt, phase: phases.running })
    },
    /** A round in which all that was held is overdue. */
    async round() {
      await clock.advance(200)
      pulse.round()
      await clock.settle()
    },
  }
}

describe('what becomes overdue while others are being settled', () => {
  it('is settled after them, and nothing is told of it before (P5)', async () => {
    const { hold, round, flushes, timedOut, pulse } = watched()
    hold('first')
    await round()
    hold('second')
    hold('third')
    await round()
    expect(flushes.map(({ receipts }) => receipts)).toEqual([['first']])
    await flushes[0]!.answer(['scheduled'])
    expect(timedOut()).toEqual([{ is: 'timedOut', receipt: 'first', outcome: 'scheduled' }])
    expect(flushes.map(({ receipts }) => receipts)).toEqual([['first'], ['second', 'third']])
    // Whoever waits for the end waits for these, too.
    let over = false
    const settled = pulse.settled().then(() => {
      over = true
    })
    expect(over).toBe(false)
    await flushes[1]!.answer(['scheduled', 'stale'])
    expect(over).toBe(true)
    await settled
  })

  it('is given the outcome that the engine answers', async () => {
    const { hold, round, flushes, timedOut } = watched()
    hold('first')
    await round()
    hold('second')
    await round()
    await flushes[0]!.answer(['scheduled'])
    await flushes[1]!.answer(['dead'])
    expect(timedOut().map(({ receipt, outcome }) => [receipt, outcome])).toEqual([
      ['first', 'scheduled'],
      ['second', 'dead'],
    ])
  })
})

describe('a settle whose answer is lost', () => {
  it('is sent again as it was, under the same name, and what came meanwhile under the next', async () => {
    const { hold, round, flushes } = watched()
    hold('first')
    await round()
    hold('second')
    await round()
    await flushes[0]!.fail()
    await round()
    await flushes[1]!.answer(['scheduled'])
    await flushes[2]!.answer(['scheduled'])
    await round()
    expect(flushes.map(({ flush, receipts }) => [flush, receipts])).toEqual([
      ['overdue 1', ['first']],
      ['overdue 1', ['first']],
      ['overdue 2', ['second']],
    ])
  })

  it('has no name where no answer can be lost', async () => {
    const { hold, round, flushes } = watched('sync')
    hold('first')
    await round()
    expect(flushes.map(({ flush }) => flush)).toEqual([null])
  })
})
