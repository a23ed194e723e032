// `plan` on the command line: needs no store, takes durations and rates, and says in words what binds.
import { expect, it } from 'vitest'
import { room } from './cli.js'

it('answers both ways, as an object and in words, without a store', async () => {
  const { run } = room()
  const sized = await run(['plan', '--items', '1000000', '--each', '1s', '--deadline', '30m', '--json'])
  expect([sized.code, sized.json()[0]]).toMatchObject([0, { workers: 556, durationMs: 1_799_000, binds: 'workers' }])
  const [timed] = (await run(['plan', '--items', '1000', '--each', '2s', '--workers', '10', '--json'])).json()
  expect(timed).toMatchObject({ workers: 10, durationMs: 200_000, meetsDeadline: null, workersUsefulMax: 1000 })
  const bound = ['--downstream-rate', '100', '--failure-rate', '0.5', '--each-p99', '1s']
  const told = await run(['plan', '--items', '6000', '--each', '500ms', '--deadline', '1m', ...bound])
  expect([told.code, told.stdout.split('\n')]).toEqual([
    0,
    [
      '51 workers do 6 000 tasks in 2 min 0 s, 50 a second; what is downstream binds: it does not take more.',
      'Counted with the failures that is 12 000 deliveries.',
      'The deadline of 1 min 0 s cannot be met, whatever the number of workers.',
      'More than 51 would not end it sooner.',
      '',
    ],
  ])
}, 60_000)

it.each([
  [['--items', '10', '--each', '1s'], 'PW_USAGE'],
  [['--items', '10', '--each', '1s', '--deadline', '1m', '--workers', '3'], 'PW_USAGE'],
  [['--items', '0', '--each', '1s', '--workers', '3'], 'PW_OPTION_INVALID'],
  [['--items', '1', '--each', '1', '--workers', '3'], 'PW_OPTION_INVALID'],
  [['--items', '1', '--each', '1s', '--workers', '3', '--failure-rate', '1'], 'PW_OPTION_INVALID'],
  [['--items', '1', '--each', '1s', '--workers', '3', '--downstream-rate', 'x'], 'PW_OPTION_INVALID'],
  [['--each', '1s', '--workers', '3'], 'PW_USAGE'],
])('refuses %j', async (words, code) => {
  const { run } = room()
  const refused = await run(['plan', ...words, '--json'])
  expect([refused.code, JSON.parse(refused.stderr).error.code]).toEqual([2, code])
})
