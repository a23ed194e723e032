// Starts the programs of the laws as real processes, hears what they say, and ends each by its pid.
import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach } from 'vitest'

/** One thing a process said or wrote down; instants (`at`) are ms of the monotonic clock all processes share. */
export interface Line {
  what: string
  at: number
  pid: number
  id?: string
  number?: number
  fence?: number
  act?: string
  code?: string
  text?: string
  duplicate?: boolean
  item?: { payload: { do: string }; options: { dedupKey: string } }
  child?: number
  runMs?: number
  more?: number
}

export interface Ended {
  code: number | null
  signal: NodeJS.Signals | null
  at: number
}

export interface Process {
  readonly pid: number
  readonly startedAt: number
  /** Everything it has said so far. */
  readonly lines: readonly Line[]
  readonly ended: Ended | null
  readonly exit: Promise<Ended>
  readonly stderr: string
  /** Resolves with the first `count` lines of this kind, those said before included; rejects when it ends first. */
  heard(what: string, count?: number): Promise<Line[]>
  tell(word: { say: string; [field: string]: unknown }): void
  kill(signal: NodeJS.Signals): void
}

export const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6

const living = new Set<ChildProcess>()
const endAll = async () => {
  const exits = [...living].map((child) => new Promise((resolve) => child.once('exit', resolve)))
  for (const child of living) child.kill('SIGKILL')
  await Promise.all(exits)
}
afterEach(endAll)
afterAll(endAll)
process.on('exit', () => {
  for (const child of living) child.kill('SIGKILL')
})

/** How long a test waits for a process on a busy machine before it gives up. */
const patienceMs = 25_000

const programs = {
  worker: new URL('./programs/worker.js', import.meta.url),
  producer: new URL('./programs/producer.js', import.meta.url),
  holder: new URL('./programs/holder.js', import.meta.url),
  effects: new URL('./programs/effects.js', import.meta.url),
  scheduler: new URL('./programs/scheduler.js', import.meta.url),
  'full-disk': new URL('./programs/full-disk.js', import.meta.url),
}

/** Starts a program with its orders; `wrap` is a command that starts it in another surrounding. */
export function start(program: keyof typeof programs, orders: object, wrap: string[] = []): Process {
  const path = fileURLToPath(programs[program])
  const [command = '', ...args] = [...wrap, process.execPath, path, JSON.stringify(orders)]
  const startedAt = monotonicMs()
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
  living.add(child)
  const lines: Line[] = []
  const listeners = new Set<() => void>()
  let ended: Ended | null = null
  let stderr = ''
  child.stderr?.on('data', (text: Buffer) => {
    stderr = (stderr + text.toString()).slice(-4000)
  })
  child.on('message', (line) => {
    lines.push(line as Line)
    for (const listen of [...listeners]) listen()
  })
  const exit = new Promise<Ended>((resolve) => {
    const over = (code: number | null, signal: NodeJS.Signals | null) => {
      living.delete(child)
      ended = { code, signal, at: monotonicMs() }
      for (const listen of [...listeners]) listen()
      resolve(ended)
    }
    child.once('exit', over)
    child.once('error', () => over(null, null))
  })
  return {
    pid: child.pid ?? 0,
    startedAt,
    lines,
    exit,
    get ended() {
      return ended
    },
    get stderr() {
      return stderr
    },
    heard: (what, count = 1) =>
      hear(
        listeners,
        () => {
          const found = lines.filter((line) => line.what === what)
          if (found.length >= count) return found.slice(0, count)
          if (ended) throw new Error(`${program} ended before "${what}": ${JSON.stringify(ended)}\n${stderr}`)
          return undefined
        },
        `${count} x "${what}" of ${program}`,
      ),
    tell: (word) => void (child.connected && child.send(word, () => {})),
    kill: (signal) => void child.kill(signal),
  }
}

/** Resolves with what `look` finds, now or after one of the calls of the listener it leaves. */
function hear<T>(listeners: Set<() => void>, look: () => T | undefined, what: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer)
      listeners.delete(listen)
    }
    const listen = () => {
      try {
        const found = look()
        if (found === undefined) return
        stop()
        resolve(found)
      } catch (error) {
        stop()
        reject(error)
      }
    }
    const timer = setTimeout(() => {
      stop()
      reject(new Error(`Waited ${patienceMs} ms for ${what}.`))
    }, patienceMs)
    listeners.add(listen)
    listen()
  })
}

/** Looks every few ms until `look` answers something other than undefined or false; fails after 25 s. */
export async function until<T>(what: string, look: () => Promise<T | undefined | false> | T | undefined | false) {
  for (const endMs = monotonicMs() + patienceMs; ; await passed(5)) {
    const found = await look()
    if (found !== undefined && found !== false) return found as T
    if (monotonicMs() > endMs) throw new Error(`Waited ${patienceMs} ms for ${what}.`)
  }
}

/** For what only time brings: a process that stays stopped, a machine that is left alone for a moment. */
export const passed = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** The middle one of some figures; of an even number the upper of the two. */
export const median = (figures: readonly number[]): number =>
  [...figures].sort((a, b) => a - b)[figures.length >> 1] ?? Number.NaN
