// Dead letters from a program: the few errors behind many, edits that fit, and redrives of what is dead alone.

import * as v from 'valibot'
import { expect, it } from 'vitest'
import { buryAll, holdSome, openStore, refusalOf } from './store.js'

const text = v.object({ to: v.string() })

it('groups() says which few errors are behind them, each to be picked again', async () => {
  const { pw, connection } = await openStore()
  const mail = pw.queue('mail')
  await mail.enqueueMany([1, 2, 3, 4], (n) => ({ type: n === 4 ? 'other' : 'mail' }))
  for (const error of ['no mailbox 17', 'no mailbox 23', 'too large']) await buryAll(connection, 'mail', 1, error)
  await buryAll(connection, 'mail', 1, 'no mailbox 99')
  const groups = await mail.dead.groups()
  expect(groups).toMatchObject([
    { count: 3, error: 'no mailbox 17' },
    { count: 1, error: 'too large' },
  ])
  expect(await mail.dead.groups({ type: 'other' })).toMatchObject([{ count: 1 }])
  const [first] = groups
  expect((await mail.dead.list({ fingerprint: first?.fingerprint ?? '' })).items).toHaveLength(3)
  expect(await mail.dead.get(first?.example ?? '')).toMatchObject({ error: 'no mailbox 17' })
  expect(await refusalOf(mail.dead.groups({ kind: 1 } as never))).toMatchObject({ code: 'PW_OPTION_UNKNOWN' })
})

it('edit() takes what the schema takes, of the dead alone, and leaves an audit row', async () => {
  const { pw, connection } = await openStore()
  const mail = pw.queue('mail', { schema: text })
  const { id } = await mail.enqueue({ to: 'ada' })
  expect(await refusalOf(mail.dead.edit(id, { to: 'bob' }))).toMatchObject({ code: 'PW_TASK_NOT_DEAD' })
  await buryAll(connection, 'mail', 1, 'no')
  expect(await refusalOf(mail.dead.edit(id, { to: 7 }))).toMatchObject({ code: 'PW_PAYLOAD_INVALID' })
  await mail.dead.edit(id, { to: 'bob' })
  expect(await mail.dead.get(id)).toMatchObject({ payload: { to: 'bob' } })
  expect(await refusalOf(mail.dead.edit('1', { to: 'bob' }))).toMatchObject({ code: 'PW_TASK_GONE' })
  const audits = (await connection.engine().select('audit', {}, null)).items
  expect(audits.map(({ action }) => action)).toEqual(['edit'])
})

it('redrive() of a running task is refused and changes nothing, also of those beside it', async () => {
  const { pw, connection } = await openStore()
  const mail = pw.queue('mail')
  await mail.enqueueMany([1, 2])
  const [dead] = await buryAll(connection, 'mail', 1, 'no')
  await holdSome(connection, 'mail', 1)
  const [running] = (await mail.list({ state: 'leased' })).items
  const refusal = await refusalOf(mail.dead.redrive({ ids: [dead ?? '', running?.id ?? ''] }))
  expect(refusal).toMatchObject({ code: 'PW_TASK_NOT_DEAD', details: { id: running?.id, state: 'leased' } })
  expect((await mail.dead.list()).items).toHaveLength(1)
  expect(await mail.dead.redrive({ ids: [dead ?? ''] }, { dryRun: true })).toEqual({ redriven: 1 })
  expect(await mail.dead.redrive({ ids: [dead ?? ''] })).toEqual({ redriven: 1 })
})
