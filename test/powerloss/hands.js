// Those who take tasks from the recorded store: the library's worker, and workers that call the engine by hand.
import { hostname } from 'node:os'
import { Bury, Release, Retry } from '../../dist/task/handler.js'

/**
 * @typedef {import('./workload.js').Shop} Shop
 * @typedef {import('../../dist/engine/contract.js').Verdict} Verdict
 */

const policy = { leaseMs: 600_000, backoff: { baseMs: 5, maxMs: 2000 } }

/** A worker of the library on the queue `lib`: it notes each delivery first, and its verdict before it gives it. */
export function startHandlers(/** @type {Shop} */ { pw, mark, random, pause }) {
  const worker = pw.queue('lib', policy).work(
    async ({ n }, delivery) => {
      const { id, number, fence } = delivery
      mark({ is: 'had', id, n, number, fence })
      if (random() < 0.2) await pause(random() * 10)
      if (random() < 0.05) await delivery.extend(700_000)
      const draw = random()
      const verdict = draw < 0.8 ? 'ack' : draw < 0.88 ? 'retry' : draw < 0.95 ? 'release' : 'bury'
      mark({ is: 'end', id, number, verdict })
      if (verdict === 'retry') throw new Retry()
      if (verdict === 'release') throw new Release(random() < 0.5 ? {} : { delayMs: 30 })
      if (verdict === 'bury') throw new Bury('as planned')
    },
    { concurrency: 8 },
  )
  const said = (/** @type {string} */ verdict, /** @type {string} */ outcome) => (/** @type {any} */ event) =>
    mark({ is: 'ended', id: event.id, number: event.number, verdict, outcome })
  worker.on('done', said('ack', 'done'))
  worker.on('retry', said('retry', 'scheduled'))
  worker.on('released', said('release', 'ready'))
  worker.on('dead', said('bury', 'dead'))
}

/** A worker of the queue `hand` that speaks to the engine: flushes by number, resends, leases it never settles. */
export async function handWorker(
  /** @type {Shop} */ shop,
  /** @type {AbortSignal} */ over,
  /** @type {boolean} */ joins,
) {
  const { engine, random, mark, pause, part } = shop
  const worker = `hand-${part}-${Math.floor(random() * 1e9)}`
  const info = { worker, host: hostname(), pid: process.pid, bootId: '', queues: ['hand'], concurrency: 20 }
  const joined = { ...info, busy: 0, prefetched: 0, proof: null }
  if (joins) await engine.worker('join', joined)
  for (let round = 0; !over.aborted; round++) {
    const wants = [{ queue: 'hand', types: null, max: 1 + Math.floor(random() * 20) }]
    const requestId = random() < 0.5 ? `claim-${round}` : null
    const { deliveries } = await engine.claim({ worker, requestId, wants, leaseMs: 600_000 })
    for (const { id, payload, number, fence, receipt } of deliveries) {
      mark({ is: 'had', id, n: JSON.parse(payload).n, number, fence, receipt })
    }
    if (random() < 0.3 && deliveries.length > 0) {
      await engine.extend(
        worker,
        deliveries.slice(0, 3).map(({ receipt }) => ({ receipt, leaseMs: 650_000 })),
      )
    }
    const held = deliveries.filter(() => random() < 0.85)
    await settle(shop, worker, String(round), held)
    if (deliveries.length === 0 || random() < 0.2) await pause(random() * 20)
  }
  if (joins) await engine.worker('leave', joined)
}

/**
 * @param {Shop} shop
 * @param {string} worker
 * @param {string} flush
 * @param {import('../../dist/engine/contract.js').ClaimedTask[]} held
 */
async function settle({ engine, random, mark }, worker, flush, held) {
  if (held.length === 0) return
  const error = { code: null, text: 'as planned' }
  const verdicts = held.map(({ receipt }) => {
    const draw = random()
    /** @type {Verdict} */
    const verdict =
      draw < 0.75
        ? { receipt, do: 'ack' }
        : draw < 0.85
          ? { receipt, do: 'retry', delayMs: Math.floor(random() * 50), error }
          : draw < 0.95
            ? { receipt, do: 'release', by: random() < 0.5 ? 'unstarted' : 'handler' }
            : { receipt, do: 'bury', error }
    return verdict
  })
  held.forEach(({ id, number }, i) => {
    mark({ is: 'end', id, number, verdict: verdicts[i]?.do ?? '' })
  })
  const again = random() < 0.2 ? [engine.settle({ worker, flush }, verdicts)] : []
  const [outcomes] = await Promise.all([engine.settle({ worker, flush }, verdicts), ...again])
  held.forEach(({ id, number }, i) => {
    mark({ is: 'ended', id, number, verdict: verdicts[i]?.do ?? '', outcome: outcomes[i] ?? '' })
  })
  mark({ is: 'flush', worker, flush, receipts: held.map(({ receipt }) => receipt), outcomes })
}
