// Launchers start COMMANDs as the run itself would, survive being many, and take their COMMANDs along when they go.
import { execFileSync } from 'node:child_process'
import { afterEach, expect, it } from 'vitest'
import type { Ended } from '../../dist/cli/child.js'
import { Launch } from '../../dist/cli/launch.js'
import { systemClock } from '../../dist/ground/clock.js'
import { numbers, room, until } from './cli.js'

const open: Launch[] = []
afterEach(() => {
  for (const launch of open.splice(0)) launch.close()
})

const shell = (script: string, input: string | null = null) => ({
  words: ['sh', '-c', script],
  file: null,
  input,
  env: { PIECEWORK_ID: '7' },
})

const whole = async ({ stdout }: Ended): Promise<Buffer> => {
  const pieces: Buffer[] = []
  for await (const piece of stdout.pieces()) pieces.push(piece)
  return Buffer.concat(pieces)
}

/** A launch whose launchers are up. */
async function warm() {
  const launch = new Launch(systemClock, 4)
  open.push(launch)
  const run = async (script: string, input: string | null = null): Promise<Ended> =>
    (await launch.start(shell(script, input))).ended
  const parent = async () => (await whole(await run('echo $PPID'))).toString().trim()
  for (let started = 0; (await parent()) === String(process.pid); started++) expect(started).toBeLessThan(2000)
  return { launch, run, parent }
}

const alive = (pid: number) => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

it('hand back exit, signal, outputs of any size and bytes, and refusals', async () => {
  const { run, launch } = await warm()
  const ended = await run('printf "\\377 $PIECEWORK_ID "; cat; echo err >&2; exit 3', 'in')
  expect([ended.exit, ended.signal, ended.stopped]).toEqual([3, null, false])
  expect(await whole(ended)).toEqual(Buffer.concat([Buffer.from([0xff]), Buffer.from(' 7 in')]))
  expect(ended.stderr.toString()).toBe('err\n')
  expect((await run('kill -9 $$')).signal).toBe('SIGKILL')
  const large = await run('head -c 3000000 /dev/zero')
  expect([large.stdout.size, (await whole(large)).length]).toEqual([3_000_000, 3_000_000])
  large.stdout.drop()
  await expect(launch.start({ words: ['no-such-command'], file: null, input: null, env: {} })).rejects.toMatchObject({
    code: 'PW_COMMAND_MISSING',
  })
  const slow = await launch.start(shell('sleep 60'))
  slow.stop(100)
  expect(await slow.ended).toMatchObject({ stopped: true, signal: 'SIGTERM' })
}, 60_000)

it('share the work, and what a killed one had started is ended and reported', async () => {
  const { run, launch } = await warm()
  const outputs = await Promise.all(Array.from({ length: 40 }, async (_, n) => whole(await run(`echo ${n} $PPID`))))
  const rows = outputs.map((output) => output.toString().trim().split(' '))
  expect(rows.map(([n]) => n)).toEqual(rows.map((_, n) => String(n)))
  const slow = await launch.start(shell('echo $PPID; exec sleep 60'))
  const launcher = execFileSync('ps', ['-o', 'ppid=', '-p', String(slow.pid)]).toString()
  process.kill(Number(launcher), 'SIGKILL')
  await expect(slow.ended).rejects.toMatchObject({ code: 'PW_SPAWN_FAILED' })
  await until('its COMMAND is gone', () => !alive(slow.pid))
  expect((await run('echo on')).exit).toBe(0)
}, 60_000)

it('end what they started when the run is killed', async () => {
  const { start, lines, path } = room()
  const script = `echo $$ $PPID >> ${path('pids')}; test $0 -lt 60 || exec sleep 60`
  const { child, finished } = start(['run', '-q', '-j', '4', '--', 'sh', '-c', script], { input: numbers(64) })
  const sleepers = () =>
    lines('pids')
      .slice(59)
      .map((line) => line.split(' ').map(Number))
  await until('all that sleep run', () => sleepers().length >= 4)
  child.kill('SIGKILL')
  await finished
  const launched = sleepers().filter(([, parent]) => parent !== child.pid)
  expect(launched.length).toBeGreaterThan(0)
  await until('those of launchers are gone', () => launched.every(([pid]) => !alive(pid as number)))
}, 60_000)
