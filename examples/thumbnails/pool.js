// Four worker processes and their log: starts them, kills one that holds a task, and lets the others go at the end.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const size = 4
const program = fileURLToPath(new URL('worker.js', import.meta.url))

/**
 * Starts the workers on a store. `killAt`: when so many tasks were started, whoever started the last of them is killed.
 * @param {{ url: string, logFile: string, killAt: number, onKill: (worker: number, task: number) => void }} options
 */
export function startPool({ url, logFile, killAt, onKill }) {
  const log = createWriteStream(logFile, { flags: 'a' })
  const acked = new Set()
  const deserted = new AbortController()
  let started = 0
  let killed = 0

  const workers = Array.from({ length: size }, (_, index) => {
    const child = spawn(process.execPath, [program, url])
    const note = (/** @type {string} */ line) => log.write(`worker ${index + 1} ${line}\n`)
    note(`is process ${child.pid}`)
    createInterface({ input: child.stdout }).on('line', heard)
    createInterface({ input: child.stderr }).on('line', note)
    const ended = once(child, 'close').then(([code, signal]) => left(code, signal))
    return { child, ended }

    function heard(/** @type {string} */ line) {
      note(line)
      const [event, id] = line.split(' ')
      if (event === 'acked') acked.add(id)
      // After the lines that came together with this one: by then it may be acked.
      else if (++started >= killAt && killed === 0) queueMicrotask(() => kill(id))
    }

    function kill(/** @type {string | undefined} */ id) {
      if (killed !== 0 || acked.has(id) || !child.kill('SIGKILL')) return
      killed = index + 1
      note(`killed while it held ${id}`)
      onKill(killed, started)
    }

    function left(/** @type {number | null} */ code, /** @type {string | null} */ signal) {
      note(`ended with ${signal ?? code}`)
      if (workers.every((worker) => worker.child.exitCode !== null || worker.child.signalCode !== null)) {
        deserted.abort(new Error(`all workers have ended; their log: ${logFile}`))
      }
    }
  })

  return {
    /** Aborts when no worker is left. */
    deserted: deserted.signal,
    /** Ends the input of the workers, by which they know; resolves when they have ended what they hold and gone. */
    async stop() {
      for (const { child } of workers) child.stdin.end()
      await Promise.all(workers.map(({ ended }) => ended))
      log.end()
    },
  }
}
