// Which transaction fits which store, checked by the compiler alone.

import type BetterSqlite from 'better-sqlite3'
import type pg from 'pg'
import { connect, type Delivery, type Piecework } from 'piecework'

declare const db: BetterSqlite.Database
declare const client: pg.PoolClient
declare const pool: pg.Pool
declare const url: string

export async function sqlite(): Promise<void> {
  const pw = await connect('sqlite:work.db')
  const mail = pw.queue('mail')
  mail.enqueueSync(1, { tx: db, key: 'a' })
  // @ts-expect-error a transaction is what this call is for
  mail.enqueueSync(1, {})
  // @ts-expect-error a client of PostgreSQL is no database of SQLite
  mail.enqueueSync(1, { tx: client })
  // @ts-expect-error enqueue waits, and a transaction on SQLite does not
  void mail.enqueue(1, { tx: db })
  mail.work(async (_, delivery) => {
    await delivery.transaction((tx) => tx.prepare('select 1').get())
    delivery.ackSync({ tx: db })
    delivery.onceSync('a', { tx: db }).valueOf()
    // @ts-expect-error a client of PostgreSQL is no database of SQLite
    delivery.ackSync({ tx: client })
    // @ts-expect-error on SQLite there is ackSync
    await delivery.ack({ tx: db })
    // @ts-expect-error on SQLite there is onceSync
    await delivery.once('a', { tx: db })
  })
}

export async function postgres(): Promise<void> {
  const pw = await connect('postgres://localhost/work')
  const mail = pw.queue('mail')
  void mail.enqueue(1, { tx: client })
  void mail.enqueueMany([1], { tx: client })
  // @ts-expect-error each statement of a pool may run on another connection
  void mail.enqueue(1, { tx: pool })
  // @ts-expect-error a database of SQLite is no client of PostgreSQL
  void mail.enqueue(1, { tx: db })
  // @ts-expect-error PostgreSQL answers later
  mail.enqueueSync(1, { tx: client })
  mail.work(async (_, delivery) => {
    const rows: number = await delivery.transaction(async (tx) => (await tx.query('select 1')).rows.length)
    await delivery.ack({ tx: client })
    if (await delivery.once('a', { tx: client })) rows.toFixed()
    // @ts-expect-error a database of SQLite is no client of PostgreSQL
    await delivery.ack({ tx: db })
    // @ts-expect-error PostgreSQL answers later
    delivery.ackSync({ tx: client })
    // @ts-expect-error a transaction is what this call is for
    await delivery.ack({})
  })
  const through = await connect({ pool })
  void through.queue('mail').enqueue(1, { tx: client })
  // @ts-expect-error a pool is PostgreSQL's
  void through.queue('mail').enqueue(1, { tx: db })
}

export async function remote(): Promise<void> {
  const mail = (await connect('http://127.0.0.1:7420')).queue('mail')
  // @ts-expect-error a broker takes no transaction
  void mail.enqueue(1, { tx: client })
  // @ts-expect-error a broker takes no transaction
  mail.enqueueSync(1, { tx: db })
  mail.work((_, delivery) => {
    // @ts-expect-error a broker takes no transaction
    void delivery.ack({ tx: client })
  })
}

/** For a plain string it is found out when the program runs, unless the program says which it is. */
export async function plain(): Promise<void> {
  const mail = (await connect(url)).queue('mail')
  void mail.enqueue(1, { tx: client })
  mail.enqueueSync(1, { tx: db })
  const said = (await connect<'postgres'>(url)).queue('mail')
  void said.enqueue(1, { tx: client })
  // @ts-expect-error it was said to be PostgreSQL
  said.enqueueSync(1, { tx: db })
  const options = (await connect({ url: 'sqlite::memory:', durability: 'full' })).queue('mail')
  options.enqueueSync(1, { tx: db })
  // @ts-expect-error the URL says SQLite
  void options.enqueue(1, { tx: client })
}

/** What takes any store takes each of them. */
export function any(one: Piecework<'sqlite'>, other: Piecework<'postgres'>, delivery: Delivery<'postgres'>): unknown[] {
  const all: Piecework[] = [one, other]
  const each: Delivery[] = [delivery]
  return [all, each]
}
