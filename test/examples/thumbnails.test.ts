// The example behind `npm start` as a newcomer runs it: real processes, one killed, every figure checked from outside.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const program = fileURLToPath(new URL('../../examples/thumbnails/main.js', import.meta.url))
const pictures = fileURLToPath(new URL('../../examples/thumbnails/pictures', import.meta.url))
/** Two cores that others use as well. */
const slowMs = 120_000

interface Run {
  code: number | null
  stdout: string[]
  stderr: string[]
}

const running = new Set<ChildProcess>()

/** Runs the example on a folder; sends `signal` when a line of its stderr matches `on`. */
async function start(folder: string, args: string[], stop?: { on: RegExp; signal: NodeJS.Signals }): Promise<Run> {
  const child = spawn(process.execPath, [program, '--folder', folder, ...args])
  running.add(child)
  const run: Run = { code: null, stdout: [], stderr: [] }
  createInterface({ input: child.stdout }).on('line', (line) => run.stdout.push(line))
  createInterface({ input: child.stderr }).on('line', (line) => {
    run.stderr.push(line)
    if (stop?.on.test(line)) child.kill(stop.signal)
  })
  await once(child, 'close')
  running.delete(child)
  return { ...run, code: child.exitCode }
}

const figuresOf = (run: Run) => JSON.parse(run.stdout.at(-1) ?? 'null') as Record<string, number | boolean>
const newFolder = () => mkdtempSync(join(tmpdir(), 'piecework-thumbnails-'))
const thumbnailsIn = (folder: string) => join(folder, '.work', 'thumbnails')
const logOf = (folder: string) => readFileSync(join(folder, '.work', 'workers.log'), 'utf8')

const expected = readdirSync(pictures)
  .filter((file) => file.endsWith('.jpg'))
  .flatMap((file) => [16, 32, 48, 64, 96, 128, 192, 256].map((width) => `${file.slice(0, -4)}@${width}.webp`))

const folders = { whole: newFolder(), broken: newFolder() }

afterAll(() => {
  for (const child of running) child.kill('SIGKILL')
  for (const folder of Object.values(folders)) rmSync(folder, { recursive: true, force: true })
})

describe('a whole run', () => {
  const folder = folders.whole
  let first: Run

  beforeAll(async () => {
    first = await start(folder, ['--json'])
  }, slowMs)

  it('does all it can do, although one of its workers is killed', () => {
    expect(first.stderr.join('\n')).toMatch(/^worker [1-4] was killed with SIGKILL while it held task number \d+$/m)
    expect(first.stderr.join('\n')).toMatch(/^what it held was given back after \d+\.\d s/m)
    const { redelivered, ms, ...rest } = figuresOf(first)
    expect(rest).toEqual({ items: 337, done: 336, dead: 1, lost: 0, duplicatesInEffect: 0 })
    expect(redelivered).toBeGreaterThanOrEqual(1)
    expect(ms).toBeGreaterThan(0)
    expect(first.code).toBe(0)
  })

  it('left every thumbnail once, as wide as asked for, and nothing else', async () => {
    expect(expected).toHaveLength(336)
    const there = readdirSync(thumbnailsIn(folder))
    expect(there.sort()).toEqual([...expected].sort())
    const widths = await Promise.all(
      there.map(async (name) => (await sharp(join(thumbnailsIn(folder), name)).metadata()).width),
    )
    expect(widths).toEqual(there.map((name) => Number(/@(\d+)/.exec(name)?.[1])))
  })

  it('does nothing when it is started again, and says the same', async () => {
    const log = logOf(folder)
    const second = await start(folder, ['--json'])
    expect(figuresOf(second)).toEqual({ ...figuresOf(first), again: true })
    expect(second.code).toBe(0)
    expect(logOf(folder)).toBe(log)
  })

  it('says so when a thumbnail is gone or a stray file is there', async () => {
    rmSync(join(thumbnailsIn(folder), expected[7] as string))
    writeFileSync(join(thumbnailsIn(folder), `${expected[8]}.1.part`), 'half')
    const third = await start(folder, ['--json'])
    expect(figuresOf(third)).toEqual({ ...figuresOf(first), lost: 1, duplicatesInEffect: 1, again: true })
    expect(third.code).toBe(1)
    expect(third.stderr).toContain('NOT AS IT SHOULD BE: 1 items were lost')
  })
})

/** Resolves when none of these processes is left; fails after 20 s. */
async function gone(pids: number[]): Promise<void> {
  const alive = (pid: number) => {
    try {
      return process.kill(pid, 0)
    } catch {
      return false
    }
  }
  for (let looks = 0; pids.some(alive); looks++) {
    if (looks === 400) expect.fail(`still there after 20 s: ${pids.filter(alive).join(', ')}`)
    await setTimeout(50)
  }
}

describe('a run that is broken off', () => {
  const folder = folders.broken
  const atTheKill = /^worker \d was killed/

  it(
    'goes on where it ended, after kill -9 of the parent and after an interrupt',
    async () => {
      const killed = await start(folder, ['--json'], { on: atTheKill, signal: 'SIGKILL' })
      expect(killed.code).toBe(null)
      expect(killed.stdout).toEqual([])
      const pids = [...logOf(folder).matchAll(/^worker \d is process (\d+)$/gm)].map((match) => Number(match[1]))
      expect(pids).toHaveLength(4)
      await gone(pids)

      // By now a worker that was killed has left its tasks to whoever comes next.
      const interrupted = await start(folder, ['--json'], { on: /^\[/, signal: 'SIGINT' })
      expect(interrupted.code).toBe(130)
      expect(interrupted.stderr.at(-1)).toBe('Nothing is lost: npm start goes on where this run ended.')

      const last = await start(folder, ['--json'])
      const { redelivered, ms, ...rest } = figuresOf(last)
      expect(rest).toEqual({ items: 337, done: 336, dead: 1, lost: 0, duplicatesInEffect: 0 })
      expect(redelivered).toBeGreaterThanOrEqual(1)
      expect(ms).toBeGreaterThan(0)
      expect(last.code).toBe(0)
      expect(readdirSync(thumbnailsIn(folder)).sort()).toEqual([...expected].sort())
    },
    slowMs,
  )

  it(
    'starts over with --new',
    async () => {
      const anew = await start(folder, ['--new'], { on: atTheKill, signal: 'SIGINT' })
      expect(anew.stderr[0]).toMatch(/^337 of 337 items to do/)
      expect(anew.code).toBe(130)
    },
    slowMs,
  )
})

it('refuses an option it does not know', async () => {
  const run = await start(folders.whole, ['--nwe'])
  expect(run.code).toBe(2)
  expect(run.stderr.at(-1)).toBe('npm start -- [--new] [--json]')
})
