// What the three typings of queue() accept and refuse, checked by the compiler alone.
import type { DeadLetter, Json, Piecework } from 'piecework'
import { type } from 'piecework'
import * as v from 'valibot'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
/** Compiles only when A and B are the same type. */
const same = <A, B>(_: Same<A, B>): void => undefined

declare const pw: Piecework
const text = v.object({ to: v.string(), size: v.optional(v.pipe(v.string(), v.transform(Number)), '1') })

export function oneSchema(): void {
  const mail = pw.queue('mail', { schema: text, leaseMs: 1000 })
  void mail.enqueue({ to: 'ada' })
  void mail.enqueue({ to: 'ada', size: '3' }, { type: 'welcome', delayMs: undefined })
  // @ts-expect-error the schema's input has `to`
  void mail.enqueue({ too: 'ada' })
  // @ts-expect-error the input's size is text; the number is the output
  void mail.enqueue({ to: 'ada', size: 3 })
  mail.work((payload) => same<typeof payload, { to: string; size: number }>(true))
  mail.work({ welcome: (payload) => payload.size.toFixed(), '*': (payload) => payload.to })
  // @ts-expect-error the output's size is a number
  mail.work((payload: { size: string }) => payload.size)
  // @ts-expect-error a queue has no such policy field
  pw.queue('mail', { schema: text, leasMs: 1000 })
  // @ts-expect-error a plain object is no schema
  pw.queue('mail', { schema: { to: 'string' } })
  // @ts-expect-error either schema or types
  pw.queue('mail', { schema: text, types: { text } })
}

export function schemasByType(): void {
  const work = pw.queue('work', { types: { mail: text, resize: type<{ width: number; at: Date }>() } })
  void work.enqueue({ to: 'ada' }, { type: 'mail' })
  void work.enqueue({ width: 3, at: new Date(0) }, { type: 'resize', key: 'a' })
  // @ts-expect-error the type is required
  void work.enqueue({ to: 'ada' })
  // @ts-expect-error the type is required among the options
  void work.enqueue({ to: 'ada' }, { key: 'a' })
  // @ts-expect-error no such type
  void work.enqueue({ to: 'ada' }, { type: 'post' })
  // @ts-expect-error the payload is that of another type
  void work.enqueue({ to: 'ada' }, { type: 'resize' })
  work.work({ mail: (payload) => payload.size.toFixed(), resize: ({ at }) => same<typeof at, string>(true) })
  // @ts-expect-error a handler for resize is missing
  work.work({ mail: () => undefined })
  // @ts-expect-error the handler map names a type that does not exist
  work.work({ mail: () => undefined, resize: () => undefined, post: () => undefined })
  work.work({ mail: () => undefined }, { types: ['mail'] })
  // @ts-expect-error the types named have a handler each
  work.work({ mail: () => undefined }, { types: ['mail', 'resize'] })
  work.work({ mail: (payload) => payload.to, '*': (payload) => same<typeof payload, unknown>(true) })
  work.work((payload) => ('to' in payload ? payload.to : payload.at))
}

export async function readBack(): Promise<void> {
  const dated = pw.queue<{ to: string; at: Date }>('mail').dead
  for (const { payload } of (await dated.list()).items) same<typeof payload, Dated | undefined>(true)
  same<Dated | undefined, NonNullable<Awaited<ReturnType<typeof dated.get>>>['payload']>(true)
  // Stored is what was enqueued, not what a schema makes of it.
  const mail = pw.queue('mail', { schema: text })
  for (const { payload } of (await mail.list()).items) same<typeof payload, Mail | undefined>(true)
  const task = await mail.get('1')
  if (task.state !== 'gone' && task.state !== 'done') same<typeof task.payload, Mail | undefined>(true)
  // @ts-expect-error a task that is gone has no payload
  task.payload
  const work = pw.queue('work', { types: { mail: text, resize: type<{ width: number }>() } })
  for (const { payload } of (await work.dead.list()).items) {
    same<typeof payload, Mail | { width: number } | undefined>(true)
  }
  // A queue without a stated type gives what it takes: anything.
  for (const { payload } of (await pw.queue('any').dead.list()).items) payload.to.toUpperCase()
  const any: DeadLetter = { ...(await pw.queue<number>('n').dead.list()).items[0] } as DeadLetter<number>
  same<typeof any.payload, unknown>(true)
}

interface Dated {
  to: string
  at: string
}

interface Mail {
  to: string
  size?: string
}

export async function many(): Promise<void> {
  const mail = pw.queue('mail', { schema: text })
  await mail.enqueueMany([{ to: 'ada' }], { key: 'k', onInvalid: 'bury' })
  await mail.enqueueMany(new Set([{ to: 'ada' }]), (payload, index) => ({ dedupKey: `${payload.to} ${index}` }))
  // @ts-expect-error items are the schema's input
  await mail.enqueueMany([{ to: 1 }])
  // @ts-expect-error a promise of items is no stream of items
  await mail.enqueueMany(Promise.resolve([{ to: 'ada' }]))
  const work = pw.queue('work', { types: { mail: text, resize: type<{ width: number }>() } })
  await work.enqueueMany([{ width: 1 }], { type: 'resize' })
  await work.enqueueMany([{ width: 1 }, { to: 'ada' }], (item) => ({ type: 'to' in item ? 'mail' : 'resize' }))
  // @ts-expect-error each item needs its type
  await work.enqueueMany([{ width: 1 }])
  // @ts-expect-error the payload is that of another type
  await work.enqueueMany([{ to: 'ada' }], { type: 'resize' })
}

interface Order {
  id: string
  at: Date
  lines: { count: number; note?: string }[]
  buyer: { name: string } | null
}

export function untyped(): void {
  const any = pw.queue('any')
  void any.enqueue({ whatever: 1 })
  any.work((payload) => payload.whatever.further)
  const orders = pw.queue<Order>('orders', { deliveriesMax: null, backoff: { baseMs: 1 } })
  void orders.enqueue({ id: '1', at: new Date(0), lines: [], buyer: null })
  // @ts-expect-error fields of T are required
  void orders.enqueue({ id: '1' })
  orders.work((payload, delivery) => {
    same<typeof payload.at, string>(true)
    same<typeof payload.lines, { count: number; note?: string }[]>(true)
    same<typeof delivery.number, number>(true)
    // @ts-expect-error a Date does not survive JSON
    payload.at.getTime()
  })
  // @ts-expect-error a policy field of another kind
  pw.queue('orders', { leaseMs: '30s' })
}

export function json(): void {
  same<Json<Date>, string>(true)
  same<Json<{ a?: number; b: string | undefined }>, { a?: number; b?: string }>(true)
  same<Json<[Date, number]>, [string, number]>(true)
  same<Json<bigint>, never>(true)
  same<Json<unknown>, unknown>(true)
  same<Json<'a' | 1 | null>, 'a' | 1 | null>(true)
}

export function options(): void {
  const any = pw.queue('any')
  void any.enqueue(1, { dueAt: new Date(0), headers: { trace: 'x' }, batch: pw.batch('b'), priority: -3 })
  // @ts-expect-error headers are texts
  void any.enqueue(1, { headers: { trace: 1 } })
  // @ts-expect-error a misspelled option
  void any.enqueue(1, { dedupkey: 'x' })
  // @ts-expect-error a misspelled option of a worker
  any.work(() => undefined, { concurency: 3 })
  // @ts-expect-error a filter or all: true, never nothing
  void any.dead.redrive()
  // @ts-expect-error only true says so
  void any.dead.discard({ all: false })
}
