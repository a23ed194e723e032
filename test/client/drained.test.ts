// Waiting for the end: drained answers only when nothing is left, from synced state, and says when it never will be.
import { describe, expect, it } from 'vitest'
import { ackAll, buryAll, holdSome, openStore, refusalOf } from './store.js'

describe('drained', () => {
  it('resolves at once on an empty or unknown queue, and counts dead letters beside it', async () => {
    const { pw, connection } = await openStore()
    const mail = pw.queue('mail')
    expect(await mail.drained()).toEqual({ dead: 0 })
    await mail.enqueueMany([1, 2])
    await pw.queue('other').enqueue('open')
    await buryAll(connection, 'mail', 2, 'no')
    expect(await mail.drained()).toEqual({ dead: 2 })
  })

  it('waits for what is leased and what is due later, unless told to ignore that', async () => {
    const { pw, connection } = await openStore()
    const mail = pw.queue('mail')
    await mail.enqueueMany([1, 2])
    const { id } = await mail.enqueue('later', { delayMs: 3_600_000 })
    const receipts = await holdSome(connection, 'mail', 2)
    let ended = false
    const soonDone = mail.drained({ scheduled: 'ignore' })
    const allDone = mail.drained().finally(() => {
      ended = true
    })
    await ackAll(connection, receipts.slice(0, 1))
    expect((await refusalOf(mail.drained({ scheduled: 'ignore', waitMs: 10 }))).code).toBe('PW_DRAIN_TIMEOUT')
    await ackAll(connection, receipts.slice(1))
    expect(await soonDone).toEqual({ dead: 0 })
    expect(ended).toBe(false)
    await mail.cancel(id)
    expect(await allDone).toEqual({ dead: 0 })
  })

  it('answers only after a sync of what it saw', async () => {
    const { pw, connection } = await openStore()
    const { engine } = connection.ports
    const asked: boolean[] = []
    const measure = engine.measure.bind(engine)
    engine.measure = (queues, durable) => {
      asked.push(durable)
      return measure(queues, durable)
    }
    await pw.queue('mail').drained()
    expect(asked.at(-1)).toBe(true)
  })

  it('gives up after waitMs with the open tasks by type, or when its signal aborts', async () => {
    const { pw } = await openStore()
    const mail = pw.queue('mail')
    await mail.enqueueMany([1, 2], { type: 'a' })
    await mail.enqueue(1, { type: 'b', delayMs: 60_000 })
    const refusal = await refusalOf(mail.drained({ waitMs: 20 }))
    expect(refusal.code).toBe('PW_DRAIN_TIMEOUT')
    expect(refusal.message).toContain('type "a" has 2 ready; type "b" has 1 scheduled')
    expect(refusal.details).toMatchObject({
      queue: 'mail',
      types: [
        { type: 'a', ready: 2 },
        { type: 'b', scheduled: 1 },
      ],
    })
    const controller = new AbortController()
    const waiting = mail.drained({ signal: controller.signal })
    controller.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
  })

  it('says PW_DRAIN_STUCK after 30 s without a delivery, with the types and why', async () => {
    const { pw, clock } = await openStore()
    const mail = pw.queue('mail')
    await mail.enqueue(1, { type: 'a' })
    await mail.enqueue(2, { type: 'a' })
    await mail.enqueue(3, { type: 'b', delayMs: 3_600_000 })
    const waits = mail.drained({ scheduled: 'ignore' })
    // Each of these gives the one that waits a look at the clock.
    await refusalOf(mail.drained({ waitMs: 60 }))
    clock.advance(29_000)
    await refusalOf(mail.drained({ waitMs: 60 }))
    clock.advance(2000)
    const refusal = await refusalOf(waits)
    expect(refusal.code).toBe('PW_DRAIN_STUCK')
    expect(refusal.message).toContain('2 of type "a" (no worker for its type)')
    expect(refusal.details).toMatchObject({ queue: 'mail', workers: 0 })

    await mail.pause()
    const paused = mail.drained({ scheduled: 'ignore' })
    await refusalOf(mail.drained({ waitMs: 60 }))
    clock.advance(31_000)
    expect((await refusalOf(paused)).message).toContain('(paused)')
  })

  it('is not stuck while deliveries go on, something is leased, or it waits for what is due later', async () => {
    const { pw, connection, clock } = await openStore()
    const mail = pw.queue('mail')
    await mail.enqueueMany([1, 2, 3])
    let refused: unknown
    const waits = mail.drained().catch((error) => {
      refused = error
    })
    for (let round = 0; round < 3; round++) {
      await refusalOf(mail.drained({ waitMs: 60 }))
      clock.advance(20_000)
      const receipts = await holdSome(connection, 'mail', 1)
      await refusalOf(mail.drained({ waitMs: 60 }))
      if (round < 2) await ackAll(connection, receipts)
    }
    expect(refused).toBeUndefined()
    await mail.cancel({ all: true })
    const later = await mail.enqueue(4, { delayMs: 3_600_000 })
    clock.advance(60_000)
    await refusalOf(mail.drained({ waitMs: 60 }))
    expect(refused).toBeUndefined()
    await mail.cancel(later.id)
    await waits
    expect(refused).toBeUndefined()
  })

  it.each([
    [{ waitMs: -1 }, 'PW_OPTION_INVALID'],
    [{ waitMs: 1.5 }, 'PW_OPTION_INVALID'],
    [{ scheduled: 'skip' }, 'PW_OPTION_INVALID'],
    [{ signal: {} }, 'PW_OPTION_INVALID'],
    [{ waitMS: 1 }, 'PW_OPTION_UNKNOWN'],
  ])('the options %j are refused', async (given, code) => {
    const { pw } = await openStore({ url: 'sqlite::memory:' })
    expect(await refusalOf(pw.queue('mail').drained(given as never))).toMatchObject({ code })
  })
})
