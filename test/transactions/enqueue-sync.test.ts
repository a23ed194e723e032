// Enqueues in a transaction of the caller on SQLite: the task is there if and only if that commits.
import { copyFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import type { Piecework } from 'piecework'
import * as v from 'valibot'
import { beforeEach, describe, expect, it } from 'vitest'
import { codeOf, freshStore, mark, next, opened, proven, sentIn } from './sqlite-store.js'

let folder: string
let file: string
let pw: Piecework<'sqlite'>
let db: Database.Database

beforeEach(async () => {
  ;({ folder, file, pw, db } = await freshStore())
})

describe('enqueueSync', () => {
  it('adds the task if and only if the transaction commits (P2)', async () => {
    const mail = pw.queue('mail')
    const ids = ['kept', 'undone'].map((note) => {
      db.exec('begin')
      const { id, duplicate } = mail.enqueueSync({ note }, { tx: db, key: note, batch: 'all', delayMs: 0 })
      mark(db, id, note)
      expect(duplicate).toBe(false)
      db.exec(note === 'kept' ? 'commit' : 'rollback')
      return id
    })
    expect(sentIn(db)).toEqual(['kept'])
    expect((await mail.list()).items.map(({ id, payload }) => [id, payload])).toEqual([[ids[0], { note: 'kept' }]])
    expect(await pw.batch('all').stats()).toMatchObject({ total: 1 })
    await proven(pw)
  })

  it('gives numbers that no other call gives, before and after', async () => {
    const mail = pw.queue('mail')
    const ids = [(await mail.enqueue(1)).id]
    const both = db.transaction(() => [1, 2].map((n) => mail.enqueueSync(n, { tx: db }).id))
    ids.push(...both())
    ids.push((await mail.enqueue(1)).id)
    expect(ids).toEqual([...new Set(ids)].sort((a, b) => Number(a) - Number(b)))
  })

  it('is undone with a savepoint of the caller, and forgets the names made in it', async () => {
    const mail = pw.queue('mail')
    db.transaction(() => {
      mail.enqueueSync('outer', { tx: db })
      const inner = db.transaction(() => {
        pw.queue('never').enqueueSync('inner', { tx: db, type: 'made here' })
        throw new Error('undone')
      })
      expect(inner).toThrow('undone')
      pw.queue('later').enqueueSync('after', { tx: db, type: 'made there' })
    })()
    expect((await mail.list()).items).toHaveLength(1)
    expect((await pw.queue('never').list()).items).toEqual([])
    expect((await pw.queue('later').list()).items).toMatchObject([{ type: 'made there', payload: 'after' }])
    await proven(pw)
  })

  it('wakes a worker when the caller commits', async () => {
    const mail = pw.queue('mail')
    const worker = mail.work(() => {})
    await worker.ready
    const done = next(worker, 'done')
    const id = db.transaction(() => mail.enqueueSync(1, { tx: db }).id)()
    expect(await done).toMatchObject({ id, number: 1 })
  })

  it('finds what stands for a dedup key, and changes nothing when it refuses', async () => {
    const mail = pw.queue('mail')
    const { id } = await mail.enqueue('first', { dedupKey: 'd' })
    await pw.batch('over').seal()
    db.transaction(() => {
      expect(mail.enqueueSync('again', { tx: db, dedupKey: 'd' })).toEqual({ id, duplicate: true })
      expect(codeOf(() => pw.queue('new').enqueueSync(1, { tx: db, batch: 'over' }))).toBe('PW_BATCH_SEALED')
      mark(db, id, 'goes on')
    })()
    expect(sentIn(db)).toEqual(['goes on'])
    await proven(pw)
  })

  it('refuses what is no open transaction on the very file', async () => {
    const mail = pw.queue('mail')
    const other = opened(join(folder, 'other.db'))
    const code = (tx: unknown) => codeOf(() => mail.enqueueSync(1, { tx: tx as never }))
    expect(code(db)).toBe('PW_TX_NONE')
    expect(code(undefined)).toBe('PW_TX_NONE')
    for (const tx of [other, opened(':memory:'), null, 7, 'work.db', {}, { query() {} }]) {
      if (tx instanceof Database) tx.exec('begin')
      expect(code(tx)).toBe('PW_TX_OTHER_DATABASE')
    }
    // A copy has the same tables, and an attached store is not the main one.
    copyFileSync(file, join(folder, 'copy.db'))
    const copy = opened(join(folder, 'copy.db'))
    copy.exec('begin')
    expect(code(copy)).toBe('PW_TX_OTHER_DATABASE')
    other.exec(`rollback; attach '${file}' as store; begin`)
    expect(code(other)).toBe('PW_TX_OTHER_DATABASE')
    // The same file by another name is the same file.
    symlinkSync(file, join(folder, 'link.db'))
    const link = opened(join(folder, 'link.db'))
    expect(link.transaction(() => mail.enqueueSync(1, { tx: link }).duplicate)()).toBe(false)
  })

  it('cannot wait: neither for a schema nor for a policy', async () => {
    const slow = v.pipeAsync(
      v.string(),
      v.checkAsync(async () => true),
    )
    const late = pw.queue('late', { schema: slow })
    const strict = pw.queue('strict', { leaseMs: 1000 })
    db.exec('begin')
    expect(codeOf(() => late.enqueueSync('a', { tx: db }))).toBe('PW_SCHEMA_ASYNC')
    expect(codeOf(() => strict.enqueueSync('a', { tx: db }))).toBe('PW_QUEUE_NOT_READY')
    db.exec('rollback')
    await pw.ready
    expect(db.transaction(() => strict.enqueueSync('a', { tx: db }).duplicate)()).toBe(false)
  })

  it('leaves the asynchronous calls to themselves', async () => {
    const mail = pw.queue('mail')
    // @ts-expect-error on SQLite enqueue takes no transaction
    await expect(mail.enqueue(1, { tx: db })).rejects.toMatchObject({ code: 'PW_TX_UNSUPPORTED' })
  })

  it('reads whole numbers on a connection that answers bigint', () => {
    db.defaultSafeIntegers(true)
    db.transaction(() => {
      const { id } = pw.queue('mail').enqueueSync(1, { tx: db, dedupKey: 'd', key: 'k' })
      expect(pw.queue('mail').enqueueSync(1, { tx: db, dedupKey: 'd' })).toEqual({ id, duplicate: true })
    })()
  })
})
