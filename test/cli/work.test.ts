// `work`: a handler file or a COMMAND, one process or several, until drained, under signals and probes.
import { expect, it } from 'vitest'
import { type Room, room, until } from './cli.js'

const handler = `
import { appendFileSync } from 'node:fs'
export default async (payload, delivery) => {
  appendFileSync('log', JSON.stringify([payload, delivery.type, process.pid]) + '\\n')
  if (payload === 'bad') throw Object.assign(new Error('no good'), { name: 'Bury' })
  if (payload === 'long') await new Promise((resolve) => {
    const timer = setTimeout(resolve, 60_000)
    delivery.signal.addEventListener('abort', () => { clearTimeout(timer); resolve() })
  })
}
`
const entries = (here: Room) => here.lines('log').map((line) => JSON.parse(line) as [unknown, string, number])
const queueOf = async ({ run }: Room, name: string) => (await run(['status', name, '--json'])).json()[0]?.queues[0]

/** True once no process, or with a negative number no group, of this number is left. */
function gone(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return false
  } catch {
    return true
  }
}

it('ends when its queues are drained: 0, or 1 with dead letters', async () => {
  const here = room()
  here.write('h.mjs', handler)
  const payloads = Array.from({ length: 20 }, (_, index) => String(index))
  await here.run(['enqueue', 'a', ...payloads])
  await here.run(['enqueue', 'b', '"x"'])
  const ended = await here.run(['work', 'a', 'b', '--handler', 'h.mjs', '--until-drained', '--concurrency', '3'])
  expect([ended.code, ended.stderr]).toEqual([0, expect.stringContaining('working on a, b in')])
  expect(entries(here)).toHaveLength(21)
  expect(ended.stderr).toContain('piecework: 21 done, 0 retries, 0 dead\n')
  await here.run(['enqueue', 'a', '"bad"'])
  const failed = await here.run(['work', 'a', 'new', '--handler', './h.mjs', '--until-drained'])
  expect([failed.code, failed.stderr]).toEqual([1, expect.stringContaining('there is no queue new yet')])
  expect(failed.stderr).toContain('0 done, 0 retries, 1 dead\nnext:\n  piecework dead list a\n')
}, 60_000)

it('takes an object of handlers by type, and only the types it is told', async () => {
  const here = room()
  here.write(
    'h.mjs',
    `${handler}\nconst one = (await import('./one.mjs')).default\n`.replace('export default', 'const all ='),
  )
  here.write(
    'one.mjs',
    "import { appendFileSync } from 'node:fs'\nexport default { t: () => appendFileSync('log', '[1,\"t\",0]\\n') }",
  )
  await here.run(['enqueue', 'q', '1', '--type', 't'])
  await here.run(['enqueue', 'q', '2', '--type', 'u'])
  const { child, finished } = here.start(['work', 'q', '--handler', 'one.mjs'])
  await until('t is done', () => entries(here).length === 1)
  child.kill('SIGTERM')
  expect((await finished).code).toBe(0)
  expect(await queueOf(here, 'q')).toMatchObject({ ready: 1 })
  here.write('all.mjs', handler)
  const types = here.start(['work', 'q', '--types', 'u,v', '--handler', 'all.mjs', '--until-drained'])
  expect((await types.finished).code).toBe(0)
}, 60_000)

it('gives COMMAND the payload by fields or on stdin, as it was written', async () => {
  const here = room()
  await here.run(['enqueue', 'q', '{"id":12345678901234567890}', '--header', 'piecework=x'])
  const placed = await here.run(['work', 'q', '--until-drained', '--', 'echo', '<{id}>'])
  expect([placed.code, placed.stdout]).toEqual([0, '<12345678901234567890>\n'])
  await here.run(['enqueue', 'q', '[1, 2.0]'])
  const stdin = await here.run(['work', 'q', '--until-drained', '--', 'sh', '-c', 'cat; echo $PIECEWORK_QUEUE'])
  expect(stdin.stdout).toBe('[1, 2.0]\nq\n')
}, 60_000)

it('stops cleanly at SIGTERM: running ones get the grace time, the rest goes back uncounted', async () => {
  const here = room()
  here.write('h.mjs', handler)
  await here.run(['enqueue', 'q', '"long"', '"long"', '"long"'])
  const { child, finished } = here.start(['work', 'q', '--handler', 'h.mjs', '--concurrency', '2', '--grace', '300ms'])
  await until('two run', () => entries(here).length === 2)
  child.kill('SIGTERM')
  expect((await finished).code).toBe(0)
  expect(await queueOf(here, 'q')).toMatchObject({ leased: 0, dead: 0 })
  const open = (await here.run(['task', 'list', 'q', '--json'])).json()
  expect(open.every((task) => task.deaths === 0 && task.releases === 0)).toBe(true)
}, 60_000)

it('ends COMMANDs that run past the grace time, with their whole group', async () => {
  const here = room()
  await here.run(['enqueue', 'q', '1'])
  const script = `echo $$ >> ${here.path('pids')}; sleep 60 & wait`
  const { child, finished } = here.start(['work', 'q', '--grace', '200ms', '--', 'sh', '-c', script])
  await until('it runs', () => here.lines('pids').length === 1)
  child.kill('SIGTERM')
  expect((await finished).code).toBe(0)
  await until('the group has ended', () => gone(-Number(here.lines('pids')[0])))
  expect(await queueOf(here, 'q')).toMatchObject({ ready: 1, leased: 0 })
}, 60_000)

it('runs several processes as one; a killed one is replaced and its tasks come back', async () => {
  const here = room()
  here.write('h.mjs', handler)
  await here.run(['enqueue', 'q', '"long"', '"long"', '"long"', '"long"'])
  const { child, finished } = here.start([
    'work',
    'q',
    '--handler',
    'h.mjs',
    '--concurrency',
    '2',
    '--workers',
    '2',
    '--grace',
    '100ms',
  ])
  const pids = () => new Set(entries(here).map(([, , pid]) => pid))
  await until('two processes run two each', () => pids().size === 2 && entries(here).length >= 4)
  const [victim] = pids()
  process.kill(victim as number, 'SIGKILL')
  await until('another process took over', () => pids().size >= 3 || entries(here).length >= 6)
  child.kill('SIGTERM')
  const ended = await finished
  expect([ended.code, ended.stderr]).toEqual([0, expect.stringContaining('was ended by SIGKILL')])
  for (const pid of pids()) expect(() => process.kill(pid, 0)).toThrow('ESRCH')
}, 60_000)

const fatal = `
import { appendFileSync } from 'node:fs'
export default async (payload) => {
  if (payload === 'exit') process.exit(0)
  if (payload === 'throw') setTimeout(() => { throw new Error('in a timer') })
  if (payload === 'throw') await new Promise(() => {})
  appendFileSync('log', JSON.stringify([payload]) + '\\n')
}
`

it.each(['exit', 'throw'])(
  'is not over because a handler ended its process: %s',
  async (how) => {
    const here = room()
    here.write('h.mjs', fatal)
    await here.run(['enqueue', 'q', '--text', how])
    const words = ['work', 'q', '--handler', 'h.mjs', '--until-drained', '--concurrency', '1']
    const alone = await here.run(words)
    expect([alone.code, alone.stderr]).toEqual([2, expect.stringContaining('PW_PROCESS_ENDED')])
    await here.run(['enqueue', 'q', '--text', 'good', 'fine', 'well'])
    const staff = await here.run([...words, '--workers', '2'])
    // The poison spends its own budget; all others are done.
    expect([staff.code, here.lines('log').sort()]).toEqual([1, ['["fine"]', '["good"]', '["well"]']])
    expect(await queueOf(here, 'q')).toMatchObject({ ready: 0, leased: 0, scheduled: 0, dead: 1 })
  },
  120_000,
)

it('takes its processes along when it is killed itself', async () => {
  const here = room()
  here.write('h.mjs', handler)
  await here.run(['enqueue', 'q', '"long"', '"long"'])
  const { child, finished } = here.start([
    'work',
    'q',
    '--handler',
    'h.mjs',
    '--concurrency',
    '1',
    '--workers',
    '2',
    '--grace',
    '100ms',
  ])
  const pids = () => [...new Set(entries(here).map(([, , pid]) => pid))]
  await until('both run', () => pids().length === 2)
  child.kill('SIGKILL')
  await finished
  await until('both have ended', () => pids().every(gone))
}, 60_000)

it('answers probes', async () => {
  const here = room()
  here.write('h.mjs', handler)
  for (const more of [[], ['--workers', '2']]) {
    const started = here.start(['work', 'q', '--handler', 'h.mjs', '--health', '0', ...more])
    await until('it says where', () => started.stderr.includes('health on'))
    const url = /health on (\S+)/.exec(started.stderr)?.[1]
    const ready = async () => (await fetch(`${url}/readyz`)).status
    await until('it is ready', async () => (await ready()) === 200)
    const live = await fetch(`${url}/healthz`)
    expect([live.status, await live.json()]).toEqual([200, { live: true, ready: true }])
    expect((await fetch(`${url}/other`)).status).toBe(404)
    started.child.kill('SIGTERM')
    expect((await started.finished).code).toBe(0)
  }
}, 60_000)

it('refuses what cannot work', async () => {
  const here = room()
  here.write('broken.mjs', 'export default 5')
  here.write('syntax.mjs', '\nexport default not this')
  here.write('missing.mjs', "import 'left-pad-of-nobody'")
  here.write('empty.mjs', 'export default {}')
  here.write('bare.mjs', 'export const a = 1')
  for (const [words, code, text] of [
    [['q'], 'PW_USAGE', 'either --handler FILE or -- COMMAND'],
    [['q', '--handler', 'h.mjs', '--', 'true'], 'PW_USAGE', 'either'],
    [['q', '--handler', 'none.mjs'], 'PW_HANDLER_UNREADABLE', 'none.mjs does not exist'],
    [['q', '--handler', '.'], 'PW_HANDLER_UNREADABLE', 'is no file'],
    [['q', '--handler', 'syntax.mjs'], 'PW_HANDLER_UNREADABLE', 'Unexpected'],
    [['q', '--handler', 'missing.mjs'], 'PW_HANDLER_UNREADABLE', 'left-pad-of-nobody'],
    [['q', '--handler', 'empty.mjs'], 'PW_HANDLER_INVALID', 'empty.mjs: The object of handlers is empty'],
    [['q', '--handler', 'bare.mjs'], 'PW_HANDLER_INVALID', 'bare.mjs: The handler is undefined'],
    [['q', '--handler', 'broken.mjs'], 'PW_HANDLER_INVALID', '5'],
    [['q', '--health', 'x', '--handler', 'broken.mjs'], 'PW_HANDLER_INVALID', '5'],
    [['', '--', 'true'], 'PW_NAME_INVALID', 'empty'],
  ] as const) {
    const { code: exit, stderr } = await here.run(['work', '--json', ...words])
    expect([exit, JSON.parse(stderr).error]).toEqual([
      2,
      expect.objectContaining({ code, message: expect.stringContaining(text) }),
    ])
  }
  const missing = await here.run(['work', '--json', 'q', '--', 'no-such-command'])
  expect([missing.code, JSON.parse(missing.stderr).error.code]).toEqual([127, 'PW_COMMAND_MISSING'])
}, 60_000)
