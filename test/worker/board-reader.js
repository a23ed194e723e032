// The other thread of the board's test: reads as fast as it can and counts entries that cannot be whole.
import { parentPort, workerData } from 'node:worker_threads'
import { BoardReader } from '../../dist/worker/board.js'
import { phases } from '../../dist/worker/pulse.js'

const { memory, stop } = workerData
const board = new BoardReader(memory)
const counts = { read: 0, changed: 0, torn: 0, taken: 0 }
parentPort.postMessage('reading')
while (Atomics.load(stop, 0) === 0) {
  for (const entry of board.entries()) {
    // The writer makes every number of an entry from the one in its receipt.
    const n = Number(entry.receipt)
    const endsAt = entry.phase === phases.running ? n + 0.75 : n + 0.25
    if (entry.leaseMs !== n || entry.endsAt !== endsAt || entry.overdueAt !== n + 0.5) counts.torn++
    counts.read++
    if (entry.phase === phases.running) counts.changed++
    if (entry.phase === phases.unstarted && n % 7 === 0 && board.take(entry)) counts.taken++
  }
}
parentPort.postMessage(counts)
