// Three handlers are overdue while their loop is blocked and the server is slow: each failure told is kept (P5).
import { connect } from 'piecework'
import { expect, it, onTestFinished } from 'vitest'
import { passed, start } from '../laws/processes.js'
import { postgresSubject } from './law-store.js'
import { serverOfFile } from './server.js'

const server = serverOfFile()
/** Longer than three handlers take to start on a busy machine, of which the last one blocks the loop. */
const timeoutMs = 3000
const policy = { leaseMs: 30_000, timeoutMs, backoff: { baseMs: 3_600_000, jitter: 'none' } } as const

/** From now on nobody writes a history before somebody has written into the gate. */
const gate = `
create table gate (opened boolean);
create function wait_at_gate() returns trigger language plpgsql as $$ begin
  while not exists (select from gate) loop perform pg_sleep(0.01); end loop;
  return new;
end $$;
create trigger wait_at_gate before insert on piecework.history for each row execute function wait_at_gate();`

it('tells no failure that the store has not heard of, though it came while another one was being settled', async () => {
  const store = await postgresSubject(server).fresh()
  onTestFinished(() => store.remove())
  const { sql } = await server()
  await sql(store.url, gate)
  const pw = await connect(store.url)
  onTestFinished(() => pw.close())
  const tasks = pw.queue('work', policy)
  const worker = start('worker', { url: store.url, queue: 'work', policy, options: { concurrency: 3 } })

  const first = await tasks.enqueue({ do: 'hang' })
  await worker.heard('started')
  // Some rounds of the heartbeat later, so that it ends them one after the other.
  await passed(400)
  const second = await tasks.enqueue({ do: 'hang' })
  await worker.heard('started', 2)
  const last = await tasks.enqueue({ do: 'busy', ms: timeoutMs + 1000 })
  await worker.heard('effect')
  await sql(store.url, 'insert into gate values (true)')

  const told = await worker.heard('retry', 3)
  expect(told.map(({ id, number }) => [id, number])).toEqual([first, second, last].map(({ id }) => [id, 1]))
  for (const { id } of [first, second, last]) {
    expect(await store.history(id)).toMatchObject([{ number: 1, outcome: 'timeout', code: 'PW_TIMEOUT' }])
  }
})
