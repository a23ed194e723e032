// One task where many were asked for: debounce the last word, debounce the first, throttle to one in a while.
import { connect } from 'piecework'

const pw = await connect('sqlite::memory:')
const index = pw.queue('index')

// Each edit puts the indexing off again and brings its own payload: the last one counts, 200 ms after it.
for (const version of [1, 2, 3]) {
  await index.enqueue({ page: 'home', version }, { dedupKey: 'home', onDuplicate: 'replace', delayMs: 200 })
}
// 'delay' alone moves the instant and keeps what the first one said.
for (const version of [1, 2, 3]) {
  await index.enqueue({ page: 'about', version }, { dedupKey: 'about', onDuplicate: 'delay', delayMs: 200 })
}
index.work(({ page, version }) => console.log(`indexed ${page} version ${version}`))
await index.drained()

// Throttle: whoever asks within a minute after the last one was done gets the id of that.
const mails = pw.queue('mails', { dedupWindowMs: 60_000 })
mails.work((to) => console.log(`reminded ${to}`))
const { id } = await mails.enqueue('ada', { dedupKey: 'ada' })
await mails.drained()
const again = await mails.enqueue('ada', { dedupKey: 'ada' })
console.log('again:', again.duplicate && again.id === id)
await mails.drained()
await pw.close()

/* prints:
indexed home version 3
indexed about version 1
reminded ada
again: true
*/
