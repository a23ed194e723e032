// Two hundred thousand lines go through the command line in constant memory.
import { expect, it } from 'vitest'
import { type Room, room } from './cli.js'

const count = 200_000

/** Makes the process note its peak memory, in MiB, when it ends. */
const watched = (here: Room) => {
  const peak = 'String(process.resourceUsage().maxRSS / 1024)'
  const note = `process.on('exit', () => process.getBuiltinModule('fs').writeFileSync('peak', ${peak}))`
  return {
    env: { NODE_OPTIONS: `--import "data:text/javascript,${encodeURIComponent(note)}"` },
    peak: () => Number(here.read('peak')),
  }
}

const lines = () =>
  Buffer.from(Array.from({ length: count }, (_, index) => `line ${index} with some text in it\n`).join(''))

it('enqueues them, from a file and from a pipe', async () => {
  const here = room()
  here.write('in.txt', lines())
  const { env, peak } = watched(here)
  for (const options of [{ env }, { env, input: lines() }]) {
    const from = 'input' in options ? '-' : 'in.txt'
    const { json } = await here.run(['enqueue', `from ${from}`, '--input', from, '--json'], options)
    expect(json()).toEqual([{ enqueued: count, duplicates: 0 }])
    expect(peak()).toBeGreaterThan(30)
    expect(peak()).toBeLessThan(200)
  }
}, 180_000)

it('knows them again in a second run, and enqueues none twice', async () => {
  const here = room()
  here.write('in.txt', lines())
  const { env, peak } = watched(here)
  const words = [
    'run',
    '-q',
    '-a',
    'in.txt',
    '--batch',
    'b',
    '-j',
    '1',
    '--json',
    '--halt',
    'now,fail=1',
    '--',
    'false',
  ]
  expect((await here.run(words, { env })).code).toBe(4)
  const again = await here.run(words, { env })
  expect(again.code).toBe(4)
  expect(again.json().at(-1)?.total).toBeLessThanOrEqual(count)
  expect(peak()).toBeLessThan(200)
}, 180_000)
