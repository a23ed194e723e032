// Ctrl-C once lets running COMMANDs end, twice ends them; either way nothing is lost and the next run goes on.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../dist/ground/clock.js'
import { numbers, type Room, room, until } from './cli.js'

/** The children of a process whose command line holds this text. */
const childrenOf = (pid: number, text: string): number[] =>
  spawnSync('pgrep', ['-P', String(pid), '-f', text], { encoding: 'utf8' })
    .stdout.split('\n')
    .filter(Boolean)
    .map(Number)

/** False for a process that is gone, and for one of which only the entry is left until its parent looks. */
function works(pid: number): boolean {
  const line = `/proc/${pid}/cmdline`
  return existsSync(line) && readFileSync(line).length > 0
}

const status = async ({ run }: Room) => (await run(['status', 'b', '--json'])).json()[0]?.queues[0]

describe('a run that is interrupted', () => {
  it('once: no new tasks, running ones end and count, exit 130', async () => {
    const here = room()
    const { start, lines, path } = here
    const script = `echo $0 >> ${path('begun')}; sleep 1; echo $0 >> ${path('ended')}`
    const started = start(['run', '-j', '2', '--batch', 'b', '--', 'sh', '-c', script], {
      input: numbers(20),
    })
    await until('two run', () => lines('begun').length >= 2)
    started.child.kill('SIGINT')
    const ended = await started.finished
    expect([ended.code, ended.signal]).toEqual([130, null])
    expect(ended.stderr).toMatch(/stopping; 2 running may end/)
    expect(lines('ended').sort()).toEqual(lines('begun').sort())
    const queue = await status(here)
    expect(queue).toMatchObject({ ready: 20 - lines('ended').length, leased: 0, scheduled: 0, dead: 0 })
  }, 60_000)

  it('by a signal that a COMMAND felt as well: that is no failure of its own, nothing is counted', async () => {
    const here = room()
    const { start, lines, path, write, run } = here
    const wait = `while [ ! -e ${path('go')} ]; do sleep 0.02; done`
    const script = `echo $0 >> ${path('begun')}; ${wait}; kill -INT $$`
    const words = ['run', '-j', '1', '--batch', 'b', '--deliveries', '1', '--', 'sh', '-c', script]
    const started = start(words, { input: numbers(1) })
    await until('it runs', () => lines('begun').length === 1)
    started.child.kill('SIGINT')
    await until('it says so', () => started.stderr.includes('stopping'))
    write('go', '')
    const ended = await started.finished
    expect([ended.code, ended.stderr]).toEqual([130, expect.stringContaining('0 of 1 done, 1 open')])
    expect(await status(here)).toMatchObject({ ready: 1, leased: 0, scheduled: 0, dead: 0 })
    // Ended by the same signal while nobody interrupts the run, it has failed.
    const again = await run(words, { input: numbers(1) })
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('killed by SIGINT')])
  }, 60_000)

  it('twice: TERM, their tasks are given back uncounted, exit 130', async () => {
    const here = room()
    const { start, run, lines, path } = here
    const trap = `trap 'echo term >> ${path('terms')}; exit 0' TERM`
    const script = `${trap}; echo $0 >> ${path('begun')}; while :; do sleep 0.1; done`
    const started = start(['run', '-j', '2', '--batch', 'b', '--', 'sh', '-c', script], {
      input: numbers(5),
    })
    await until('two run', () => lines('begun').length >= 2)
    started.child.kill('SIGINT')
    await until('it says so', () => started.stderr.includes('stopping'))
    started.child.kill('SIGINT')
    const ended = await started.finished
    expect(ended.code).toBe(130)
    expect(lines('terms')).toEqual(['term', 'term'])
    expect(await status(here)).toMatchObject({ ready: 5, leased: 0, dead: 0 })
    const again = await run(['run', '--json', '--batch', 'b', '--', 'sh', '-c', 'echo $PIECEWORK_DELIVERY'], {
      input: numbers(5),
    })
    expect(again.json().at(-1)).toMatchObject({ total: 5, done: 5, dead: 0, retries: 0 })
  }, 60_000)

  it('KILL follows for those that do not hear TERM', async () => {
    const here = room()
    const { start, lines, path } = here
    const script = `trap '' TERM; echo $$ >> ${path('begun')}; while :; do sleep 0.1; done`
    const started = start(['run', '-j', '1', '--batch', 'b', '--', 'sh', '-c', script], {
      input: numbers(2),
    })
    await until('one runs', () => lines('begun').length >= 1)
    started.child.kill('SIGINT')
    await until('it says so', () => started.stderr.includes('stopping'))
    started.child.kill('SIGINT')
    expect((await started.finished).code).toBe(130)
    expect(() => process.kill(Number(lines('begun')[0]), 0)).toThrow('ESRCH')
    expect(await status(here)).toMatchObject({ ready: 2, leased: 0 })
  }, 60_000)

  it('ends at the deadline when what starts its COMMANDs was stopped', async () => {
    const here = room()
    const { start, path } = here
    // The first 16 are started by the run itself.
    const script = `echo $$ >> ${path('begun')}; test $(wc -l < ${path('begun')}) -le 24 || exec sleep 300`
    const started = start(['run', '-j', '2', '--batch', 'b', '--', 'sh', '-c', script], { input: numbers(40) })
    const launchers = () => childrenOf(started.child.pid as number, 'launcher.js')
    const held = () => launchers().flatMap((launcher) => childrenOf(launcher, 'sleep 300'))
    await until('two COMMANDs of launchers hang', () => held().length === 2)
    const [stopped, hanging] = [launchers(), held()]
    for (const launcher of stopped) process.kill(launcher, 'SIGSTOP')
    started.child.kill('SIGINT')
    await until('it says so', () => started.stderr.includes('stopping'))
    started.child.kill('SIGINT')
    const began = systemClock.monotonicMs()
    expect((await started.finished).code).toBe(130)
    expect(systemClock.monotonicMs() - began).toBeLessThan(12_000)
    await until('nothing of it is left', () => ![...stopped, ...hanging].some(works))
    expect(await status(here)).toMatchObject({ leased: 0, dead: 0 })
  }, 60_000)

  it('by SIGTERM: 143; while it still reads: what came so far is kept', async () => {
    const here = room()
    const { start, lines, path } = here
    const started = start(['run', '-j', '1', '--batch', 'b', '--', 'sh', '-c', `echo $0 >> ${path('log')}`])
    started.child.stdin?.write('a\nb\n')
    await until('both are done while the input is open', () => lines('log').length === 2)
    started.child.kill('SIGTERM')
    const ended = await started.finished
    expect(ended.code).toBe(143)
    expect(await status(here)).toMatchObject({ drained: true, ready: 0 })
  }, 60_000)
})

it('works while the input is still being read, and stops on a bad line in it', async () => {
  const here = room()
  const { start, lines, path } = here
  const started = start([
    'run',
    '--json',
    '-j',
    '1',
    '--format',
    'ndjson',
    '--batch',
    'b',
    '--',
    'sh',
    '-c',
    `cat >> ${path('log')}`,
  ])
  started.child.stdin?.write('1\n2\n')
  await until('both are done', () => lines('log').length === 2)
  started.child.stdin?.write('3\n{"a":\n4\n')
  const ended = await started.finished
  expect(ended.code).toBe(2)
  expect(JSON.parse(ended.stderr).error).toMatchObject({
    code: 'PW_JSON_INVALID',
    message: expect.stringContaining('Line 4'),
  })
  expect((await status(here))?.dead).toBe(0)
}, 60_000)
