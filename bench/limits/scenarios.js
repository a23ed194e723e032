// The six situations: what is asked of a store, how many tasks that is, and what is read off it.
import { monitorEventLoopDelay } from 'node:perf_hooks'

/**
 * @typedef {import('./subjects.js').Store} Store
 * @typedef {import('./subjects.js').Payload} Payload
 * @typedef {{ tasks: number, seconds: number, cpuUs: number, loopP99Ms: number, loopMaxMs: number }} Throughput
 * @typedef {{ startMs: number[], ackMs: number[] }} Latencies
 */

/** About 100 bytes of JSON. */
const pad = 'x'.repeat(80)
const payload = (/** @type {number} */ n) => ({ n, pad })

function* payloads(/** @type {number} */ tasks) {
  for (let n = 0; n < tasks; n++) yield payload(n)
}

/** Timer ticks of the delay monitor; an undisturbed loop shows this much, so it is taken off. */
const resolutionMs = 1

/** Measures from now on; what it answers says how long, how much CPU of the whole process, how late the event loop. */
function meter() {
  const loop = monitorEventLoopDelay({ resolution: resolutionMs })
  loop.enable()
  const cpu = process.cpuUsage()
  const start = performance.now()
  return (/** @type {number} */ tasks) => {
    const seconds = (performance.now() - start) / 1000
    const { user, system } = process.cpuUsage(cpu)
    loop.disable()
    const late = (/** @type {number} */ ns) => Math.max(0, ns / 1e6 - resolutionMs)
    return {
      tasks,
      seconds,
      cpuUs: (user + system) / tasks,
      loopP99Ms: late(loop.percentile(99)),
      loopMaxMs: late(loop.max),
    }
  }
}

/** Resolves `all` when `done` was called for every task. */
function countdown(/** @type {number} */ tasks) {
  let left = tasks
  /** @type {(value: unknown) => void} */
  let resolve = () => {}
  const all = new Promise((ready) => {
    resolve = ready
  })
  const done = () => {
    if (--left === 0) resolve(undefined)
  }
  return { all, done }
}

/** `callers` at a time, each awaiting its enqueue before the next. */
async function oneByOne(/** @type {Store} */ store, /** @type {number} */ tasks, /** @type {number} */ callers) {
  let next = 0
  const caller = async () => {
    while (next < tasks) await store.enqueue(payload(next++))
  }
  await Promise.all(Array.from({ length: callers }, caller))
}

const callersMax = 100

/** One by one with 100 in flight. */
export async function measureOneByOne(/** @type {Store} */ store, /** @type {number} */ tasks) {
  const stop = meter()
  await oneByOne(store, tasks, callersMax)
  return stop(tasks)
}

/** A pile of tasks: put in by batches of 1000, then drained by handlers that do nothing. */
export class Pile {
  #store
  #tasks

  constructor(/** @type {Store} */ store, /** @type {number} */ tasks) {
    this.#store = store
    this.#tasks = tasks
  }

  async fill() {
    const stop = meter()
    await this.#store.enqueueMany(payloads(this.#tasks))
    return stop(this.#tasks)
  }

  /** Measured from the first handler on, so that starting a worker is nobody's throughput. */
  async drain(/** @type {number} */ concurrency) {
    const { all, done } = countdown(this.#tasks)
    /** @type {ReturnType<typeof meter> | undefined} */
    let stop
    const handler = async () => {
      stop ??= meter()
    }
    const worker = this.#store.work({ concurrency, handler, done })
    await all
    const drain = stop?.(this.#tasks)
    await worker.stop()
    if (!drain) throw new Error('no handler ran')
    return drain
  }
}

/** Enqueue, claim and ack flowing together: 100 callers put in what a worker takes out. */
export async function measureLifeCycle(/** @type {Store} */ store, /** @type {number} */ tasks) {
  const { all, done } = countdown(tasks)
  const worker = store.work({ concurrency: 10, handler: async () => {}, done })
  await worker.ready
  const stop = meter()
  await Promise.all([oneByOne(store, tasks, callersMax), all])
  const flow = stop(tasks)
  await worker.stop()
  return flow
}

/** From the enqueue call to the handler's start and to the durable ack, at a steady pace with an idle worker. */
export async function measureLatency(
  /** @type {Store} */ store,
  /** @type {number} */ tasks,
  /** @type {number} */ perSecond,
) {
  /** @type {number[]} */
  const calledAt = []
  /** @type {Map<string | number, number>} */
  const numbers = new Map()
  /** @type {Latencies} */
  const found = { startMs: [], ackMs: [] }
  const { all, done } = countdown(tasks)
  const worker = store.work({
    concurrency: 10,
    handler: async ({ n }, id) => {
      found.startMs.push(performance.now() - (calledAt[n] ?? 0))
      numbers.set(id, n)
    },
    done(id) {
      found.ackMs.push(performance.now() - (calledAt[numbers.get(id) ?? 0] ?? 0))
      done()
    },
  })
  await worker.ready
  const began = performance.now()
  const accepted = []
  for (let n = 0; n < tasks; n++) {
    const waitMs = began + ((n + 1) * 1000) / perSecond - performance.now()
    await new Promise((resolve) => setTimeout(resolve, waitMs))
    calledAt[n] = performance.now()
    accepted.push(store.enqueue(payload(n)))
  }
  await Promise.all([...accepted, all])
  await worker.stop()
  return found
}
