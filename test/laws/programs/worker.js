// A worker process for the laws: does with each task what its payload says, and writes down what it saw.
import { spawn } from 'node:child_process'
import { connect } from 'piecework'
import { monotonicMs, notes, ofError, orders, told, wordFrom } from './notes.js'

const { url, queue, policy, options = {}, waits, crowd = 1 } = orders
const note = notes()

let doubted = false
// Listened for from the start: what is said to a process without a listener is told to the first one only.
const opened = wordFrom('open')
const stopped = wordFrom('stop')

const aborted = (signal) =>
  new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
const passed = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

function spin(ms) {
  for (const endMs = monotonicMs() + ms; monotonicMs() < endMs; );
}

function die() {
  note('dying')
  process.kill(process.pid, 'SIGKILL')
}

/** A handler with a process of its own, as a converter or a compiler would be: fails by the child's signal. */
async function delegate() {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' })
  note('child', { child: child.pid })
  const [code, signal] = await new Promise((resolve) => child.once('exit', (...how) => resolve(how)))
  throw new Error(`the child ended with ${signal ?? code}`)
}

/** What a payload can ask for: `{ do, ms, times }`. */
const acts = {
  quick: () => {},
  /** Waits for the word `open`, and listens to its signal. */
  wait: (_, { signal }) => Promise.race([opened, aborted(signal)]),
  /** Waits for the word `open`, whatever its signal says. */
  hang: () => opened,
  /** The same, and every delivery but the first and those after a failure of this process fails. */
  doubt: async (_, { number }) => {
    await opened
    if (number > 1 && !doubted) {
      doubted = true
      throw new Error('not sure')
    }
  },
  slow: ({ ms }, { signal }) => Promise.race([passed(ms), aborted(signal)]),
  stubborn: ({ ms }) => passed(ms),
  busy: ({ ms }) => spin(ms),
  fail: ({ times }, { number }) => {
    if (number <= times) throw new Error(`asked to fail ${times} times`)
  },
  die: async ({ ms = 0, times = Number.POSITIVE_INFINITY }, { number }) => {
    await passed(ms)
    if (number <= times) die()
  },
  /** Dies after its effect, before its ack. */
  drop: () => {},
  delegate,
}

async function handle(payload, delivery) {
  const { id, number, fence } = delivery
  note('started', { id, number, fence, act: payload.do })
  await acts[payload.do](payload, delivery)
  note('effect', { id, number, fence })
  if (payload.do === 'drop' && number <= payload.times) die()
}

if (waits) {
  note('waiting')
  await wordFrom('go')
}
const pw = await connect(url)
note('connected')
const worker = pw.queue(queue, policy).work(handle, { ...options, stopOn: ['SIGTERM'] })
worker.on('done', ({ id, number, runMs }) => note('done', { id, number, runMs }))
worker.on('stale', ({ id, number }) => note('stale', { id, number }))
worker.on('retry', ({ id, number }) => note('retry', { id, number }))
worker.on('dead', ({ id, number }) => note('dead', { id, number }))
worker.on('released', ({ id, number }) => note('released', { id, number }))
worker.on('error', (error) => note('error', ofError(error)))
process.on('warning', (warning) => note('warning', ofError(warning)))

async function end(graceMs) {
  note('stopping')
  await worker.stop(graceMs === undefined ? {} : { graceMs })
  note('stopped')
  await pw.close()
  process.exit(0)
}
process.on('SIGTERM', () => void end())
void stopped.then((word) => end(word.graceMs))
told('health', () => note('health', worker.health()))
// Others beside it, each on a queue of its own, that only wait.
for (let n = 1; n < crowd; n++) {
  const other = pw.queue(`${queue} ${n}`, policy).work(handle, options)
  void other.ready.then(() => note('ready'))
}
// Who is asked to end while it starts was never ready.
await worker.ready.then(
  () => note('ready'),
  (error) => {
    if (error.code !== 'PW_STOPPING') throw error
  },
)
