// A producer and a worker on a disk of a few megabytes: fills it, and says what was refused and what went on.
import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { connect } from 'piecework'
import { notes, ofError, orders, wordFrom } from './notes.js'

const { folder, tasks: count, reopens } = orders
const note = notes()
const filler = `${folder}/filler`

/** Takes what room is left, to the last block. */
function fill() {
  const fd = openSync(filler, 'a')
  let bytes = 0
  for (const size of [1 << 20, 1 << 16, 1 << 12, 1]) {
    const block = Buffer.alloc(size)
    try {
      for (;;) bytes += writeSync(fd, block)
    } catch (error) {
      if (ofError(error).code !== 'ENOSPC') throw error
    }
  }
  closeSync(fd)
  note('full', { bytes })
}

const url = `sqlite:${folder}/work.db`
let pw = await connect(url)
let tasks = pw.queue('work', { leaseMs: 30_000 })
const payload = { text: 'x'.repeat(1000) }
const ids = await Promise.all(Array.from({ length: count }, () => tasks.enqueue(payload)))
note('accepted all', { accepted: new Set(ids.map(({ id }) => id)).size })

/** Enqueues until one is refused; answers how many were accepted before it. */
async function untilRefused() {
  for (let accepted = 0; ; accepted++) {
    try {
      await tasks.enqueue(payload)
    } catch (error) {
      note('refused', { ...ofError(error), accepted })
      return accepted
    }
  }
}

if (reopens) await pw.close()
fill()
if (reopens) {
  // Nobody has it open: its log and the index of it need room before anything can be read.
  pw = await connect(url)
  tasks = pw.queue('work')
}
// The first refusal frees the reserve; a full disk stays full for enqueues all the same.
const more = (await untilRefused()) + (await untilRefused())

const acked = new Set()
const worker = tasks.work(() => {}, { concurrency: 10 })
worker.on('done', ({ id }) => acked.add(id))
worker.on('error', (error) => note('error', ofError(error)))
await tasks.drained()
await worker.stop()
const { done, dead, ready, enqueued } = await tasks.stats()
note('drained', { done, dead, ready, enqueued, acked: acked.size, more })

await wordFrom('make room')
rmSync(filler)
for (let refused = 0; ; refused++) {
  try {
    await tasks.enqueue(payload)
    note('accepted again', { refused })
    break
  } catch (error) {
    if (ofError(error).code !== 'PW_DISK_FULL') throw error
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
await pw.close()
process.exit(0)
