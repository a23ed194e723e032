// An import of many rows with a natural end: a row that fails does not keep the summary from coming, exactly once.
import { Bury, connect } from 'piecework'

const pw = await connect('sqlite::memory:')
const rows = pw.queue('rows')
const reports = pw.queue('reports')

// What follows is stored with the batch: no process has to live until its end.
const batch = pw.batch('import-42', { onDone: reports.draft({ about: 'import-42' }) })
await rows.enqueueMany([1, 2, 3, 'four'], { batch })
await batch.seal()

rows.work((row) => {
  if (typeof row !== 'number') throw new Bury(`${row} is no number`)
})
reports.work(async ({ about }) => {
  const stats = await pw.batch(about).stats()
  console.log(`${about}: ${stats?.done} of ${stats?.total} done, ${stats?.dead} dead`)
})

const { total, done, dead, cancelled } = await batch.done()
console.log({ total, done, dead, cancelled })
await reports.drained()

// The late success of a redriven row changes the figures; the report has been written and is not written again.
await rows.dead.redrive({ all: true })
await rows.drained()
await reports.drained()

// A batch of batches: each part's follow-up has its place in the whole from the start, which cannot end without it.
const whole = pw.batch('whole', { onDone: reports.draft({ about: 'whole' }) })
for (const name of ['part-1', 'part-2']) {
  const part = pw.batch(name, { onDone: reports.draft({ about: name }, { batch: whole }) })
  await rows.enqueue(1, { batch: part })
  await part.seal()
}
await whole.seal()
console.log(await whole.done())
await reports.drained()
await pw.close()

/* prints:
import-42: 3 of 4 done, 1 dead
{ total: 4, done: 3, dead: 1, cancelled: 0 }
part-1: 1 of 1 done, 0 dead
part-2: 1 of 1 done, 0 dead
{ total: 2, done: 2, dead: 0, cancelled: 0 }
whole: 2 of 2 done, 0 dead
*/
