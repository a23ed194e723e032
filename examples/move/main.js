// One type of task slows the others down: it gets a queue and workers of its own, also what is enqueued later.
import { connect } from 'piecework'

const pw = await connect('sqlite::memory:')
const mail = pw.queue('mail')
const slow = pw.queue('slow')
const enqueue = (report) => mail.enqueue({ report }, { type: 'report', dedupKey: `report ${report}` })

await enqueue(1)
await mail.enqueue({ to: 'ada' })
const away = await mail.move({ type: 'report', to: 'slow' })
console.log(`${away.moved} moved, and later ones follow: ${away.routed}`)
await enqueue(2)
// Its dedup key went along.
console.log(`report 1 again is a duplicate: ${(await enqueue(1)).duplicate}`)

console.log(`mail has ${await waiting(mail)}, slow has ${await waiting(slow)}`)
const back = await mail.move({ type: 'report', back: true })
console.log(`${back.moved} brought back; mail has ${await waiting(mail)}, slow has ${await waiting(slow)}`)
await pw.close()

async function waiting(queue) {
  return (await queue.stats()).ready
}
