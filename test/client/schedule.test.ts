// queue.schedule(): what it takes, what it answers, when its tasks come, and how it is removed.

import { type } from 'piecework'
import { expect, it } from 'vitest'
import { openStore, refusalOf } from './store.js'

it('sets a schedule that fires at its instant, without anybody asking', async () => {
  const { pw } = await openStore()
  const mail = pw.queue('mail')
  const dueAt = new Date(Date.now() + 300)
  const came = new Promise<{ payload: unknown; headers: unknown; at: number }>((resolve) => {
    mail.work((payload, { headers }) => resolve({ payload, headers, at: Date.now() }))
  })
  expect(await mail.schedule('once', { dueAt, headers: { tenant: 'ada' } }, { report: 1 })).toEqual({
    ...{ queue: 'mail', name: 'once', cron: null, tz: null, everyMs: null, dueAt, missed: 'latest' },
    ...{ nextAt: dueAt, lastAt: null },
  })
  const { payload, headers, at } = await came
  expect(payload).toEqual({ report: 1 })
  const own = { 'piecework-schedule': 'once', 'piecework-slot': dueAt.toISOString() }
  expect(headers).toEqual({ tenant: 'ada', ...own })
  expect(at).toBeGreaterThanOrEqual(dueAt.getTime())
})

it('keeps its beat when the program starts again, and takes the payload of the later start', async () => {
  const { pw, connection, clock } = await openStore()
  const mail = pw.queue('mail')
  const everyMs = 3_600_000
  const first = await mail.schedule('hourly', { everyMs }, 1)
  clock.advance(everyMs * 1.5)
  await connection.ports.engine.sweep(100)
  const again = await mail.schedule('hourly', { everyMs }, 2)
  expect(again.lastAt).toEqual(first.nextAt)
  expect(again.nextAt?.getTime()).toBe((first.nextAt?.getTime() ?? 0) + everyMs)
  clock.advance(everyMs)
  await connection.ports.engine.sweep(100)
  expect((await mail.list()).items.map(({ payload }) => payload)).toEqual([1, 2])
  expect(await mail.schedule('hourly', null)).toMatchObject({ name: 'hourly', lastAt: again.nextAt })
  expect((await refusalOf(mail.schedule('hourly', null))).code).toBe('PW_SCHEDULE_UNKNOWN')
})

it('checks payload and type as an enqueue does', async () => {
  const { pw } = await openStore()
  const mail = pw.queue('mail', { types: { letter: type<{ to: string }>() } })
  expect((await mail.schedule('letters', { cron: '0 3 * * *', type: 'letter' }, { to: 'ada' })).tz).toBe('UTC')
  const wrong = (options: object, payload: unknown) => refusalOf(mail.schedule('x', options as never, payload as never))
  expect((await wrong({ everyMs: 1000, type: 'parcel' }, {})).code).toBe('PW_OPTION_INVALID')
  expect((await wrong({ everyMs: 1000, type: 'letter' }, { n: 1n })).code).toBe('PW_PAYLOAD_NOT_JSON')
  expect((await wrong({ everyMs: 1000, type: 'letter', batch: 'b' }, 1)).code).toBe('PW_OPTION_UNKNOWN')
  expect((await wrong({ everyMs: 1000, evreyMs: 1, type: 'letter' }, 1)).message).toContain('Did you mean "everyMs"?')
})

it('refuses what never fires and zones nobody knows, in words', async () => {
  const { pw } = await openStore()
  const mail = pw.queue('mail')
  const refusal = async (options: object) => {
    const { code, message } = await refusalOf(mail.schedule('x', options, 1))
    return `${code}: ${message}`
  }
  expect(await refusal({ cron: '0 0 30 2 *' })).toBe(
    'PW_SCHEDULE_NEVER: No date fits the cron expression "0 0 30 2 *".',
  )
  expect(await refusal({ cron: '0 0 * * *', tz: 'Europe/Atlantis' })).toBe(
    'PW_ZONE_UNKNOWN: tz is "Europe/Atlantis", which is no time zone of the IANA list.',
  )
  expect(await refusal({ cron: '0 25 * * *' })).toMatch(/^PW_SCHEDULE_INVALID: cron is "0 25 \* \* \*": .*25/)
  expect(await refusal({})).toMatch(/^PW_SCHEDULE_INVALID: .*one of cron, everyMs and dueAt/)
  expect(await refusal({ dueAt: new Date(Number.NaN) })).toMatch(/^PW_OPTION_INVALID: dueAt is NaN/)
})
