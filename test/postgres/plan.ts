// The plan of a claim and the pages it touches, among as many tasks as a test fills in past the engine.
import pg from 'pg'
import { statementsIn } from '../../dist/engines/postgres/statements.js'

/** Ready, scheduled and dead tasks as a year leaves them, written past the engine. */
export const fill = (ready: number, scheduled: number, dead: number) => `
insert into piecework.queue (id, name, createdAt) values (1001, 'q', 0);
insert into piecework.type (id, queue, name) values (1001, 1001, 'q');
insert into piecework.worker (name, host, pid, bootId, queues, concurrency, busy, prefetched, aliveAt)
  values ('w', '', 0, '', '[]', 0, 0, 0, 0);
insert into piecework.task (queue, type, state, place, dueAt, wakeAt, enqueuedAt, payload)
  select 1001, 1001, state, n, n, case when state = 1 then n + 4000000000000 end, 0, '"a payload of some length"'
  from (select 3 as state, generate_series(1, ${ready}) as n union all select 1, generate_series(1, ${scheduled})
    union all select 5, generate_series(1, ${dead})) rows;
update piecework.store set settings = settings + 1;`

const low = Number.MIN_SAFE_INTEGER

interface Plan {
  'Node Type': string
  'Shared Hit Blocks'?: number
  Plans?: Plan[]
}

/** The nodes of a claim's plan and the buffers it touched, on a session like the engine's own. */
export async function explained(url: string, mark = low, max = 10): Promise<{ nodes: string[]; buffers: number }> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query('set enable_seqscan = off; set enable_bitmapscan = off; set jit = off')
    const { text } = statementsIn('piecework').claim
    const run = `execute claim (4e12, 1, 1, 'w', '{1001}', '{${mark}}', ${max})`
    await client.query(`prepare claim (bigint, bigint, bigint, text, int[], bigint[], bigint) as ${text}`)
    // A prepared statement has its general plan from the sixth time on: what the engine runs all day.
    await client.query("set plan_cache_mode = 'force_generic_plan'")
    await client.query('begin')
    const { rows } = await client.query(`explain (analyze, buffers, format json) ${run}`)
    await client.query('rollback')
    const nodes: string[] = []
    const walk = (plan: Plan) => {
      nodes.push(plan['Node Type'])
      plan.Plans?.forEach(walk)
    }
    const plan = (rows[0] as { 'QUERY PLAN': { Plan: Plan }[] })['QUERY PLAN'][0]?.Plan as Plan
    walk(plan)
    return { nodes, buffers: plan['Shared Hit Blocks'] ?? 0 }
  } finally {
    await client.end()
  }
}

/** Nodes that read more than they hand on. */
export const costly = (nodes: readonly string[]): string[] => nodes.filter((node) => /Sort|Seq Scan|Bitmap/.test(node))
