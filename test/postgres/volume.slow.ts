// Two million tasks and two hundred idle workers: what a claim reads and what waiting asks stay as small as ever.
import { expect, it, onTestFinished } from 'vitest'
import { engineFor } from '../../dist/engines/open.js'
import { monotonicMs, start, until } from '../laws/processes.js'
import { costly, explained, fill } from './plan.js'
import { serverOfFile } from './server.js'

let statements = 0
const server = serverOfFile(['fsync=off'], (log) => {
  statements += log.match(/LOG: {2}(statement|execute)/g)?.length ?? 0
})

async function made(): Promise<string> {
  const url = await (await server()).database()
  const engine = engineFor(url)
  await engine.open()
  await engine.close()
  return url
}

it('claims from 1 M ready, 1 M scheduled and 100 000 dead as from 1000', { timeout: 300_000 }, async () => {
  const { sql } = await server()
  const [small, large] = [await made(), await made()]
  await sql(small, fill(1000, 10, 10))
  await sql(large, fill(1_000_000, 1_000_000, 100_000))
  // Before the planner has ever looked at the table, and after.
  for (const analyze of ['', 'vacuum analyze piecework.task']) {
    if (analyze !== '') for (const url of [small, large]) await sql(url, analyze)
    const [few, many] = [await explained(small), await explained(large)]
    console.log(`buffers: ${few.buffers} of 1000 tasks, ${many.buffers} of 2 100 000 ${analyze}`)
    for (const { nodes } of [few, many]) expect(costly(nodes)).toEqual([])
    expect(many.buffers).toBeLessThanOrEqual(few.buffers * 2)
  }
})

it('is asked less than 50 statements a second by 200 idle workers of 4 processes', { timeout: 120_000 }, async () => {
  const { sql } = await server()
  const url = await made()
  const processes = [1, 2, 3, 4].map(() => start('worker', { url, queue: 'idle', policy: {}, crowd: 50 }))
  for (const process of processes) await process.heard('ready', 50)
  const admin = url.replace(/[^/]+$/, 'postgres')
  const say = async (how: string) => {
    await sql(admin, `alter system set log_statement = '${how}'`)
    await sql(admin, 'select pg_reload_conf()')
  }
  await say('all')
  onTestFinished(() => say('none'))
  let from = { n: statements, at: monotonicMs() }
  // They start together and find their pace; at 24 a second, which is theirs, 100 take 4 s.
  const pace = await until('100 statements at an idle pace', () => {
    const n = statements
    if (n - from.n < 100) return false
    const now = { n, at: monotonicMs() }
    const perSecond = (now.n - from.n) / ((now.at - from.at) / 1000)
    from = now
    return perSecond < 50 && perSecond
  })
  console.log(`${pace.toFixed(1)} statements a second`)
})
