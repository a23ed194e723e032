// A process that works until a signal stops it, as a container would: says when five tasks run, and how it ended.
import { engineFor } from '../../dist/engines/open.js'
import { systemClock, systemRandom } from '../../dist/ground/clock.js'
import { effectivePolicy } from '../../dist/task/limits.js'
import { startWorker } from '../../dist/worker/worker.js'

const [url, queue, graceMs] = process.argv.slice(2)
const engine = engineFor(url)
await engine.open()
let running = 0
const worker = startWorker({
  ports: { engine, clock: systemClock, random: systemRandom, heartbeat: 'auto' },
  queue,
  handlers: new Map([
    [
      '*',
      (_payload, { signal }) => {
        if (++running === 5) process.stdout.write('running\n')
        return new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason))
        })
      },
    ],
  ]),
  types: null,
  decode: (_type, text) => JSON.parse(text),
  prepared: Promise.resolve(effectivePolicy()),
  options: { concurrency: 5, graceMs: Number(graceMs), stopOn: ['SIGTERM'] },
  // What a program does that has nothing else to do: it lets go of the store, and ends.
  stopped: () => void engine.close(),
})
process.once('SIGTERM', () => process.stdout.write('stopping\n'))
await worker.ready
