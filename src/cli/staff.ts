// Runs several worker processes as one: starts them anew when they crash, passes signals on, ends when they have.
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Clock } from '../ground/clock.js'
import type { Output } from './print.js'
import type { Shift } from './work.js'

/** A process that crashes at once is started again after this, doubling up to a minute. */
const againMs = 200

const mainFile = fileURLToPath(new URL('./main.js', import.meta.url))

/** `words` are those of one process. */
export function startStaff(clock: Clock, count: number, words: readonly string[], output: Output): Shift {
  const running = new Set<ChildProcess>()
  const readyOnes = new Set<ChildProcess>()
  /** Those that ended by themselves: their work was over, or refused. */
  const overOnes = new Set<ChildProcess>()
  let code = 0
  let stopping = false
  let crashes = 0
  let waiting = 0
  let done = () => {}
  const ended = new Promise<number>((resolve) => {
    done = () => {
      if (running.size === 0 && waiting === 0) resolve(code)
    }
  })
  const begin = () => {
    // In groups of their own, so that Ctrl-C reaches each once, through us; they end when our channel closes.
    const child = fork(mainFile, words, { detached: true, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    running.add(child)
    child.on('message', (word) => (word === 'over' ? overOnes : readyOnes).add(child))
    child.once('exit', (exit, signal) => {
      running.delete(child)
      readyOnes.delete(child)
      const well = overOnes.delete(child)
      if (!well && !stopping) return again(signal ?? `exit ${exit}`)
      if (well) code = Math.max(code, exit ?? 0)
      if (well && exit !== null && exit > 1) stop()
      done()
    })
  }
  const again = (how: string) => {
    output.say(`piecework: a worker process was ended by ${how}; starting another`)
    waiting++
    clock.after(
      Math.min(againMs * 2 ** crashes++, 60_000),
      () => {
        waiting--
        if (stopping) done()
        else begin()
      },
      true,
    )
  }
  const stop = () => {
    stopping = true
    for (const child of running) child.kill('SIGTERM')
    done()
  }
  for (let i = 0; i < count; i++) begin()
  return { ready: () => readyOnes.size === count, ended, stop }
}
