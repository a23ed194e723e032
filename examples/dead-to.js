// Dead letters as tasks of another queue, for a program to look at instead of a person.
import { connect } from 'piecework'

const pw = await connect('sqlite::memory:')
const orders = pw.queue('orders', { deadTo: 'orders-dead', deliveriesMax: 2, backoff: { baseMs: 0 } })
const batch = pw.batch('today')
await orders.enqueueMany([{ item: 'book' }, { item: 'unicorn' }], { batch })
await batch.seal()

orders.work(({ item }) => {
  if (item === 'unicorn') throw new Error('there is no unicorn')
})
// The same task, with its history: delivery 3 of its life, the first of its new budget.
pw.queue('orders-dead').work(({ item }, { number, batch }) => {
  console.log(`${item}: delivery ${number}, batch ${batch}`)
})

const { done, dead } = await batch.done()
console.log('of the batch:', { done, dead })
await pw.queue('orders-dead').drained()
console.log('dead letters here:', (await orders.dead.list()).items.length)
await pw.close()

/* prints:
of the batch: { done: 1, dead: 1 }
unicorn: delivery 3, batch null
dead letters here: 0
*/
