// Acks and effect keys in a transaction on SQLite: effects and acks are there together or not at all.
import type Database from 'better-sqlite3'
import { connect, type Delivery, type Piecework, type WorkerEvents } from 'piecework'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { codeOf, freshStore, mark, next, proven, sentIn } from './sqlite-store.js'

let pw: Piecework<'sqlite'>
let db: Database.Database

beforeEach(async () => {
  ;({ pw, db } = await freshStore())
})

/** Enqueues one task and hands each delivery of it to `handler`; resolves with what the worker told of it. */
async function deliver(handler: (delivery: Delivery<'sqlite'>) => unknown, events: (keyof WorkerEvents)[]) {
  const mail = pw.queue<string>('mail', { backoff: { baseMs: 1 } })
  const { id } = await mail.enqueue('hello')
  const worker = mail.work((_, delivery) => handler(delivery))
  const heard: unknown[] = []
  for (const event of ['retry', 'done', 'stale', 'dead', 'error'] as const) {
    worker.on(event, (what: object) => heard.push({ event, ...what, ...('code' in what ? { code: what.code } : {}) }))
  }
  await Promise.all(events.map((event) => next(worker, event)))
  await worker.stop()
  await proven(pw)
  return { id, heard, mail }
}

describe('transaction(fn)', () => {
  it('commits effects and ack together, once, and tells what fn returned', async () => {
    let told: unknown
    const { id, heard, mail } = await deliver(
      async (delivery) => {
        told = await delivery.transaction((tx) => {
          mark(tx as Database.Database, delivery.id, 'sent')
          mail2(tx, delivery)
          return 'told'
        })
      },
      ['done'],
    )
    function mail2(tx: unknown, { id: of }: Delivery<'sqlite'>): void {
      pw.queue('next').enqueueSync({ of }, { tx: tx as Database.Database })
    }
    expect(told).toBe('told')
    expect(sentIn(db)).toEqual(['sent'])
    expect(heard).toMatchObject([{ event: 'done', id, number: 1 }])
    expect(await mail.get(id)).toEqual({ state: 'gone' })
    expect((await pw.queue('next').list()).items).toMatchObject([{ payload: { of: id } }])
    expect(await mail.stats()).toMatchObject({ deliveries: 1, done: 1, failures: 0, stale: 0 })
  })

  it('undoes everything when fn throws, which the caller hears as it was thrown', async () => {
    const wrong = new Error('no')
    const { heard } = await deliver(
      (delivery) =>
        delivery.transaction((tx) => {
          mark(tx as Database.Database, delivery.id, `try ${delivery.number}`)
          if (delivery.number === 1) throw wrong
        }),
      ['done'],
    )
    expect(sentIn(db)).toEqual(['try 2'])
    expect(heard).toMatchObject([{ event: 'retry', error: wrong }, { event: 'done' }])
  })

  it('undoes what a function that waits has begun (PW_TX_ASYNC)', async () => {
    const codes: unknown[] = []
    await deliver(
      async (delivery) => {
        const waits = delivery.transaction(async (tx) => mark(tx as Database.Database, delivery.id, 'early'))
        codes.push(await waits.catch((error) => error.code))
        await delivery.transaction((tx) => {
          tx.exec('savepoint mine')
          mark(tx as Database.Database, delivery.id, 'late')
        })
      },
      ['done'],
    )
    expect(codes).toEqual(['PW_TX_ASYNC'])
    expect(sentIn(db)).toEqual(['late'])
  })

  it('keeps nothing when a call in it was refused, also if fn swallows that', async () => {
    const codes: unknown[] = []
    await pw.batch('over').seal()
    await deliver(
      async (delivery) => {
        const refused = delivery.transaction((tx) => {
          mark(tx as Database.Database, delivery.id, 'refused')
          try {
            pw.queue('next').enqueueSync(1, { tx: tx as Database.Database, batch: 'over' })
          } catch {
            // As if nothing had happened.
          }
        })
        codes.push(await refused.catch((error) => error.code))
        const ended = delivery.transaction((tx) => void tx.exec('commit'))
        codes.push(await ended.catch((error) => error.code))
        await delivery.transaction(() => {})
      },
      ['done'],
    )
    expect(codes).toEqual(['PW_BATCH_SEALED', 'PW_TX_NONE'])
    expect(sentIn(db)).toEqual([])
  })

  it('is a retry with PW_TX_ROLLED_BACK when the handler swallows its failure', async () => {
    const { heard } = await deliver(
      async (delivery) => {
        const fail = () => {
          if (delivery.number === 1) throw new Error('swallowed')
        }
        await delivery.transaction(fail).catch(() => {})
      },
      ['done'],
    )
    expect(heard).toMatchObject([{ event: 'retry', error: { code: 'PW_TX_ROLLED_BACK' } }, { event: 'done' }])
  })

  it('acks once: a second one and later failures change nothing', async () => {
    const { heard } = await deliver(
      async (delivery) => {
        await delivery.transaction((tx) => mark(tx as Database.Database, delivery.id, 'once'))
        const again = delivery.transaction((tx) => mark(tx as Database.Database, delivery.id, 'twice'))
        await expect(again).rejects.toMatchObject({ code: 'PW_LEASE_LOST' })
        throw new Error('after the ack')
      },
      ['done', 'error'],
    )
    expect(sentIn(db)).toEqual(['once'])
    expect(heard).toMatchObject([{ event: 'error', code: 'PW_STRAY_ERROR' }, { event: 'done' }])
  })

  it('works on a store in memory, whose database is the caller’s only through it', async () => {
    const memory = await connect('sqlite::memory:')
    onTestFinished(() => memory.close())
    const queue = memory.queue('q')
    await queue.enqueue(1)
    const worker = queue.work((_, delivery) =>
      delivery.transaction((tx) => {
        tx.exec('create table mine (n); insert into mine values (1)')
        return tx.prepare('select count(*) as n from mine').get()
      }),
    )
    await next(worker, 'done')
  })
})

describe('ackSync', () => {
  it('acks with the transaction of the caller, or not at all', async () => {
    const { id, heard } = await deliver(
      (delivery) => {
        const act = db.transaction(() => {
          mark(db, delivery.id, `try ${delivery.number}`)
          delivery.ackSync({ tx: db })
          if (delivery.number === 1) throw new Error('undone')
        })
        act()
      },
      ['done'],
    )
    expect(sentIn(db)).toEqual(['try 2'])
    expect(heard).toMatchObject([
      { event: 'retry', number: 1 },
      { event: 'done', id, number: 2 },
    ])
  })

  it('is a retry with PW_TX_ROLLED_BACK when the handler returns all the same', async () => {
    const { heard } = await deliver(
      (delivery) => {
        db.exec('begin')
        delivery.ackSync({ tx: db })
        db.exec(delivery.number === 1 ? 'rollback' : 'commit')
      },
      ['done'],
    )
    expect(heard).toMatchObject([{ event: 'retry', error: { code: 'PW_TX_ROLLED_BACK' } }, { event: 'done' }])
  })

  it('waits for a transaction that is still open when the handler returns', async () => {
    let commit = () => {}
    const open = new Promise<void>((resolve) => {
      commit = () => {
        db.exec('commit')
        resolve()
      }
    })
    const { heard } = await deliver(
      async (delivery) => {
        db.exec('begin')
        delivery.ackSync({ tx: db })
        setImmediate(() => setImmediate(commit))
      },
      ['done'],
    )
    await open
    expect(heard).toMatchObject([{ event: 'done', number: 1 }])
  })

  it('throws PW_LEASE_LOST for a delivery that holds its task no more', async () => {
    const first: { delivery?: Delivery<'sqlite'> } = {}
    const codes: unknown[] = []
    await deliver(
      (delivery) => {
        if (first.delivery) {
          const late = db.transaction(() => {
            mark(db, delivery.id, 'late')
            first.delivery?.ackSync({ tx: db })
          })
          codes.push(codeOf(late))
          return
        }
        first.delivery = delivery
        throw new Error('again')
      },
      ['done'],
    )
    expect(codes).toEqual(['PW_LEASE_LOST'])
    expect(sentIn(db)).toEqual([])
  })
})

describe('onceSync', () => {
  it('answers true the first time only, in the transaction that commits', async () => {
    const said: unknown[] = []
    await deliver(
      (delivery) => {
        for (const end of ['rollback', 'commit', 'commit']) {
          db.exec('begin')
          said.push(delivery.onceSync('letter 1', { tx: db }))
          db.exec(end)
        }
        said.push(codeOf(() => delivery.onceSync('', { tx: db })))
      },
      ['done'],
    )
    expect(said).toEqual([true, true, false, 'PW_NAME_INVALID'])
  })

  it('knows keys by queue', async () => {
    const said: unknown[] = []
    for (const name of ['a', 'b', 'a']) {
      const queue = pw.queue(name)
      await queue.enqueue(1)
      const worker = queue.work((_, delivery) => {
        said.push(db.transaction(() => delivery.onceSync('same', { tx: db }))())
      })
      await next(worker, 'done')
      await worker.stop()
    }
    expect(said).toEqual([true, true, false])
  })
})

it('refuses on SQLite what is for PostgreSQL, and the other way round', async () => {
  const codes: unknown[] = []
  await deliver(
    async (delivery) => {
      const given = { tx: db as never }
      for (const act of [() => delivery.ack(given), () => delivery.once('k', given)]) {
        codes.push(await act().catch((error) => error.code))
      }
    },
    ['done'],
  )
  expect(codes).toEqual(['PW_TX_UNSUPPORTED', 'PW_TX_UNSUPPORTED'])
})
