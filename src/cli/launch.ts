// Starts COMMANDs: the first few here, the many through launcher processes, which can start several at a time.
import { type ChildProcess, fork } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import type { Clock } from '../ground/clock.js'
import { type ErrorCode, PieceworkError } from '../ground/errors.js'
import { Capture, type Packed } from './capture.js'
import { type CommandCall, type Ended, lingerMs, type Running, signalGroup, start } from './child.js'

/** What a launcher is told, and what it answers. */
export type Order = { id: number; do: 'start'; call: CommandCall } | { id: number; do: 'stop'; killMs: number }
export type Answer =
  | { id: number; is: 'ready' }
  | { id: number; is: 'started'; pid: number }
  | { id: number; is: 'refused'; code: ErrorCode; message: string }
  | { id: number; is: 'ended'; ended: Omit<Ended, 'stdout'>; stdout: Packed }

/** COMMANDs that this process starts itself before it sets up launchers: a short run never pays for them. */
const startedHereMax = 16
/** As many as there are processors, but starting processes is not all that they have to do. */
const launchersMax = 4

/** A launcher that has not answered so long after the last moment it had is stopped or hangs. */
const unheardMs = 1000

const launcherFile = fileURLToPath(new URL('./launcher.js', import.meta.url))

/** Starts COMMANDs for one run or worker that runs so many at once. */
export class Launch {
  readonly clock: Clock
  readonly #concurrency: number
  #launchers: Launcher[] = []
  #started = 0

  constructor(clock: Clock, concurrency: number) {
    this.clock = clock
    this.#concurrency = concurrency
  }

  /** As start() of child.ts. */
  start(call: CommandCall): Promise<Running> {
    if (++this.#started === startedHereMax) {
      const count = Math.min(this.#concurrency, availableParallelism(), launchersMax)
      if (count > 1) this.#launchers = Array.from({ length: count }, () => new Launcher(this.clock))
    }
    const ready = this.#launchers.filter((launcher) => launcher.ready)
    const idlest = ready.reduce<Launcher | null>((best, one) => (best && best.load <= one.load ? best : one), null)
    return idlest === null ? start(this.clock, call) : idlest.start(call)
  }

  /** Ends launchers that have COMMANDs left after so long, and those with them: one that is stopped hears nothing. */
  endWithin(ms: number): void {
    for (const launcher of this.#launchers) launcher.endWithin(ms)
  }

  /** Lets the launchers go; what they still run is ended. */
  close(): void {
    for (const launcher of this.#launchers.splice(0)) launcher.close()
  }
}

interface Call {
  pid: number
  begun: Deferred<Running>
  ended: Deferred<Ended>
}

class Launcher {
  readonly #process: ChildProcess
  readonly #calls = new Map<number, Call>()
  #next = 1
  /** True from its first word until it is gone. */
  ready = false

  constructor(private readonly clock: Clock) {
    // In a group of its own: Ctrl-C is for the run. The end of its channel tells it when the run is gone.
    const stdio: ['ignore', 'inherit', 'inherit', 'ipc'] = ['ignore', 'inherit', 'inherit', 'ipc']
    this.#process = fork(launcherFile, { detached: true, serialization: 'advanced', stdio })
    this.#process.on('message', (answer) => this.#hear(answer as Answer))
    this.#process.on('error', () => this.#lost())
    this.#process.on('exit', () => this.#lost())
  }

  get load(): number {
    return this.#calls.size
  }

  start(call: CommandCall): Promise<Running> {
    const id = this.#next++
    const made: Call = { pid: 0, begun: new Deferred(), ended: new Deferred() }
    this.#calls.set(id, made)
    this.#send({ id, do: 'start', call })
    return made.begun.promise
  }

  endWithin(ms: number): void {
    this.clock.after(ms, () => this.#calls.size > 0 && this.#process.kill('SIGKILL'), true)
  }

  close(): void {
    // With nothing to end there is nothing to tell it, and one that is stopped would hear it never.
    if (this.#calls.size === 0) this.#process.kill('SIGKILL')
    else if (this.#process.connected) this.#process.disconnect()
  }

  #send(order: Order): void {
    this.#process.send(order, (error) => {
      if (error) this.#lost()
    })
  }

  #hear(answer: Answer): void {
    const { id } = answer
    if (answer.is === 'ready') this.ready = true
    const call = this.#calls.get(id)
    if (!call || answer.is === 'ready') return
    if (answer.is === 'started') {
      call.pid = answer.pid
      const stop = (killMs: number) => {
        this.#send({ id, do: 'stop', killMs })
        // Its output may be held open for a while by what it left behind.
        this.clock.after(killMs + lingerMs + unheardMs, () => this.#calls.has(id) && this.#process.kill('SIGKILL'))
      }
      return call.begun.resolve({ pid: answer.pid, ended: call.ended.promise, stop })
    }
    this.#calls.delete(id)
    if (answer.is === 'refused') return call.begun.reject(new PieceworkError(answer.code, answer.message))
    const { ended, stdout } = answer
    call.ended.resolve({ ...ended, stderr: Buffer.from(ended.stderr), stdout: Capture.unpack(stdout) })
  }

  /** It was killed: what it had started is ended, too, and the tasks are given back. */
  #lost(): void {
    this.ready = false
    const error = new PieceworkError('PW_SPAWN_FAILED', 'The process that starts COMMANDs was killed.')
    for (const { pid, begun, ended } of this.#calls.values()) {
      if (pid > 0) signalGroup(pid, 'SIGKILL')
      begun.reject(error)
      ended.reject(error)
    }
    this.#calls.clear()
  }
}

class Deferred<T> {
  resolve: (value: T) => void = () => {}
  reject: (error: unknown) => void = () => {}
  readonly promise = new Promise<T>((resolve, reject) => {
    this.resolve = resolve
    this.reject = reject
  })

  constructor() {
    // Of a COMMAND that never began nobody awaits the end.
    this.promise.catch(() => {})
  }
}
