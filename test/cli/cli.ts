// Runs the built command line as a real process in a folder of its own, for the tests of floor 8.
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { pause, systemClock } from '../../dist/ground/clock.js'

export const mainFile = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

export interface Finished {
  code: number | null
  signal: NodeJS.Signals | null
  stdout: string
  stderr: string
  /** The objects of stdout, one a line. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read all shapes there are
  json(): Record<string, any>[]
}

export interface Started {
  child: ChildProcess
  /** What it wrote so far. */
  readonly stdout: string
  readonly stderr: string
  finished: Promise<Finished>
}

export interface StartOptions {
  input?: string | Uint8Array
  env?: NodeJS.ProcessEnv
  uid?: number
}

export interface Room {
  folder: string
  path(name: string): string
  write(name: string, text: string | Uint8Array): string
  read(name: string): string
  /** The lines of a file that COMMANDs append to; none while it is missing. */
  lines(name: string): string[]
  start(words: readonly string[], options?: StartOptions): Started
  run(words: readonly string[], options?: StartOptions): Promise<Finished>
}

/** A fresh folder that goes away with the test. */
export function room(): Room {
  const folder = mkdtempSync(join(tmpdir(), 'piecework-cli-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }))
  const path = (name: string) => join(folder, name)
  const start: Room['start'] = (words, options = {}) => begin(folder, words, options)
  return {
    folder,
    path,
    write(name, text) {
      writeFileSync(path(name), text)
      return path(name)
    },
    read: (name) => readFileSync(path(name), 'utf8'),
    lines: (name) => (existsSync(path(name)) ? readFileSync(path(name), 'utf8').split('\n').filter(Boolean) : []),
    start,
    run: (words, options) => start(words, options).finished,
  }
}

function begin(folder: string, words: readonly string[], { input, env, uid }: StartOptions): Started {
  const { PIECEWORK_URL: _, ...inherited } = process.env
  const child = spawn(process.execPath, [mainFile, ...words], {
    cwd: folder,
    env: { ...inherited, ...env },
    ...(uid === undefined ? {} : { uid }),
  })
  const out = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out.stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    out.stderr += text
  })
  child.stdin.on('error', () => {})
  if (input !== undefined) child.stdin.end(input)
  const finished = new Promise<Finished>((resolve) => {
    child.once('close', (code, signal) => {
      const json = () =>
        out.stdout
          .trim()
          .split('\n')
          .filter(Boolean)
          .map((line) => JSON.parse(line))
      resolve({ code, signal, ...out, json })
    })
  })
  onTestFinished(() => void (child.exitCode === null && child.kill('SIGKILL')))
  return {
    child,
    finished,
    get stdout() {
      return out.stdout
    },
    get stderr() {
      return out.stderr
    },
  }
}

/** Looks every 20 ms until the condition holds; fails after `ms`. */
export async function until(what: string, condition: () => boolean | Promise<boolean>, ms = 20_000): Promise<void> {
  const endMs = systemClock.monotonicMs() + ms
  while (!(await condition())) {
    if (systemClock.monotonicMs() > endMs) throw new Error(`Waited ${ms} ms in vain: ${what}`)
    await pause(systemClock, 20)
  }
}

/** Lines 1 … n. */
export const numbers = (n: number): string => Array.from({ length: n }, (_, index) => `${index + 1}\n`).join('')
