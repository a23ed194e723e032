// The cluster that writes crashes under load and its synchronous standby takes over: nothing accepted is lost.
import { expect, it, onTestFinished } from 'vitest'
import type { Engine } from '../../dist/engine/contract.js'
import { engineFor } from '../../dist/engines/open.js'
import { monotonicMs, start, until } from '../laws/processes.js'
import { pairOfClusters } from './pair.js'

const payload = JSON.stringify({ do: 'slow', ms: 20 })

/** Four producers that go on whatever they are told, until they are stopped; what they were told. */
function producers(engine: Engine) {
  const accepted: string[] = []
  const refused = new Set<string>()
  const told = { accepted, refused, slowestMs: 0, stop: async () => {} }
  let going = true
  const produce = async (lane: number) => {
    for (let n = 0; going; n++) {
      const at = monotonicMs()
      await engine.enqueue(`${lane} ${n}`, [{ queue: 'load', payload }]).then(
        ([task]) => void accepted.push(task?.id ?? ''),
        (error) => {
          refused.add(error.code)
          told.slowestMs = Math.max(told.slowestMs, monotonicMs() - at)
        },
      )
    }
  }
  const lanes = [0, 1, 2, 3].map(produce)
  told.stop = async () => {
    going = false
    await Promise.all(lanes)
  }
  return told
}

it('follows to the other host within 3 s of its promotion with all that was accepted, none charged', async () => {
  const pair = await pairOfClusters()
  const { url } = pair
  const engine = engineFor(url)
  await engine.open()
  onTestFinished(() => engine.close())
  const policy = { leaseMs: 30_000 }
  const workers = [1, 2].map(() => start('worker', { url, queue: 'load', policy, options: { concurrency: 10 } }))
  for (const worker of workers) await worker.heard('ready')
  const said = (what: string) => workers.flatMap(({ lines }) => lines.filter((line) => line.what === what))

  const told = producers(engine)
  const { accepted, refused } = told
  await until('work to be done', () => said('done').length > 200)
  // Held over the fail-over: a receipt of the old cluster.
  const [held] = await engine.enqueue(null, [{ queue: 'held', payload }])
  const ask = { worker: 'w', requestId: 'r', wants: [{ queue: 'held', types: null, max: 1 }] }
  const before = await engine.claim(ask)
  // A first delivery may be taken back by a crash; a settle waits for the standby, and every commit before it does.
  await engine.enqueue(null, [{ queue: 'other', payload }])

  await pair.crash()
  await until('producers to hear of it', () => refused.size > 0)
  const startedBefore = said('started').length
  await pair.promote()
  const backAt = monotonicMs()
  await until('claims at the other host', () => said('started').length > startedBefore)
  const claimsMs = monotonicMs() - backAt
  const acceptedBefore = accepted.length
  await until('enqueues at the other host', () => accepted.length > acceptedBefore + 50)
  await told.stop()
  const figures = async () => (await engine.measure(['load'], true)).types[0]
  await until('the queue to drain', async () => {
    const now = await figures()
    return now !== undefined && now.ready + now.leased + now.scheduled === 0
  })
  const done = new Set(said('effect').map(({ id }) => id))
  console.log(
    `claims ${Math.round(claimsMs)} ms after the promotion, refusals after ${Math.round(told.slowestMs)} ms at most, ` +
      `${accepted.length} accepted, ${said('stale').length} stale`,
  )
  expect(claimsMs).toBeLessThan(3000)
  expect(told.slowestMs).toBeLessThan(3500)
  expect([...refused]).toEqual(['PW_STORE_UNREACHABLE'])
  expect(accepted.filter((id) => !done.has(id))).toEqual([])
  expect(await figures()).toMatchObject({ dead: 0, deaths: 0, expiries: 0, failures: 0 })

  const [receipt] = before.deliveries.map((delivery) => delivery.receipt)
  const ack = { receipt: receipt ?? '', do: 'ack' as const }
  expect(await engine.settle({ worker: 'w', flush: 'f' }, [ack])).toEqual(['done'])
  expect(await engine.settle({ worker: 'w', flush: 'f' }, [ack])).toEqual(['done'])
  expect((await engine.select('task', { ids: [held?.id ?? ''] }, null)).items).toEqual([])
}, 120_000)
