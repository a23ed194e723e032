// The layers of a queue's policy: default < code < operator; two builds that differ; pause and resume.
import { describe, expect, it } from 'vitest'
import { PieceworkError } from '../../dist/ground/errors.js'
import { holdSome, newUrl, openStore, refusalOf, warningsOf } from './store.js'

describe('the policy of the code', () => {
  it('is declared at first use, once, and not when no field was given', async () => {
    const { pw, connection } = await openStore()
    const { engine } = connection.ports
    await pw.queue('plain').enqueue(1)
    expect((await engine.select('queue', { name: 'plain' }, null)).items[0]).toMatchObject({ code: null })
    const mail = pw.queue('mail', { leaseMs: 1000, backoff: { baseMs: 5, factor: undefined } })
    expect((await engine.select('queue', { name: 'mail' }, null)).items).toEqual([])
    await Promise.all([mail.enqueue(1), mail.enqueue(2), pw.ready])
    expect((await engine.select('queue', { name: 'mail' }, null)).items[0]).toMatchObject({
      code: { leaseMs: 1000, backoff: { baseMs: 5 } },
      operator: null,
      policy: { leaseMs: 1000, backoff: { baseMs: 5, factor: 3 }, deliveriesMax: 5 },
    })
    expect((await engine.select('audit', {}, null)).items).toHaveLength(1)
    await pw.queue('mail', { backoff: { baseMs: 5 }, leaseMs: 1000 }).enqueue(3)
    expect((await engine.select('audit', {}, null)).items).toHaveLength(1)
    expect((await mail.list()).items.map((task) => task.payload)).toEqual([1, 2, 3])
  })

  it('of two builds: the later start wins, with one warning and an audit row', async () => {
    const url = newUrl()
    const older = await openStore({ url })
    const newer = await openStore({ url })
    await older.pw.queue('mail', { leaseMs: 1000, deliveriesMax: 3 }).enqueue(1)
    const warnings = await warningsOf(async () => {
      const mail = newer.pw.queue('mail', { leaseMs: 2000, deliveriesMax: 3 })
      await Promise.all([mail.enqueue(2), mail.enqueue(3)])
      await mail.stats()
    })
    expect(warnings.map(({ code }) => code)).toEqual(['PW_POLICY_CHANGED'])
    expect(warnings[0]?.message).toContain('leaseMs 1000 -> 2000')
    expect(warnings[0]?.message).not.toContain('deliveriesMax')
    const { engine } = newer.connection.ports
    expect((await engine.select('queue', { name: 'mail' }, null)).items[0]).toMatchObject({ policy: { leaseMs: 2000 } })
    expect((await engine.select('audit', {}, null)).items).toHaveLength(2)
  })

  it('of an older build that opens its queue for every request stays overruled: a start is not a call', async () => {
    const url = newUrl()
    const older = await openStore({ url })
    const newer = await openStore({ url })
    await older.pw.queue('mail', { leaseMs: 1000 }).enqueue(1)
    const warnings = await warningsOf(async () => {
      await newer.pw.queue('mail', { leaseMs: 2000 }).enqueue(2)
      await older.pw.queue('mail', { leaseMs: 1000 }).enqueue(3)
      await newer.pw.queue('mail', { leaseMs: 2000 }).enqueue(4)
    })
    expect(warnings).toHaveLength(1)
    const { engine } = newer.connection.ports
    expect((await engine.select('queue', { name: 'mail' }, null)).items[0]).toMatchObject({ policy: { leaseMs: 2000 } })
  })

  it('that could not be declared is declared at the next call', async () => {
    const { pw, connection } = await openStore()
    const { engine } = connection.ports
    const configure = engine.configure.bind(engine)
    engine.configure = async () => {
      throw new PieceworkError('PW_BUSY', 'locked')
    }
    const mail = pw.queue('mail', { leaseMs: 1000 })
    expect(await refusalOf(mail.enqueue(1))).toMatchObject({ code: 'PW_BUSY' })
    expect(await refusalOf(pw.ready)).toMatchObject({ code: 'PW_BUSY' })
    engine.configure = configure
    await pw.ready
    await mail.enqueue(2)
    expect((await mail.list()).items.map((task) => task.payload)).toEqual([2])
    expect((await engine.select('queue', { name: 'mail' }, null)).items[0]).toMatchObject({ code: { leaseMs: 1000 } })
  })

  it('of two builds under strict: refused, everywhere, and nothing of it happens', async () => {
    const url = newUrl()
    const older = await openStore({ url })
    await older.pw.queue('mail', { leaseMs: 1000 }).enqueue(1)
    const { pw } = await openStore({ url, policy: 'strict' })
    const mail = pw.queue('mail', { leaseMs: 1000, timeoutMs: null })
    expect(await refusalOf(mail.enqueue(2))).toMatchObject({
      code: 'PW_POLICY_CHANGED',
      details: { queue: 'mail', before: { leaseMs: 1000 }, after: { leaseMs: 1000, timeoutMs: null } },
    })
    expect(await refusalOf(mail.stats())).toMatchObject({ code: 'PW_POLICY_CHANGED' })
    expect(await refusalOf(mail.enqueueMany([1]))).toMatchObject({ code: 'PW_POLICY_CHANGED' })
    expect(await refusalOf(pw.ready)).toMatchObject({ code: 'PW_POLICY_CHANGED' })
    expect((await older.pw.queue('mail').stats()).enqueued).toBe(1)
    await pw.queue('mail', { leaseMs: 1000 }).enqueue(3)
    await pw.queue('new', { leaseMs: 1000 }).enqueue(4)
  })
})

describe('the policy of the operator', () => {
  it('wins over the code, field by field, until it is taken away', async () => {
    const { pw } = await openStore()
    const mail = pw.queue('mail', { leaseMs: 1000, backoff: { baseMs: 5 } })
    expect(await mail.configure({ leaseMs: 5000 })).toMatchObject({ leaseMs: 5000, backoff: { baseMs: 5 } })
    expect(await mail.configure({ backoff: { factor: 2 } })).toMatchObject({
      leaseMs: 5000,
      backoff: { baseMs: 5, factor: 2 },
    })
    expect(await pw.queue('mail', { leaseMs: 1000, backoff: { baseMs: 5 } }).configure({})).toMatchObject({
      leaseMs: 5000,
    })
    expect(await mail.configure(null)).toMatchObject({ leaseMs: 1000, backoff: { baseMs: 5, factor: 3 } })
  })

  it.each([
    [{ leasMs: 1 }, 'PW_OPTION_UNKNOWN', /"leaseMs"/],
    [{ leaseMs: 1 }, 'PW_OPTION_INVALID', /leaseMs is 1/],
    [{ backoff: { base: 1 } }, 'PW_OPTION_INVALID', /backoff/],
    ['fast', 'PW_OPTION_INVALID', /"fast"/],
  ])('the settings %j are refused', async (given, code, words) => {
    const { pw } = await openStore({ url: 'sqlite::memory:' })
    const refusal = await refusalOf(pw.queue('mail').configure(given as never))
    expect(refusal.code).toBe(code)
    expect(refusal.message).toMatch(words)
  })
})

describe('pause and resume', () => {
  it('stop the claims of one queue, also before its first task, and let them go again', async () => {
    const { pw, connection } = await openStore()
    const mail = pw.queue('mail')
    await mail.pause()
    expect(await mail.stats()).toMatchObject({ paused: true, ready: 0 })
    await mail.enqueue(1)
    await pw.queue('other').enqueue(1)
    expect(await mail.stats()).toMatchObject({ paused: true, ready: 1, types: [{ paused: true }] })
    expect(await holdSome(connection, 'mail', 1)).toEqual([])
    expect(await holdSome(connection, 'other', 1)).toHaveLength(1)
    await mail.resume()
    expect((await mail.stats()).paused).toBe(false)
    expect(await holdSome(connection, 'mail', 1)).toHaveLength(1)
  })
})
