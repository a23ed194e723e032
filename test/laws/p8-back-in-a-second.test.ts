// P8: the tasks of a dead worker are back within a second, of a stopping one at once; measured on the engine's record.
import { connect } from 'piecework'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Store } from './eyes.js'
import { median, monotonicMs, start, until } from './processes.js'
import { storeOf, subjects } from './stores.js'

const trials = 10
const leaseMs = 30_000
/** The record's instants are whole milliseconds, rounded down: counted from their end, no figure flatters. */
const recordMs = 1

/** Kills a worker that waits in its task, ten times; answers how long until the engine had the task ready again. */
async function backAfterMs(store: Store): Promise<number[]> {
  const options = { concurrency: 1, prefetch: 0 }
  const orders = { url: store.url, queue: 'held', policy: { leaseMs }, options, waits: true }
  // They start together and connect in turn: none that waits for its trial can look after the store.
  const victims = Array.from({ length: trials }, () => start('worker', orders))
  const figures: number[] = []
  for (const victim of victims) {
    await enqueueWaiting(store)
    victim.tell({ say: 'go' })
    const id = (await victim.heard('started'))[0]?.id ?? ''
    const at = monotonicMs()
    victim.kill('SIGKILL')
    const record = await until('the death to be on record', () =>
      store.chronicle([id]).find((entry) => entry.event === 'step' && entry.from === 'leased' && entry.to === 'ready'),
    )
    expect(await store.history(id)).toMatchObject([{ number: 1, outcome: 'died', code: 'PW_LEASE_LOST' }])
    expect(await store.task(id)).toMatchObject({ state: 'ready', number: 1, spent: 1, deaths: 1 })
    figures.push(record.at + recordMs - at)
    await store.engine.amend({ ids: [id] }, { do: 'cancel' }, 'law', { max: 1, dryRun: false })
  }
  return figures
}

const enqueueWaiting = (store: Store) =>
  store.engine.enqueue(null, [{ queue: 'held', payload: JSON.stringify({ do: 'wait' }) }])

function within(figures: readonly number[], promisedMs: number, what: string): void {
  console.log(`${what}: median ${median(figures).toFixed(0)} ms, longest ${Math.max(...figures).toFixed(0)} ms`)
  expect(figures.length).toBeGreaterThanOrEqual(trials)
  expect(Math.min(...figures)).toBeGreaterThan(0)
  expect(median(figures)).toBeLessThanOrEqual(promisedMs)
  expect(Math.max(...figures)).toBeLessThanOrEqual(5 * promisedMs)
}

const aborted = (signal: AbortSignal) =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))

describe.each(subjects)('P8 on $name', (subject) => {
  it('brings tasks back in a second while another worker process runs', async () => {
    const store = await storeOf(subject)
    const other = start('worker', { url: store.url, queue: 'other', policy: { leaseMs } })
    await other.heard('ready')
    within(await backAfterMs(store), 1000, 'back after SIGKILL, another worker runs')
  }, 60_000)

  it('brings tasks back in a second while only a client is connected that does nothing', async () => {
    const store = await storeOf(subject)
    const client = start('producer', { url: store.url, queue: 'other', rounds: [] })
    await client.heard('finished')
    within(await backAfterMs(store), 1000, 'back after SIGKILL, only a client is connected')
  }, 60_000)

  it('gives what stop() finds unstarted back within 200 ms', async () => {
    const store = await storeOf(subject)
    const pw = await connect(store.url)
    onTestFinished(() => pw.close())
    const tasks = pw.queue('held', { leaseMs })
    const figures: number[] = []
    for (let trial = 0; trial < trials; trial++) {
      const worker = tasks.work((_, { signal }) => aborted(signal), { concurrency: 1, prefetch: 19 })
      await Promise.all(Array.from({ length: 20 }, () => tasks.enqueue({})))
      await until('20 leases', async () => (await tasks.stats()).leased === 20)
      const before = store.chronicle().length
      const at = monotonicMs()
      await worker.stop({ graceMs: 0 })
      const back = store.chronicle().slice(before)
      // The last of them is the one that ran: it listens to its signal.
      expect(back.filter((entry) => entry.to === 'ready' && entry.spent === 0)).toHaveLength(20)
      figures.push((back[18]?.at ?? Number.NaN) + recordMs - at)
      await tasks.cancel({ all: true })
    }
    within(figures, 200, 'unstarted tasks back after stop()')
  })
})
