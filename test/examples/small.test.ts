// The small examples run as they stand, and show what they say.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const run = promisify(execFile)
const example = (name: string) =>
  run(process.execPath, [fileURLToPath(new URL(`../../examples/${name}/main.js`, import.meta.url))])

it('schedules: four slots, each of them once, a second apart', async () => {
  const lines = (await example('schedules')).stdout.trim().split('\n')
  const slots = lines.map((line) => Date.parse(/^(?:first|second) makes the report of (\S+)$/.exec(line)?.[1] ?? line))
  expect(slots.length).toBeGreaterThanOrEqual(4)
  for (const [n, slot] of slots.entries()) if (n > 0) expect(slot).toBeGreaterThan(slots[n - 1] as number)
  for (const slot of slots) expect(slot % 1000).toBe(0)
}, 60_000)

it('move: a type goes to a queue of its own with all that follow, and comes back', async () => {
  expect((await example('move')).stdout.trim().split('\n')).toEqual([
    '1 moved, and later ones follow: true',
    'report 1 again is a duplicate: true',
    'mail has 1, slow has 2',
    '2 brought back; mail has 3, slow has 0',
  ])
}, 60_000)

it('effects: six recipes, each killed between effect and ack, and each effect stands once', async () => {
  expect((await example('effects')).stdout.trim().split('\n')).toEqual([
    'path: 1 file',
    'condition: version 2',
    'upsert: 1 7',
    'greatest: 40',
    'charge: 1 100',
    'fence: ada',
    'killed 6 times between effect and ack',
  ])
}, 120_000)
