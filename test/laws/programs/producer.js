// A producer process for the laws: enqueues what it was told, and writes down each question and each answer.
import { existsSync, readFileSync } from 'node:fs'
import { connect } from 'piecework'
import { notes, orders, told, wordFrom } from './notes.js'

const { url, queue, policy, log, rounds, groups, bulk, waits } = orders
/** What an earlier life of this producer had asked for and got no answer to. */
const asked = new Map()
if (log !== undefined && existsSync(log)) {
  for (const text of readFileSync(log, 'utf8').split('\n').filter(Boolean)) {
    const { what, item } = JSON.parse(text)
    if (what === 'asked') asked.set(item.options.dedupKey, item)
    if (what === 'accepted') asked.delete(item.options.dedupKey)
  }
}
const note = notes()
const pw = await connect(url)
const tasks = pw.queue(queue, policy)
note('ready')
let stopping = false
told('stop', () => {
  stopping = true
  void pw.close().then(() => process.exit(0))
})
if (waits) await wordFrom('go')

/** One item, `{ payload, options }`; its answer is written down as soon as it is there. */
async function enqueue(item) {
  if (stopping) return
  note('asked', { item })
  const { id, duplicate } = await tasks.enqueue(item.payload, item.options)
  note('accepted', { item, id, duplicate })
}

// The first answer was lost with the process: the same dedup key asks again.
for (const item of [...asked.values()]) await enqueue(item)
// One commit after the other, as fast as they come.
if (rounds) for (const round of rounds) await Promise.all(round.map(enqueue))
if (bulk) {
  const answer = await tasks.enqueueMany(Array.from({ length: bulk }, (_, n) => ({ do: 'quick', n })))
  note('sent', answer)
}
// Groups come from the parent, one after the other.
if (groups) {
  note('hungry')
  told('enqueue', async (word) => {
    await Promise.all(word.items.map(enqueue))
    note('hungry')
  })
} else note('finished')
