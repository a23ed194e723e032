// A process of a deploy for the laws: sets its schedule as every start does, and keeps the store open till it is ended.
import { connect } from 'piecework'
import { notes, ofError, orders, told } from './notes.js'

const { url, queue, name, schedule } = orders
const note = notes()
const pw = await connect(url)
const set = async () => {
  try {
    await pw.queue(queue).schedule(name, schedule, { of: name })
    note('set')
  } catch (error) {
    note('refused', ofError(error))
  }
}
await set()
told('set', set)
told('stop', () => void pw.close().then(() => process.exit(0)))
