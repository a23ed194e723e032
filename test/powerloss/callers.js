// Those who ask the recorded store for things: single, bulk and repeated enqueues, bursts that drain, an operator.
import { payloadOf } from './marks.js'

/**
 * @typedef {import('./workload.js').Shop} Shop
 * @typedef {import('./marks.js').Asked} Asked
 */

/** Enqueues one by one, sometimes several calls at once, with every option that changes what must be kept. */
export async function adder(/** @type {Shop} */ shop) {
  for (let n = shop.next(); n !== null; n = shop.next()) {
    const more = shop.random() < 0.3 ? [n, shop.next(), shop.next(), shop.next()] : [n]
    await Promise.all(more.map((one) => one && addOne(shop, one)))
    if (shop.random() < 0.2) await shop.pause(shop.random() * 8)
  }
}

async function addOne(/** @type {Shop} */ shop, /** @type {number} */ n) {
  const { pw, random, mark, ids } = shop
  const queue = random() < 0.6 ? 'lib' : 'hand'
  const draw = random()
  /** @type {Asked} */
  const asked = { n, queue }
  if (draw < 0.2) asked.dedupKey = `once-${Math.floor(random() * 40)}`
  else if (draw < 0.35) asked.delayMs = Math.ceil(random() * (random() < 0.5 ? 50 : 3_600_000))
  else if (draw < 0.45) asked.batch = `batch-${n % 3}`
  const { dedupKey, delayMs, batch } = asked
  const key = random() < 0.3 ? `key-${n % 7}` : undefined
  const dueAt = draw > 0.97 ? new Date(Date.now() + 3_600_000) : undefined
  const priority = random() < 0.1 ? Math.floor(random() * 9) - 4 : undefined
  mark({ is: 'ask', tasks: [asked] })
  const answer = await pw.queue(queue).enqueue(payloadOf(n), { key, dueAt, priority, dedupKey, delayMs, batch })
  mark({ is: 'in', ns: [n], answers: [answer] })
  if (!answer.duplicate) ids.push(Number(answer.id))
}

/** Enqueues in bulk: what is accepted is known by its payload only. */
export async function bulkAdder(/** @type {Shop} */ { pw, random, mark, next, pause }) {
  for (;;) {
    const ns = take(next, 5 + random() * 60)
    if (ns.length === 0) return
    const queue = random() < 0.5 ? 'lib' : 'hand'
    mark({ is: 'ask', tasks: ns.map((n) => ({ n, queue })) })
    await pw.queue(queue).enqueueMany(ns.map(payloadOf))
    mark({ is: 'in', ns, answers: null })
    await pause(random() * 60)
  }
}

/** Enqueues under a request id, sometimes twice at once, as a client does whose first answer was lost. */
export async function repeater(/** @type {Shop} */ { engine, random, mark, next, pause, part }) {
  for (let round = 0; ; round++) {
    const ns = take(next, 1 + random() * 6)
    if (ns.length === 0) return
    const request = `request-${part}-${ns[0]}`
    const asked = ns.map((n) => ({ n, queue: 'hand', ...(n % 2 && { batch: 'named', identity: `one-${n}` }) }))
    mark({ is: 'ask', tasks: asked, request })
    const tasks = asked.map(({ n, ...rest }) => ({ ...rest, payload: JSON.stringify(payloadOf(n)) }))
    const calls = round % 4 === 0 ? [engine.enqueue(request, tasks), engine.enqueue(request, tasks)] : []
    const [answers] = await Promise.all([engine.enqueue(request, tasks), ...calls])
    mark({ is: 'in', ns, answers, request })
    await pause(random() * 20)
  }
}

/** Fills a queue of its own, waits until it is drained, and says so: from then on none of it may come back. */
export async function burster(/** @type {Shop} */ { pw, random, mark, next, pause, part }) {
  const queue = `burst-${part}`
  const worker = pw.queue(queue, { leaseMs: 600_000 }).work(
    async () => {
      if (random() < 0.3) await pause(random() * 3)
    },
    { concurrency: 4 },
  )
  for (;;) {
    const ns = take(next, 3 + random() * 20)
    if (ns.length === 0) break
    mark({ is: 'ask', tasks: ns.map((n) => ({ n, queue })) })
    await pw.queue(queue).enqueueMany(ns.map(payloadOf))
    await pw.queue(queue).drained()
    mark({ is: 'empty', queue, ns })
  }
  await worker.stop()
}

/** Cancels, discards, redrives and configures, always by id, so that the checker knows what was meant. */
export async function operator(/** @type {Shop} */ shop) {
  for (let turn = 0; shop.next() !== null; turn++) {
    const { random, ids } = shop
    const draw = random()
    if (draw < 0.3 && ids.length > 0) {
      const id = String(ids[Math.floor(random() * ids.length)])
      await change(shop, 'remove', 'cancel', [id])
    } else if (draw < 0.5) await change(shop, 'remove', 'discard', await deadOf(shop, 2))
    else if (draw < 0.7) await change(shop, 'revive', 'redrive', await deadOf(shop, 3))
    else if (draw < 0.85) await configure(shop, 1000 * Math.ceil(random() * 100))
    else if (draw < 0.87) await seal(shop, turn)
    await shop.pause(5 + random() * 20)
  }
}

/** @returns {Promise<string[]>} */
async function deadOf(/** @type {Shop} */ { engine, random }, /** @type {number} */ count) {
  const queue = random() < 0.5 ? 'lib' : 'hand'
  const page = await engine.select('task', { queue, states: ['dead'], limit: 50 }, null)
  return page.items.slice(0, count).map(({ id }) => String(id))
}

/**
 * @param {Shop} shop
 * @param {'remove' | 'revive'} is
 * @param {'cancel' | 'discard' | 'redrive'} what
 * @param {string[]} ids
 */
async function change({ engine, mark }, is, what, ids) {
  if (ids.length === 0) return
  mark({ is, ids })
  const answer = await engine.amend({ ids }, { do: what }, 'operator', { max: 10, dryRun: false })
  // A task that is leased is only asked to end: that promises nothing about its row.
  if (answer.asked > 0 || answer.changed === 0) return
  mark({ is: is === 'remove' ? 'removed' : 'revived', ids: answer.ids })
}

async function configure(/** @type {Shop} */ { pw, mark, part }, /** @type {number} */ headStartMs) {
  const queue = `burst-${part}`
  mark({ is: 'set', queue, headStartMs })
  await pw.queue(queue).configure({ headStartMs })
  mark({ is: 'isSet', queue, headStartMs })
}

async function seal(/** @type {Shop} */ { engine, mark, part }, /** @type {number} */ turn) {
  const batch = `sealed-${part}-${turn}`
  await engine.configure('batch', batch, { sealed: true }, 'operator')
  mark({ is: 'sealed', batch })
}

/**
 * Lets minutes pass at once, sometimes more than numbers are reserved for, and then is the first to get one: the fence
 * of a first delivery, which no sync of its own protects.
 */
export async function jumper(
  /** @type {Shop} */ { engine, random, mark, part, pause },
  /** @type {AbortSignal} */ over,
  pass,
) {
  const queue = 'fresh'
  const ask = { worker: `jumper-${part}`, requestId: null, wants: [{ queue, types: null, max: 1 }], leaseMs: 600_000 }
  for (let n = part * 1_000_000 + 900_000; !over.aborted; n++) {
    mark({ is: 'ask', tasks: [{ n, queue }] })
    const answers = await engine.enqueue(null, [{ queue, payload: JSON.stringify(payloadOf(n)) }])
    mark({ is: 'in', ns: [n], answers })
    await pause(20 + random() * 80)
    const ms = random() < 0.5 ? 50_000 : 150_000
    pass(ms)
    mark({ is: 'jump', ms })
    const [had] = (await engine.claim(ask)).deliveries
    if (!had) continue
    const { id, number, fence, receipt, payload } = had
    mark({ is: 'had', id, n: JSON.parse(payload).n, number, fence, receipt })
    await pause(random() * 10)
    mark({ is: 'end', id, number, verdict: 'ack' })
    const [outcome = ''] = await engine.settle({ worker: ask.worker, flush: null }, [{ receipt, do: 'ack' }])
    mark({ is: 'ended', id, number, verdict: 'ack', outcome })
  }
}

/** Up to `count` numbers of tasks; none when the round has all it should have. */
function take(/** @type {() => number | null} */ next, /** @type {number} */ count) {
  /** @type {number[]} */
  const ns = []
  for (let n = next(); n !== null; n = next()) {
    ns.push(n)
    if (ns.length >= count) break
  }
  return ns
}
