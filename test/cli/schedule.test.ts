// schedule list, set, remove and next: what they print, and that `next` of an expression needs no store.
import { existsSync } from 'node:fs'
import { expect, it } from 'vitest'
import { room } from './cli.js'

const minute = 60_000

it('sets, lists and removes schedules', async () => {
  const { run } = room()
  await run(['enqueue', 'mail', '1'])
  const nightly = ['schedule', 'set', 'mail', 'nightly', '{"n":12345678901234567890}', '--cron', '30 2 * * *']
  const set = await run([...nightly, '--tz', 'Europe/Berlin', '--type', 'report', '--missed', 'all', '--json'])
  expect(set.stdout).toContain('"payload":{"n":12345678901234567890}')
  expect(set.json()[0]).toMatchObject({
    ...{ queue: 'mail', name: 'nightly', cron: '30 2 * * *', tz: 'Europe/Berlin', missed: 'all', type: 'report' },
    ...{ everyMs: null, dueAt: null, lastAt: null, key: null, headers: {} },
  })
  expect((await run(['schedule', 'set', 'mail', 'beat', '--every', '5m'])).stdout).toMatch(/^beat: next 20\S+Z\n$/)
  const list = await run(['schedule', 'list'])
  expect(list.stdout).toMatch(
    /^queue +schedule +when[^\n]*\nmail +beat +every 5 min[^\n]*\nmail +nightly +30 2 \* \* \*/,
  )
  expect((await run(['schedule', 'list', 'mail', '--json'])).json().map(({ name }) => name)).toEqual([
    'beat',
    'nightly',
  ])
  const next = (await run(['schedule', 'next', 'mail', 'nightly', '--json', '-n', '2'])).json()
  expect(next[0]?.slotAt).toBe(set.json()[0]?.nextAt)
  expect(next).toHaveLength(2)
  const removed = await run(['schedule', 'remove', 'mail', 'beat', '--json'])
  expect(removed.json()).toEqual([{ queue: 'mail', name: 'beat', removed: true }])
  const again = await run(['schedule', 'remove', 'mail', 'beat', '--json'])
  expect([again.code, JSON.parse(again.stderr).error.code]).toEqual([2, 'PW_SCHEDULE_UNKNOWN'])
  expect((await run(['schedule', 'next', 'mail', 'beat'])).code).toBe(2)
}, 120_000)

it('prints the next instants of an expression, and touches no store', async () => {
  const { run, path } = room()
  const cron = await run(['schedule', 'next', '--cron', '0 2 29 2 *', '--tz', 'America/New_York', '-n', '3'])
  expect(cron.stdout).toBe('2028-02-29T07:00:00.000Z\n2032-02-29T07:00:00.000Z\n2036-02-29T07:00:00.000Z\n')
  const every = (await run(['schedule', 'next', '--every', '1m', '--due-at', '2030-01-31T08:00:00Z', '--json'])).json()
  expect(every).toEqual(
    [0, 1, 2, 3, 4].map((n) => ({ slotAt: new Date(Date.UTC(2030, 0, 31, 8) + n * minute).toISOString() })),
  )
  for (const [words, code] of [
    [['--cron', '0 0 30 2 *'], 'PW_SCHEDULE_NEVER'],
    [['--cron', '0 0 * * *', '--tz', 'Mars'], 'PW_ZONE_UNKNOWN'],
    [['--every', 'often'], 'PW_OPTION_INVALID'],
    [[], 'PW_SCHEDULE_INVALID'],
    [['mail'], 'PW_USAGE'],
    [['mail', 'nightly', '--every', '1m'], 'PW_USAGE'],
  ] as const) {
    const refused = await run(['schedule', 'next', ...words, '--json'])
    expect([refused.code, JSON.parse(refused.stderr).error.code]).toEqual([2, code])
  }
  expect(existsSync(path('piecework.db'))).toBe(false)
}, 120_000)
