// What is measured: the limit program, the product's engine under the same small pool, and the product as users use it.
import { engineFor } from '../../dist/engines/open.js'
import { connect } from '../../dist/index.js'
import { Limit } from './limit.js'
import { Pool } from './pool.js'

/**
 * @typedef {{ n: number, pad: string }} Payload
 * @typedef {object} Work
 * @property {number} concurrency
 * @property {(payload: Payload, id: string | number) => Promise<unknown>} handler
 * @property {(id: string | number) => void} done called once the task's ack is durable
 */

/**
 * @typedef {object} Store one queue in one file
 * @property {(payload: Payload) => Promise<unknown>} enqueue resolves once durable
 * @property {(payloads: Iterable<Payload>) => Promise<unknown>} enqueueMany in chunks; resolves once all is durable
 * @property {(work: Work) => { ready: Promise<unknown>, stop: () => Promise<unknown> }} work starts a worker
 * @property {() => Promise<unknown>} close
 */

const chunkSize = 1000

/**
 * Sends chunks of texts, the next one while the one before waits for its sync.
 * @param {Iterable<Payload>} payloads
 * @param {(texts: string[]) => Promise<unknown>} send
 */
async function inChunks(payloads, send) {
  /** @type {Promise<unknown>} */
  let before = Promise.resolve()
  /** @type {string[]} */
  let texts = []
  const flush = async () => {
    const sent = send(texts)
    texts = []
    await before
    before = sent
  }
  for (const payload of payloads) {
    texts.push(JSON.stringify(payload))
    if (texts.length === chunkSize) await flush()
  }
  if (texts.length > 0) await flush()
  await before
}

/** @param {string} file @returns {Promise<Store>} */
async function openLimit(file) {
  // The product makes the tables, so that both always work on the same ones.
  const engine = engineFor(`sqlite:${file}`)
  await engine.open()
  await engine.close()
  const limit = new Limit(file)
  return {
    enqueue: (payload) => limit.enqueue([JSON.stringify(payload)]),
    enqueueMany: (payloads) => inChunks(payloads, (texts) => limit.enqueue(texts)),
    work({ concurrency, handler, done }) {
      const pool = new Pool(
        {
          claim: (max) => limit.claim(max),
          ack: (deliveries) => limit.ack(deliveries),
          wait: () => limit.wait(),
          handle: ({ payload, id }) => handler(JSON.parse(payload), id),
          done: ({ id }) => done(id),
        },
        concurrency,
      )
      const stop = () => {
        const stopped = pool.stop()
        limit.wake()
        return stopped
      }
      return { ready: Promise.resolve(), stop }
    },
    close: () => limit.close(),
  }
}

/** @param {string} file @returns {Promise<Store>} */
async function openEngine(file) {
  const engine = engineFor(`sqlite:${file}`)
  await engine.open()
  const wants = (/** @type {number} */ max) => [{ queue: 'q', types: null, max }]
  const by = { worker: 'bench', flush: null }
  return {
    enqueue: (payload) => engine.enqueue(null, [{ queue: 'q', payload: JSON.stringify(payload) }]),
    enqueueMany: (payloads) =>
      inChunks(payloads, (texts) =>
        engine.enqueue(
          null,
          texts.map((payload) => ({ queue: 'q', payload })),
        ),
      ),
    work({ concurrency, handler, done }) {
      const stopping = new AbortController()
      const pool = new Pool(
        {
          claim: async (max) =>
            (await engine.claim({ worker: 'bench', requestId: null, wants: wants(max) })).deliveries,
          ack: (deliveries) =>
            engine.settle(
              by,
              deliveries.map(({ receipt }) => ({ receipt, do: 'ack' })),
            ),
          wait: () => engine.wait(['q'], 1000, stopping.signal),
          handle: ({ payload, id }) => handler(JSON.parse(payload), id),
          done: ({ id }) => done(id),
        },
        concurrency,
      )
      const stop = () => {
        const stopped = pool.stop()
        stopping.abort()
        return stopped
      }
      return { ready: Promise.resolve(), stop }
    },
    close: () => engine.close(),
  }
}

/** @param {string} file @returns {Promise<Store>} */
async function openLibrary(file) {
  const pw = await connect(`sqlite:${file}`)
  const queue = pw.queue('q')
  return {
    enqueue: (payload) => queue.enqueue(payload),
    enqueueMany: (payloads) => queue.enqueueMany(payloads),
    work({ concurrency, handler, done }) {
      const worker = queue.work((payload, delivery) => handler(payload, delivery.id), { concurrency })
      worker.on('done', ({ id }) => done(id))
      return { ready: worker.ready, stop: () => worker.stop() }
    },
    close: () => pw.close(),
  }
}

/** The limit first: every ratio is the limit's time over the subject's. */
export const subjects = [
  { name: 'limit', open: openLimit },
  { name: 'engine', open: openEngine },
  { name: 'library', open: openLibrary },
]
