// Runs one COMMAND: no shell, its own process group, stdout kept whole, the end of stderr, TERM before KILL.
import { spawn } from 'node:child_process'
import { accessSync, closeSync, constants, openSync, readSync, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import type { Clock } from '../ground/clock.js'
import { PieceworkError } from '../ground/errors.js'
import { Capture } from './capture.js'

export interface CommandCall {
  /** The words; the first is looked up in PATH unless `file` is given. */
  words: readonly string[]
  /** Where the first word was found. */
  file: string | null
  /** Written to stdin; null gives it /dev/null. */
  input: string | null
  /** Added to what this process was given itself. */
  env: Readonly<Record<string, string>>
}

export interface Ended {
  /** Null when a signal ended it. */
  exit: number | null
  signal: NodeJS.Signals | null
  /** True when it ended after stop() was called. */
  stopped: boolean
  stdout: Capture
  /** The last bytes of stderr. */
  stderr: Buffer
  startedAt: number
  runMs: number
}

/** A running COMMAND. */
export interface Running {
  readonly pid: number
  readonly ended: Promise<Ended>
  /** TERM to its process group, KILL after `killMs`. */
  stop(killMs: number): void
}

/** Read once: looking up each variable anew would cost as much as a small COMMAND. */
const inherited = { ...process.env }

/** Bytes of stderr kept of one call: for people; the error of the delivery takes the last 4 KiB. */
const stderrBytesMax = 65_536
/** How long a process that COMMAND left behind may hold its output open. */
export const lingerMs = 2000

/** Starts it; throws PW_COMMAND_MISSING, PW_COMMAND_REFUSED, PW_ARGUMENT_INVALID, PW_SPAWN_FAILED. */
export async function start(clock: Clock, call: CommandCall): Promise<Running> {
  const [name = '', ...rest] = call.words
  const startedAt = clock.wallMs()
  const beganMs = clock.monotonicMs()
  const child = spawned(call.file ?? name, name, rest, call)
  const stdout = new Capture()
  let stderr = Buffer.alloc(0)
  let stopped = false
  const timers: { cancel(): void }[] = []
  child.stdout?.on('data', (chunk: Buffer) => stdout.add(chunk))
  child.stderr?.on('data', (chunk: Buffer) => {
    stderr = Buffer.concat([stderr, chunk])
    if (stderr.length > stderrBytesMax) stderr = Buffer.from(stderr.subarray(-stderrBytesMax))
  })
  const ended = new Promise<Ended>((resolve) => {
    child.once('exit', () => {
      const cut = () => {
        child.stdout?.destroy()
        child.stderr?.destroy()
      }
      timers.push(clock.after(lingerMs, cut))
    })
    child.once('close', (exit, signal) => {
      for (const timer of timers) timer.cancel()
      resolve({ exit, signal, stopped, stdout, stderr, startedAt, runMs: clock.monotonicMs() - beganMs })
    })
  })
  await begun(child, call, name)
  if (call.input !== null) {
    // It need not read what it is given.
    child.stdin?.on('error', () => {})
    child.stdin?.end(call.input)
  }
  const send = (signal: NodeJS.Signals) => signalGroup(child.pid as number, signal)
  return {
    pid: child.pid ?? 0,
    ended,
    stop(killMs) {
      if (stopped || child.exitCode !== null || child.signalCode !== null) return
      stopped = true
      send('SIGTERM')
      timers.push(clock.after(killMs, () => send('SIGKILL'), true))
    },
  }
}

function spawned(file: string, name: string, rest: readonly string[], call: CommandCall) {
  try {
    return spawn(file, rest, {
      argv0: name,
      detached: true,
      env: { ...inherited, ...call.env },
      stdio: [call.input === null ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    })
  } catch (error) {
    throw spawnError(error, name)
  }
}

/** Resolves once the process exists. */
function begun(child: ReturnType<typeof spawn>, call: CommandCall, name: string): Promise<void> {
  if (child.pid !== undefined) {
    // Later failures (a signal that could not be sent) have no other listener.
    child.on('error', () => {})
    return Promise.resolve()
  }
  return new Promise((_, reject) => child.once('error', (error) => reject(spawnError(error, call.file ?? name))))
}

function spawnError(error: unknown, name: string): PieceworkError {
  const { code, message } = error as NodeJS.ErrnoException
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
      return new PieceworkError('PW_COMMAND_MISSING', `${name} was not found.`, { command: name }, { cause: error })
    case 'EACCES':
    case 'ENOEXEC':
    case 'EPERM':
    case 'EISDIR':
      return new PieceworkError(
        'PW_COMMAND_REFUSED',
        `${name} cannot be executed: ${code}.`,
        { command: name },
        { cause: error },
      )
    case 'E2BIG':
    case 'ERR_INVALID_ARG_VALUE':
      return new PieceworkError(
        'PW_ARGUMENT_INVALID',
        code === 'E2BIG'
          ? 'The item is too long for an argument.'
          : 'The item has a NUL character, which no argument can hold.',
        {},
        { cause: error },
      )
    default:
      return new PieceworkError(
        'PW_SPAWN_FAILED',
        `${name} could not be started: ${message}.`,
        { command: name },
        { cause: error },
      )
  }
}

/** A group that has ended already is no trouble. */
export function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/** Whether the file can be executed; null when there is none. */
function executable(place: string): boolean | null {
  try {
    const isFile = statSync(place).isFile()
    accessSync(place, constants.X_OK)
    return isFile
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EACCES' ? false : null
  }
}

/** The place, unless it is a script whose first line names an interpreter that is not there, as a shell says it. */
function withInterpreter(place: string, command: string): string {
  const interpreter = /^#![ \t]*(\/[^\s\0]+)/.exec(firstLineOf(place))?.[1]
  if (interpreter === undefined || statSync(interpreter, { throwIfNoEntry: false })?.isFile()) return place
  const text = `${place} cannot be executed: its interpreter ${interpreter} does not exist.`
  throw new PieceworkError('PW_COMMAND_REFUSED', text, { command, interpreter })
}

/** The beginning of a file, as far as the system looks for an interpreter; nothing when it may not be read. */
function firstLineOf(place: string): string {
  const bytes = Buffer.alloc(256)
  try {
    const fd = openSync(place, 'r')
    try {
      return bytes.toString('latin1', 0, readSync(fd, bytes)).split('\n', 1)[0] ?? ''
    } finally {
      closeSync(fd)
    }
  } catch {
    return ''
  }
}

/** Where COMMAND is; throws PW_COMMAND_MISSING (exit 127) or PW_COMMAND_REFUSED (exit 126) as a shell would. */
export function lookUp(name: string, path: string = process.env.PATH ?? ''): string {
  const places = name.includes('/')
    ? [name]
    : path.split(delimiter).map((folder) => join(folder === '' ? '.' : folder, name))
  let refused: string | null = null
  for (const place of places) {
    const found = executable(place)
    if (found === true) return withInterpreter(place, name)
    if (found === false) refused ??= place
  }
  if (refused !== null) {
    throw new PieceworkError('PW_COMMAND_REFUSED', `${refused} cannot be executed.`, { command: name })
  }
  throw new PieceworkError('PW_COMMAND_MISSING', `${name === '' ? 'An empty word' : name} was not found.`, {
    command: name,
  })
}
