// With --keep-order outputs stand in the order of the input, whatever happens to the items and to the run.
import { describe, expect, it } from 'vitest'
import { numbers, room, until } from './cli.js'

const script = (body: string) => ['--', 'sh', '-c', body]

describe('outputs with --keep-order', () => {
  it('outlive a run that was killed while they waited for an earlier one', async () => {
    const { start, run, write, lines, path } = room()
    const waits = `while test ! -e ${path('free')}; do sleep 0.05; done`
    const body = `echo $0 >> ${path('begun')}; test $0 = 3 && { ${waits}; }; echo $0`
    const words = ['run', '-k', '-j', '2', '--batch', 'b', ...script(body)]
    const first = start(words, { input: numbers(90) })
    await until('what may run ahead of the third did', () => lines('begun').length >= 2 + 64)
    first.child.kill('SIGKILL')
    const killed = await first.finished
    write('free', '')
    expect(killed.stdout).toBe(numbers(2))
    const { code, stdout } = await run(words, { input: numbers(90) })
    expect([code, killed.stdout + stdout]).toEqual([0, numbers(90)])
  }, 60_000)

  it('wait for one that fails, comes again behind all others, and takes as long as it takes', async () => {
    const { run, path } = room()
    const others = `while test $(wc -l < ${path('begun')}) -lt 64; do sleep 0.05; done; exit 1`
    const body = `echo >> ${path('begun')}; test $0$PIECEWORK_DELIVERY = 11 && { ${others}; }; echo $0`
    const { code, stdout, json } = await run(['run', '-k', '-j', '2', '--json', ...script(body)], {
      input: numbers(200),
    })
    const shapes = json()
    const acked = shapes.filter((shape) => shape.verdict === 'ack').map((shape) => shape.stdout)
    expect([code, acked.join('')]).toEqual([0, numbers(200)])
    expect(shapes.at(-1)).toMatchObject({ done: 200, retries: 1 })
    expect(stdout).toContain('"verdict":"retry"')
  }, 60_000)

  it('survive a COMMAND that kills the run twice, with all it held', async () => {
    const { start, run, path } = room()
    const body = `mkdir ${path('one')} 2>/dev/null || mkdir ${path('two')} 2>/dev/null && kill -9 $PPID; echo $0`
    const words = ['run', '-k', '-j', '1', '--batch', 'b', '--deliveries', '9', ...script(body)]
    let stdout = ''
    for (const signal of ['SIGKILL', 'SIGKILL', null]) {
      const ended = await start(words, { input: numbers(12) }).finished
      expect(ended.signal).toBe(signal)
      stdout += ended.stdout
    }
    expect(stdout).toBe(numbers(12))
    expect((await run(['audit'])).code).toBe(0)
  }, 60_000)

  it('stand in their order after Ctrl-C, too; what had no turn runs again', async () => {
    const { start, run, write, lines, path } = room()
    const waits = `while test ! -e ${path('free')}; do sleep 0.05; done`
    const body = `echo $0 >> ${path('begun')}; test $0 = 1 && { ${waits}; }; echo $0`
    const words = ['run', '-k', '-j', '2', '--batch', 'b', ...script(body)]
    const first = start(words, { input: numbers(20) })
    await until('others wait for the first', () => lines('begun').length >= 10)
    first.child.kill('SIGINT')
    await until('it says so', () => first.stderr.includes('stopping'))
    first.child.kill('SIGINT')
    const stopped = await first.finished
    expect([stopped.code, stopped.stdout]).toEqual([130, ''])
    expect(stopped.stderr).toMatch(/\d+ outputs had no turn before the end: those items were given back/)
    write('free', '')
    const { code, stdout, stderr } = await run(words, { input: numbers(20) })
    expect([code, stdout]).toEqual([0, numbers(20)])
    expect(stderr).not.toMatch(/retr|dead/)
  }, 60_000)

  it('come together from two runs of one batch, each in order', async () => {
    const { start } = room()
    const words = ['run', '-k', '-j', '2', '--batch', 'b', ...script('sleep 0.0$(($0 % 5)); echo $0')]
    const runs = [start(words, { input: numbers(60) }), start(words, { input: numbers(60) })]
    const outputs = await Promise.all(runs.map(async ({ finished }) => (await finished).stdout.split('\n').map(Number)))
    const parts = outputs.map((output) => output.slice(0, -1))
    for (const part of parts) expect(part).toEqual([...part].sort((a, b) => a - b))
    expect(parts.flat().sort((a, b) => a - b)).toEqual(Array.from({ length: 60 }, (_, index) => index + 1))
  }, 60_000)

  it('are promised for a batch that was begun with it, and refused for what is left of another', async () => {
    const { run } = room()
    const words = ['--batch', 'b', ...script('test $0 != 2 && echo $0')]
    expect((await run(['run', '--deliveries', '1', ...words], { input: numbers(3) })).code).toBe(1)
    const refused = await run(['run', '-k', ...words], { input: numbers(3) })
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('PW_BATCH_UNORDERED')])
    expect((await run(['dead', 'discard', 'b', '--all', '--yes'])).code).toBe(0)
    const ordered = await run(['run', '-k', ...words], { input: '1\n2\n3\n4\n5\n' })
    expect([ordered.code, ordered.stdout]).toEqual([0, '4\n5\n'])
    const without = await run(['run', ...words], { input: '6\n' })
    expect([without.code, without.stdout]).toEqual([0, '6\n'])
  }, 60_000)
})

it('a cancelled item that ran is told as cancelled', async () => {
  const { start, run, path, lines } = room()
  const body = `echo $0 >> ${path('begun')}; exec sleep 60`
  const { finished } = start(['run', '--json', '--batch', 'b', ...script(body)], { input: 'x\n' })
  await until('it runs', () => lines('begun').length === 1)
  expect((await run(['task', 'cancel', 'b', '--all', '--yes', '--json'])).json()).toEqual([{ cancelled: 0, asked: 1 }])
  const { code, json } = await finished
  const [delivery, summary] = json()
  expect([code, delivery?.verdict, delivery?.code]).toEqual([0, 'cancelled', 'PW_CANCELLED'])
  expect(summary).toMatchObject({ total: 1, done: 0, dead: 0, cancelled: 1, retries: 0 })
}, 60_000)

describe('--timeout', () => {
  it('is for COMMAND alone: waiting for a turn is no part of it', async () => {
    const { run } = room()
    const body = 'test $0 = 1 && sleep 1.2; echo $0; test $0$PIECEWORK_DELIVERY != 11'
    const { code, json } = await run(['run', '-k', '-j', '2', '-t', '2s', '--json', ...script(body)], {
      input: numbers(3),
    })
    expect([code, json().at(-1)]).toEqual([0, expect.objectContaining({ done: 3, retries: 1 })])
  }, 60_000)

  it('nor is waiting for --per-second', async () => {
    const { run } = room()
    const words = ['run', '-j', '4', '--per-second', '1', '-t', '1500ms', '--json', '--', 'true']
    const { code, json } = await run(words, { input: numbers(4) })
    expect([code, json().at(-1)]).toEqual([0, expect.objectContaining({ done: 4, retries: 0 })])
  }, 60_000)
})
