// Many processes on one file: all start at once, none starves at the write lock, each hears of the others' tasks.
import { connect } from 'piecework'
import { expect, it, onTestFinished } from 'vitest'
import { readLog } from './evidence.js'
import { type Line, median, monotonicMs, passed, start } from './processes.js'
import { sqlite, storeOf } from './stores.js'

const count = 8
const work = 1600

it('starts 8 processes at once on an empty file and shares 1600 tasks fairly', async () => {
  const store = await storeOf(sqlite)
  const url = `sqlite:${store.folder}/empty.db`
  // A claim for each task, and nothing claimed ahead: what a process gets is what it wins at the lock.
  const options = { concurrency: 1, prefetch: 0 }
  const common = {
    url,
    queue: 'work',
    policy: { leaseMs: 30_000 },
    options,
    waits: true,
    talks: ['waiting', 'ready', 'error'],
  }
  const names = Array.from({ length: count }, (_, n) => `${store.folder}/worker-${n}.log`)
  const workers = names.map((log) => start('worker', { ...common, log }))
  await Promise.all(workers.map((worker) => worker.heard('waiting')))
  for (const worker of workers) worker.tell({ say: 'go' })
  await Promise.all(workers.map((worker) => worker.heard('ready')))
  expect(workers.flatMap(({ lines }) => lines.filter(({ what }) => what === 'error'))).toEqual([])

  const pw = await connect(url)
  onTestFinished(() => pw.close())
  const tasks = pw.queue('work')
  await tasks.pause()
  await tasks.enqueueMany(Array.from({ length: work }, () => ({ do: 'slow', ms: 10 })))
  await tasks.resume()
  await tasks.drained({ waitMs: 80_000 })

  const logs = names.map((log) => readLog(log))
  expect(logs.flat().filter(({ what }) => what === 'error')).toEqual([])
  const shares = logs.map((lines) => lines.filter(({ what }) => what === 'effect').length)
  const longest = Math.max(...logs.map(longestWaitMs))
  console.log(`shares of ${work}: ${shares.join(', ')}; longest wait for a claim ${longest.toFixed(0)} ms`)
  expect(shares.reduce((sum, share) => sum + share, 0)).toBe(work)
  expect(Math.min(...shares) / Math.max(...shares)).toBeGreaterThanOrEqual(0.7)
}, 120_000)

/** The longest time from the end of one handler to the start of the next. */
function longestWaitMs(lines: readonly Line[]): number {
  let waited = 0
  let endedAt: number | null = null
  for (const { what, at } of lines) {
    if (what === 'effect') endedAt = at
    else if (what === 'started' && endedAt !== null) waited = Math.max(waited, at - endedAt)
  }
  return waited
}

it('wakes a worker of another process within a moment of the enqueue', async () => {
  const store = await storeOf(sqlite)
  const pw = await connect(store.url)
  onTestFinished(() => pw.close())
  const tasks = pw.queue('work', { leaseMs: 30_000 })
  const worker = start('worker', { url: store.url, queue: 'work', policy: { leaseMs: 30_000 } })
  await worker.heard('ready')
  const figures: number[] = []
  for (let trial = 1; trial <= 12; trial++) {
    // Until it has found nothing and waits.
    await passed(40)
    const sentAt = monotonicMs()
    await tasks.enqueue({ do: 'quick' })
    const started = (await worker.heard('started', trial)).at(-1)
    figures.push((started?.at ?? Number.NaN) - sentAt)
    await worker.heard('done', trial)
  }
  const longest = Math.max(...figures).toFixed(1)
  console.log(`enqueue to handler in another process: median ${median(figures).toFixed(1)} ms, longest ${longest} ms`)
  expect(Math.min(...figures)).toBeGreaterThan(0)
  expect(median(figures)).toBeLessThan(100)
})
