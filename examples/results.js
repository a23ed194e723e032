// Work with an answer: wait for it, ask for it later, or call the handler without a queue at all.
import { Bury, connect } from 'piecework'

const pw = await connect('sqlite::memory:')
const sums = pw.queue('sums', { resultKeepMs: 60_000 })
const add = (numbers) => {
  if (numbers.length === 0) throw new Bury('nothing to add')
  return numbers.reduce((a, b) => a + b, 0)
}
sums.work(add)

// The caller waits, the work is as durable as any other; a worker in another process may do it.
console.log('waited for:', await sums.enqueueAndWait([1, 2, 3], { waitMs: 10_000 }))
await sums.enqueueAndWait([]).catch(({ code, details }) => console.log(code, details.reason))

// Without waiting: the id is enough, for as long as the policy keeps results.
const { id } = await sums.enqueue([4, 5])
await sums.drained()
const task = await sums.get(id)
if (task.state === 'done') console.log('kept:', task.result)

// For tests, and where nothing has to survive: the same handler, without a store in between.
const direct = sums.inline(add, { concurrency: 2 })
console.log('direct:', await Promise.all([direct([6, 7]), direct([8])]))
await pw.close()

/* prints:
waited for: 6
PW_TASK_DEAD buried
kept: 9
direct: [ 13, 8 ]
*/
