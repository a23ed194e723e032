// Transactions of the caller on PostgreSQL: effects, enqueues, acks and effect keys are there together or not at all.
import pg from 'pg'
import { connect, type Delivery, type Piecework, type PieceworkError, type Worker, type WorkerEvents } from 'piecework'
import { beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { connectionOf } from '../../dist/queue/client.js'
import { type Server, serverOfFile } from '../postgres/server.js'

const starting = serverOfFile()
let server: Server
let url: string
let pw: Piecework<'postgres'>
let tx: pg.Client

beforeAll(async () => {
  server = await starting()
}, 60_000)
beforeEach(async () => {
  url = await server.database()
  pw = await connect<'postgres'>(url)
  onTestFinished(() => pw.close())
  tx = await clientOf(url)
  await tx.query('create table sent (id text, note text)')
})

async function clientOf(where: string): Promise<pg.Client> {
  const made = new pg.Client({ connectionString: where })
  await made.connect()
  onTestFinished(() => made.end())
  return made
}

type Client = Pick<pg.Client, 'query'>
const mark = (client: Client, id: string, note: string) => client.query('insert into sent values ($1, $2)', [id, note])
const sent = async () => (await tx.query('select note from sent order by note')).rows.map((row) => row.note)
const codeOf = (act: Promise<unknown>) =>
  act.then(
    () => undefined,
    (error: PieceworkError) => error.code,
  )
const next = <E extends keyof WorkerEvents>(worker: Worker, event: E): Promise<WorkerEvents[E]> =>
  new Promise((resolve) => void worker.on(event, resolve))
async function proven(): Promise<void> {
  for (const { shown, counted } of (
    await connectionOf(pw as Piecework)
      .engine()
      .select('proof', {}, null)
  ).items) {
    expect(shown).toEqual(counted)
  }
}

async function deliver(handler: (delivery: Delivery<'postgres'>) => unknown, events: (keyof WorkerEvents)[]) {
  const mail = pw.queue<string>('mail', { backoff: { baseMs: 1 } })
  const { id } = await mail.enqueue('hello')
  const worker = mail.work((_, delivery) => handler(delivery))
  const heard: unknown[] = []
  for (const event of ['retry', 'done', 'stale', 'dead', 'error'] as const) {
    worker.on(event, (what: object) => heard.push({ event, ...what, ...('code' in what ? { code: what.code } : {}) }))
  }
  await Promise.all(events.map((event) => next(worker, event)))
  await worker.stop()
  await proven()
  return { id, heard, mail }
}

describe('transaction(fn)', () => {
  it('commits effects, enqueues and ack together, and wakes who waits for those', async () => {
    const following = pw.queue('next')
    const worker = following.work(() => {})
    await worker.ready
    const done = next(worker, 'done')
    const { id, heard, mail } = await deliver(
      async (delivery) => {
        const told = await delivery.transaction(async (own) => {
          await mark(own as Client, delivery.id, 'sent')
          await following.enqueue({ of: delivery.id }, { tx: own })
          return 'told'
        })
        expect(told).toBe('told')
      },
      ['done'],
    )
    expect(await sent()).toEqual(['sent'])
    expect(heard).toMatchObject([{ event: 'done', id, number: 1 }])
    expect(await mail.get(id)).toEqual({ state: 'gone' })
    await done
    expect(await mail.stats()).toMatchObject({ done: 1, stale: 0, failures: 0 })
  })

  it('undoes everything when fn throws, which the caller hears as it was thrown', async () => {
    const wrong = new Error('no')
    const { heard } = await deliver(
      (delivery) =>
        delivery.transaction(async (own) => {
          await mark(own as Client, delivery.id, `try ${delivery.number}`)
          if (delivery.number === 1) throw wrong
        }),
      ['done'],
    )
    expect(await sent()).toEqual(['try 2'])
    expect(heard).toMatchObject([{ event: 'retry', error: wrong }, { event: 'done' }])
  })

  it('keeps nothing when a statement or a call in it was refused, also if fn swallows that', async () => {
    const codes: unknown[] = []
    await pw.batch('over').seal()
    await deliver(
      async (delivery) => {
        const swallowing = (act: (own: Client) => Promise<unknown>) =>
          delivery.transaction(async (own) => {
            await mark(own as Client, delivery.id, 'refused')
            await act(own as Client).catch(() => {})
          })
        codes.push(await codeOf(swallowing((own) => pw.queue('n').enqueue(1, { tx: own as pg.Client, batch: 'over' }))))
        codes.push(await codeOf(swallowing((own) => own.query('select nonsense'))))
        codes.push(await codeOf(swallowing((own) => own.query('commit'))))
        await delivery.transaction(async () => {})
      },
      ['done'],
    )
    expect(codes).toEqual(['PW_STORE_FAILED', 'PW_STORE_FAILED', 'PW_TX_NONE'])
    // What fn committed itself stays: that transaction was no longer ours.
    expect(await sent()).toEqual(['refused'])
  })

  it('is a retry with PW_TX_ROLLED_BACK when the handler swallows its failure, and acks once', async () => {
    const { heard } = await deliver(
      async (delivery) => {
        const fail = async () => {
          if (delivery.number === 1) throw new Error('swallowed')
        }
        await delivery.transaction(fail).catch(() => {})
        if (delivery.number === 1) return
        expect(await codeOf(delivery.transaction(async () => {}))).toBe('PW_LEASE_LOST')
        throw new Error('after the ack')
      },
      ['done', 'error'],
    )
    expect(heard).toMatchObject([
      { event: 'retry', error: { code: 'PW_TX_ROLLED_BACK' } },
      { event: 'error', code: 'PW_STRAY_ERROR' },
      { event: 'done' },
    ])
  })

  it('does not wait for itself when all connections of a small pool are in transactions', async () => {
    const pool = new pg.Pool({ connectionString: url, max: 2 })
    const through = await connect({ pool })
    const queue = through.queue('small')
    await queue.enqueueMany([1, 2, 3, 4])
    let both = 0
    let open = () => {}
    const full = new Promise<void>((resolve) => {
      open = resolve
    })
    const worker = queue.work(async (_, delivery) => {
      await delivery.transaction(async (own) => {
        if (++both === 2) open()
        await full
        await through.queue(`new ${delivery.id}`).enqueue(1, { tx: own, batch: `new ${delivery.id}` })
      })
    })
    expect(await queue.drained()).toEqual({ dead: 0 })
    await worker.stop()
    await through.close()
    await pool.end()
  })
})

describe('ack({ tx })', () => {
  it('acks with the transaction of the caller, or not at all', async () => {
    const { id, heard } = await deliver(
      async (delivery) => {
        await tx.query('begin')
        await mark(tx, delivery.id, `try ${delivery.number}`)
        await delivery.ack({ tx })
        await tx.query(delivery.number === 1 ? 'rollback' : 'commit')
      },
      ['done'],
    )
    expect(await sent()).toEqual(['try 2'])
    expect(heard).toMatchObject([
      { event: 'retry', number: 1, error: { code: 'PW_TX_ROLLED_BACK' } },
      { event: 'done', id, number: 2 },
    ])
  })

  it('waits for a transaction that is still open when the handler returns', async () => {
    const { heard } = await deliver(
      async (delivery) => {
        await tx.query('begin')
        await delivery.ack({ tx })
        setImmediate(() => setImmediate(() => void tx.query('commit')))
      },
      ['done'],
    )
    expect(heard).toMatchObject([{ event: 'done', number: 1 }])
  })

  it('knows an ack that was undone with a savepoint from one that was committed', async () => {
    const { heard } = await deliver(
      async (delivery) => {
        await tx.query('begin; savepoint a')
        await delivery.ack({ tx })
        if (delivery.number === 1) await tx.query('rollback to a')
        await mark(tx, delivery.id, `try ${delivery.number}`)
        await tx.query('commit')
      },
      ['done'],
    )
    expect(await sent()).toEqual(['try 1', 'try 2'])
    expect(heard).toMatchObject([
      { event: 'retry', error: { code: 'PW_TX_ROLLED_BACK' } },
      { event: 'done', number: 2 },
    ])
  })

  it('throws PW_LEASE_LOST for a stale receipt, after which only a rollback is left', async () => {
    const first: { delivery?: Delivery<'postgres'> } = {}
    const said: unknown[] = []
    await deliver(
      async (delivery) => {
        if (first.delivery === undefined) {
          first.delivery = delivery
          throw new Error('again')
        }
        const { engine } = connectionOf(pw as Piecework).ports
        await tx.query('begin')
        await mark(tx, delivery.id, 'late')
        const by = { worker: 'w', flush: null }
        const stale = engine.settle(by, [{ receipt: `${delivery.id}.1.1.1`, do: 'ack' }], tx)
        said.push(await codeOf(stale), (await tx.query('commit')).command, await codeOf(first.delivery.ack({ tx })))
      },
      ['done'],
    )
    expect(said).toEqual(['PW_LEASE_LOST', 'ROLLBACK', 'PW_LEASE_LOST'])
    expect(await sent()).toEqual([])
  })

  it('meets an extension under repeatable read: the transaction is run again as any other there', async () => {
    const said: unknown[] = []
    await deliver(
      async (delivery) => {
        await tx.query('begin isolation level repeatable read')
        await tx.query('select 1')
        await delivery.extend(60_000)
        said.push(await codeOf(delivery.ack({ tx })))
        await tx.query('rollback')
        for (const level of ['serializable', 'repeatable read']) {
          await tx.query(`begin isolation level ${level}`)
          await mark(tx, delivery.id, level)
          if (level === 'serializable') await tx.query('rollback')
        }
        await delivery.ack({ tx })
        await tx.query('commit')
      },
      ['done'],
    )
    expect(said).toEqual(['PW_BUSY'])
    expect(await sent()).toEqual(['repeatable read'])
  })
})

describe('enqueue({ tx })', () => {
  it('is there if and only if the transaction or savepoint it is in commits (P2)', async () => {
    const mail = pw.queue('mail')
    await tx.query('begin isolation level serializable; select 1')
    // A batch that was made after the snapshot is nothing that this transaction can see.
    expect(await codeOf(mail.enqueue('early', { tx, batch: 'both' }))).toBe('PW_BUSY')
    await tx.query('rollback; begin isolation level serializable; savepoint a')
    await mail.enqueue('undone', { tx, key: 'k', priority: 3, batch: 'both', dedupKey: 'd' })
    await tx.query('rollback to a')
    const { id } = await mail.enqueue('kept', { tx, key: 'k', dedupKey: 'd', batch: 'both' })
    expect((await mail.list()).items).toEqual([])
    await tx.query('commit')
    expect((await mail.list()).items).toMatchObject([{ id, payload: 'kept' }])
    expect(await pw.batch('both').stats()).toMatchObject({ total: 1 })
    await proven()
  })

  it('wakes a worker that waits as soon as the caller has committed', async () => {
    const mail = pw.queue('mail')
    const worker = mail.work(() => {})
    await worker.ready
    const done = next(worker, 'done')
    await tx.query('begin')
    const { id } = await mail.enqueue(1, { tx })
    await tx.query('commit')
    expect(await done).toMatchObject({ id })
  })

  it('sees a policy and a route that others set since this process last looked', async () => {
    const mail = pw.queue('mail')
    await mail.enqueue(0)
    const other = await connect<'postgres'>(url)
    await other.queue('mail').move({ type: 'mail', to: 'elsewhere' })
    await other.close()
    await tx.query('begin')
    await mail.enqueue(1, { tx })
    await tx.query('commit')
    expect((await pw.queue('elsewhere').list()).items).toHaveLength(2)
  })

  it('refuses what is no open transaction on this very store', async () => {
    const mail = pw.queue('mail')
    const code = (given: unknown) => codeOf(mail.enqueue(1, { tx: given as pg.Client }))
    expect(await code(tx)).toBe('PW_TX_NONE')
    const pool = new pg.Pool({ connectionString: url })
    onTestFinished(() => pool.end())
    expect(await code(pool)).toBe('PW_TX_NONE')
    const elsewhere = await clientOf(await server.database())
    await elsewhere.query('begin')
    expect(await code(elsewhere)).toBe('PW_TX_OTHER_DATABASE')
    const twin = await server.database()
    await (await connect(twin)).close()
    const there = await clientOf(twin)
    await there.query('begin')
    expect(await code(there)).toBe('PW_TX_OTHER_DATABASE')
    for (const no of [null, 7, 'work', {}, { prepare() {} }]) expect(await code(no)).toBe('PW_TX_OTHER_DATABASE')
    expect((await mail.list()).items).toEqual([])
    expect(await codeOf((async () => mail.enqueueSync(1, { tx: tx as never }))())).toBe('PW_TX_UNSUPPORTED')
  })
})

describe('once', () => {
  it('answers true the first time only, in the transaction that commits', async () => {
    const said: unknown[] = []
    await deliver(
      async (delivery) => {
        for (const end of ['rollback', 'commit', 'commit']) {
          await tx.query('begin')
          said.push(await delivery.once('letter 1', { tx }))
          await tx.query(end)
        }
      },
      ['done'],
    )
    expect(said).toEqual([true, true, false])
  })

  it('waits for a transaction that is just making the same mark', async () => {
    const said: unknown[] = []
    const other = await clientOf(url)
    await deliver(
      async (delivery) => {
        for (const end of ['rollback', 'commit']) {
          await tx.query('begin')
          await other.query('begin')
          said.push(await delivery.once('same', { tx }))
          const second = delivery.once('same', { tx: other })
          await tx.query(end)
          said.push(await second)
          await other.query('rollback')
        }
      },
      ['done'],
    )
    expect(said).toEqual([true, true, true, false])
  })
})
