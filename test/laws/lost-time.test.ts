// Time in which nobody could write is not charged to leases: what runs goes on holding, and nothing runs twice.
import { connect } from 'piecework'
import { expect, it, onTestFinished } from 'vitest'
import { passed, start } from './processes.js'
import { sqlite, storeOf } from './stores.js'

const leaseMs = 1000
const heldMs = 3000

it('keeps running deliveries while another program holds the write lock for three leases', async () => {
  const store = await storeOf(sqlite)
  const pw = await connect(store.url)
  onTestFinished(() => pw.close())
  const policy = { leaseMs }
  const tasks = pw.queue('work', policy)
  const orders = { url: store.url, queue: 'work', policy, options: { concurrency: 4 } }
  const [first, second] = [start('worker', orders), start('worker', orders)]
  await Promise.all([first.heard('ready'), second.heard('ready')])
  await Promise.all(Array.from({ length: 6 }, () => tasks.enqueue({ do: 'wait' })))
  const holders = [first, second]
  const started = () => holders.flatMap(({ lines }) => lines.filter(({ what }) => what === 'started'))
  const holder = start('holder', { file: store.file })
  await holder.heard('ready')
  while (started().length < 6) await passed(5)

  holder.tell({ say: 'hold' })
  await holder.heard('held')
  await passed(heldMs)
  holder.tell({ say: 'let go' })
  await holder.heard('released')
  // Whoever would take a lease away has its chance: two sweeps of each process.
  await passed(1000)
  for (const process of holders) process.tell({ say: 'open' })
  await tasks.drained({ waitMs: 10_000 })
  expect(started()).toHaveLength(6)
  expect(await tasks.stats()).toMatchObject({ done: 6, deliveries: 6, expiries: 0, stale: 0, deaths: 0 })
})
