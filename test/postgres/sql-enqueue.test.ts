// `piecework.enqueue` in SQL: what a trigger adds is the task that the library would have added, in the same commit.
import type pg from 'pg'
import { connect, type Piecework } from 'piecework'
import { beforeAll, expect, it, onTestFinished } from 'vitest'
import type { TaskRecord } from '../../dist/task/records.js'
import { client, opened } from './client.js'
import { serverOfFile } from './server.js'

const starting = serverOfFile()
let url: string
beforeAll(async () => {
  url = await (await starting()).database()
}, 60_000)

async function parts(): Promise<{ pw: Piecework<'postgres'>; sql: pg.Client }> {
  const pw = await connect<'postgres'>(url)
  onTestFinished(() => pw.close())
  return { pw, sql: await client(url) }
}

const call = 'select piecework.enqueue($1, $2, $3) as id'
const add = async (sql: pg.Client, queue: string, payload: string, options = {}): Promise<string> =>
  String((await sql.query(call, [queue, payload, JSON.stringify(options)])).rows[0].id)

it('makes the row that the library makes, whatever is asked for', async () => {
  const { pw, sql } = await parts()
  const engine = await opened(url)
  await pw.queue('mail', { headStartMs: 1000 }).configure({ headStartMs: 5000 })
  const payload = '{"b": 1.50, "b":"\\u0000 \\ud83d\uffff"}'
  const { headers, ...given } = {
    type: 'letter',
    key: 'k',
    priority: 3,
    headers: { a: 'b' },
    deadlineMs: 60_000,
    batch: 'b',
  }
  const times = [{}, { delayMs: 50_000 }, { dueAt: Date.now() + 90_000 }, { dueAt: 1000 }]
  for (const time of times) {
    const ids = [
      (await engine.enqueue(null, [{ queue: 'mail', payload, headers: JSON.stringify(headers), ...given, ...time }]))[0]
        ?.id,
      await add(sql, 'mail', payload, { ...given, headers, ...time }),
    ]
    const { items } = await engine.select('task', { ids: ids as string[] }, null)
    const [ours, theirs] = items.map((item) => item as unknown as TaskRecord)
    const near = (instant: number | null) => (instant === null ? null : Math.round(instant / 20_000))
    const shown = ({ id: _, state, enqueuedAt, dueAt, deadlineAt, place, headers: text, ...row }: TaskRecord) => ({
      ...{ ...row, scheduled: state === 'scheduled', headers: JSON.parse(text ?? 'null') },
      ...{ near: [near(dueAt), near(deadlineAt)], headStartMs: (dueAt ?? enqueuedAt) - place },
    })
    expect(shown(theirs as TaskRecord)).toEqual(shown(ours as TaskRecord))
  }
  await engine.sweep(100)
  expect(await pw.batch('b').stats()).toMatchObject({ total: 8 })
  for (const { shown, counted } of (await engine.select('proof', {}, null)).items) expect(shown).toEqual(counted)
})

it('adds from a trigger, if and only if its statement commits', async () => {
  const { pw, sql } = await parts()
  await sql.query(`create table orders (id int);
    create function tell() returns trigger language plpgsql as $$ begin
      perform piecework.enqueue('orders', to_json(new), jsonb_build_object('key', new.id::text)); return new;
    end $$;
    create trigger tell after insert on orders for each row execute function tell()`)
  await sql.query('begin; insert into orders values (1); rollback')
  await sql.query('insert into orders values (2), (3)')
  const heard: unknown[] = []
  const orders = pw.queue<{ id: number }>('orders')
  const worker = orders.work((payload) => void heard.push(payload.id))
  expect(await orders.drained()).toEqual({ dead: 0 })
  await worker.stop()
  expect(heard.sort()).toEqual([2, 3])
})

it('knows dedup keys and routes', async () => {
  const { pw, sql } = await parts()
  const first = await add(sql, 'd', '1', { dedupKey: 'k' })
  expect(await add(sql, 'd', '2', { dedupKey: 'k' })).toBe(first)
  expect(await pw.queue('d').enqueue(3, { dedupKey: 'k' })).toEqual({ id: first, duplicate: true })
  await pw.queue('d').move({ type: 'd', to: 'e' })
  expect(await add(sql, 'd', '4', { dedupKey: 'k' })).toBe(first)
  const led = await add(sql, 'd', '5')
  expect((await pw.queue('e').list()).items.map(({ id }) => id)).toEqual([first, led])
})

const refused: Record<string, readonly [string, string, object, RegExp]> = {
  'an empty name': ['', '1', {}, /PW_NAME_INVALID/],
  'a control character': ['a\u0007', '1', {}, /PW_NAME_INVALID/],
  'what is no JSON': ['q', '{', {}, /invalid input syntax for type json/],
  'a large payload': ['q', `"${'x'.repeat(1_048_576)}"`, {}, /PW_PAYLOAD_TOO_LARGE/],
  'an unknown option': ['q', '1', { prioritty: 1 }, /PW_OPTION_UNKNOWN.*prioritty/],
  'a priority': ['q', '1', { priority: 101 }, /PW_OPTION_INVALID.*-100 to 100/],
  'half a millisecond': ['q', '1', { delayMs: 1.5 }, /PW_OPTION_INVALID/],
  'two instants': ['q', '1', { delayMs: 1, dueAt: 1 }, /PW_OPTION_INVALID/],
  'a header': ['q', '1', { headers: { a: 1 } }, /PW_OPTION_INVALID/],
  'a sealed batch': ['q', '1', { batch: 'sealed' }, /PW_BATCH_SEALED/],
}

it.each(Object.entries(refused))('refuses %s', async (_, [queue, payload, options, why]) => {
  const { pw, sql } = await parts()
  await pw
    .batch('sealed')
    .seal()
    .catch(() => {})
  await expect(add(sql, queue, payload, options)).rejects.toThrow(why)
})
