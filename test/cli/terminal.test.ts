// On a real pseudo-terminal: the bar, Ctrl-C typed on it, and the count that has to be typed before many tasks go.
import { spawn } from 'node:child_process'
import { expect, it, onTestFinished } from 'vitest'
import { quoted } from '../../dist/cli/placeholders.js'
import { mainFile, numbers, type Room, room, until } from './cli.js'

/** Makes a pseudo-terminal for one command; part of util-linux. */
const recorder = 'script'

/** Runs the command line on a terminal of 100 columns made by script(1); what is written to it is typed. */
function onTerminal({ folder }: Room, words: readonly string[]) {
  const line = `stty cols 100; ${quoted([process.execPath, mainFile, ...words])}`
  const child = spawn(recorder, ['-qefc', line, '/dev/null'], { cwd: folder })
  onTestFinished(() => void (child.exitCode === null && child.kill('SIGKILL')))
  const screen = { text: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    screen.text += text
  })
  const code = new Promise<number | null>((resolve) => child.once('close', resolve))
  return { screen, code, type: (text: string) => child.stdin.write(text) }
}

it('shows a bar that is redrawn, and the outputs whole above it', async () => {
  const here = room()
  here.write('in.txt', numbers(12))
  const script = 'printf "out $0"; sleep 0.2'
  const { screen, code } = onTerminal(here, ['run', '-j', '2', '-a', 'in.txt', '--', 'sh', '-c', script])
  expect(await code).toBe(0)
  expect(screen.text).toMatch(/\[#+-+\] \d+\/12 done, \d/)
  for (const row of screen.text.split(/[\r\n]+/)) expect(row.length).toBeLessThan(160)
  // Whatever stands in a row after its last erasure is what a reader sees.
  const seen = screen.text.split('\n').map((row) => row.split('\u001b[K').at(-1)?.replaceAll('\r', ''))
  for (let n = 1; n <= 12; n++) expect(seen).toContain(`out ${n}`)
  expect(seen.some((row) => row?.startsWith('piecework: 12 of 12 done'))).toBe(true)
}, 60_000)

it('Ctrl-C reaches the run, not the COMMANDs', async () => {
  const here = room()
  here.write('in.txt', numbers(9))
  const script = `echo $0 >> ${here.path('begun')}; sleep 1; echo $0 >> ${here.path('ended')}`
  const { screen, code, type } = onTerminal(here, ['run', '-j', '2', '-a', 'in.txt', '--', 'sh', '-c', script])
  await until('two run', () => here.lines('begun').length >= 2)
  type('\u0003')
  await until('it says so', () => screen.text.includes('stopping'))
  expect(await code).toBe(130)
  expect(here.lines('ended').sort()).toEqual(here.lines('begun').sort())
}, 60_000)

it('asks for the count before dead letters are discarded', async () => {
  const here = room()
  await here.run(['run', '-q', '--batch', 'b', '--', 'sh', '-c', 'exit 65'], { input: numbers(3) })
  for (const [typed, left] of [
    ['2', 3],
    ['3', 0],
  ] as const) {
    const { screen, code, type } = onTerminal(here, ['dead', 'discard', 'b', '--all'])
    await until('it asks', () => screen.text.includes('3 tasks. Type the number'))
    type(`${typed}\r`)
    expect(await code).toBe(left === 0 ? 0 : 2)
    expect((await here.run(['dead', 'list', 'b', '--json'])).json()).toHaveLength(left)
  }
}, 60_000)

it('Ctrl-C and Ctrl-D at that question change nothing: exit 130 and 2', async () => {
  const here = room()
  await here.run(['run', '-q', '--batch', 'b', '--', 'sh', '-c', 'exit 65'], { input: numbers(3) })
  for (const [typed, exit, said] of [
    ['\u0003', 130, 'Interrupted; nothing was changed.'],
    ['\u0004', 2, 'Nothing was typed; nothing was changed.'],
  ] as const) {
    const { screen, code, type } = onTerminal(here, ['dead', 'redrive', 'b', '--all'])
    await until('it asks', () => screen.text.includes('3 tasks. Type the number'))
    type(typed)
    expect(await code).toBe(exit)
    expect(screen.text).toContain(`\npiecework: ${said}`)
    expect(screen.text).not.toContain('PW_BUG')
    expect((await here.run(['dead', 'list', 'b', '--json'])).json()).toHaveLength(3)
  }
}, 60_000)

it('people are asked before a batch is forgotten, scripts are not', async () => {
  const here = room()
  await here.run(['run', '-q', '--batch', 'b', '--', 'true'], { input: numbers(3) })
  const { screen, code, type } = onTerminal(here, ['batch', 'forget', 'b'])
  await until('it asks', () => screen.text.includes('could then run again: 3 tasks'))
  type('no\r')
  expect(await code).toBe(2)
  expect((await here.run(['batch', 'forget', 'b'])).stdout).toBe('b forgotten\n')
}, 60_000)
