// onDuplicate and deadTo as a program says them: what is checked, and what refused in which words.
import { expect, it } from 'vitest'
import { buryAll, openStore, refusalOf } from './store.js'

it('replace and delay need a dedup key, and delay an instant', async () => {
  const { pw } = await openStore()
  const mail = pw.queue('mail')
  const messageOf = async (options: object) => (await refusalOf(mail.enqueue(1, options as never))).message
  expect(await messageOf({ onDuplicate: 'replace' })).toContain('dedupKey')
  expect(await messageOf({ onDuplicate: 'delay', dedupKey: 'd' })).toContain('delayMs or dueAt')
  expect(await messageOf({ onDuplicate: 'drop', dedupKey: 'd' })).toContain('"keep", "replace", "delay"')
  expect((await mail.list()).items).toEqual([])
})

it('replace gives the newer payload under the older id; another type is refused', async () => {
  const { pw } = await openStore()
  const mail = pw.queue('mail')
  const first = await mail.enqueue('old', { dedupKey: 'd', type: 'a' })
  const again = { dedupKey: 'd', onDuplicate: 'replace' } as const
  expect(await mail.enqueue('new', { ...again, type: 'a' })).toEqual({ id: first.id, duplicate: true })
  expect(await mail.get(first.id)).toMatchObject({ payload: 'new' })
  expect(await refusalOf(mail.enqueue('other', { ...again, type: 'b' }))).toMatchObject({
    code: 'PW_DUPLICATE_DIFFERS',
  })
  // One refused task keeps no other of its turn away.
  const turn = [mail.enqueue(1), mail.enqueue(2, { ...again, type: 'b' }), mail.enqueue(3)]
  expect((await Promise.allSettled(turn)).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
})

it('delay moves the instant to the newer one', async () => {
  const { pw, clock } = await openStore()
  const mail = pw.queue('mail')
  const { id } = await mail.enqueue(1, { dedupKey: 'd', delayMs: 1000 })
  const dueAt = new Date(Math.round(clock.wallMs()) + 3_600_000)
  await mail.enqueue(2, { dedupKey: 'd', onDuplicate: 'delay', dueAt })
  expect(await mail.get(id)).toMatchObject({ payload: 1, state: 'scheduled', dueAt })
})

it('a loop of deadTo is refused with its path, and a dead task is found in its new queue', async () => {
  const { pw, connection } = await openStore()
  const one = pw.queue('one', { deadTo: 'two' })
  await pw.ready
  const loop = await refusalOf(pw.queue('two').configure({ deadTo: 'one' }))
  expect(loop).toMatchObject({ code: 'PW_OPTION_INVALID', details: { path: ['two', 'one', 'two'] } })
  const { id } = await one.enqueue(1)
  await buryAll(connection, 'one', 1, 'no')
  expect(await one.get(id)).toEqual({ state: 'gone' })
  expect(await pw.queue('two').get(id)).toMatchObject({ state: 'ready', payload: 1, spent: 0 })
  expect(await one.stats()).toMatchObject({ dead: 0, moved: 1, failures: 1 })
})
