// Another worker of the same store in a thread of its own: takes what becomes ready, as long as it is let.
import { parentPort, workerData } from 'node:worker_threads'
import { engineFor } from '../../dist/engines/open.js'
import { pause, systemClock } from '../../dist/ground/clock.js'

const { url, queue, flags } = workerData
const [go, stop] = [0, 1]
const engine = engineFor(url)
await engine.open()
parentPort.postMessage('open')
const taken = []
while (Atomics.load(flags, stop) === 0) {
  if (Atomics.load(flags, go) === 1) {
    await engine.sweep(1000)
    const wants = [{ queue, types: null, max: 100 }]
    const { deliveries } = await engine.claim({ worker: 'rival', requestId: null, wants })
    for (const { id, number } of deliveries) taken.push({ id, number, at: systemClock.monotonicMs() })
  }
  await pause(systemClock, 10)
}
await engine.close()
parentPort.postMessage(taken)
