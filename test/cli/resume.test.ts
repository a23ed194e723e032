// A run goes on where the last one stopped: each item is done once, whatever became of the process or the input.
import { writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { numbers, room, until } from './cli.js'

const shuffled = (text: string) => text.split('\n').filter(Boolean).reverse().join('\n')

describe('the same command again', () => {
  it('does nothing when nothing is new: exit 0, or 1 while there are dead letters', async () => {
    const { run, lines, path } = room()
    const words = (script: string) => [
      'run',
      '--deliveries',
      '1',
      '--',
      'sh',
      '-c',
      `echo $0 >> ${path('log')}; ${script}`,
    ]
    expect((await run(words('true'), { input: numbers(5) })).code).toBe(0)
    const again = await run(words('true'), { input: numbers(5) })
    expect([again.code, again.stderr]).toEqual([0, expect.stringContaining('nothing new and nothing open')])
    expect(lines('log')).toHaveLength(5)
    expect((await run(words('test $0 != 3'), { input: numbers(5) })).code).toBe(1)
    const dead = await run(words('test $0 != 3'), { input: numbers(5) })
    expect([dead.code, dead.stderr]).toEqual([1, expect.stringContaining('nothing new and nothing open')])
    expect(lines('log')).toHaveLength(10)
  }, 60_000)

  it('is not done while items of it are in another queue: exit 1, and where they are', async () => {
    const { run, start, lines, path } = room()
    const script = `echo $0 >> ${path('log')}; while [ ! -e ${path('go')} ]; do sleep 0.02; done`
    const words = ['run', '-j', '1', '--batch', 'b', '--', 'sh', '-c', script]
    const started = start(words, { input: numbers(5) })
    await until('one runs', () => lines('log').length === 1)
    expect((await run(['queue', 'move', 'b', '--type', 'b', '--to', 'other', '--state', 'ready'])).code).toBe(0)
    await run(['enqueue', 'nobody', '1', '--json'])
    writeFileSync(path('go'), '')
    const ended = await started.finished
    const seen = [ended.code, ended.stderr]
    expect(seen).toEqual([1, expect.stringContaining('4 items of this batch are in other queues')])
    expect(ended.stderr).toContain('piecework task list --batch b')
    expect((await run(words, { input: numbers(5) })).code).toBe(1)
    const rest = await run(['task', 'list', '--batch', 'b', '--json'])
    expect(rest.json().map(({ queue }) => queue)).toEqual(['other', 'other', 'other', 'other'])
  }, 60_000)

  it('takes what is new from an input that was shuffled, grown, shrunk or cut apart', async () => {
    const { run, lines, path, write } = room()
    const words = ['run', '-a', 'in.txt', '-q', '--', 'sh', '-c', `echo $0 {#} >> ${path('log')}`, '{}']
    const items = () =>
      lines('log')
        .map((line) => line.split(' ')[0])
        .sort()
    const take = async (text: string) => {
      write('in.txt', text)
      expect((await run(words)).code).toBe(0)
    }
    await take('a\nb\nc\n')
    await take(shuffled('a\nb\nc\n'))
    expect(items()).toEqual(['a', 'b', 'c'])
    await take('a\nb\nc\nd\n')
    await take('c\n')
    await take('x\na\ny\nb\r\nc\nd')
    expect(items()).toEqual(['a', 'b', 'c', 'd', 'x', 'y'])
    await take('a\na\na\nb\n')
    await take('a\nb\na\na\n')
    expect(items()).toEqual(['a', 'a', 'a', 'b', 'c', 'd', 'x', 'y'])
    const seen = lines('log').map((line) => line.split(' ')[1])
    expect(new Set(seen).size).toBe(seen.length)
    expect(seen.slice(0, 4).sort()).toEqual(['1', '2', '3', '4'])
  }, 60_000)

  it('knows an item of any format by its bytes, not by its place', async () => {
    const { run, lines, path, write } = room()
    const words = ['run', '-a', 'in.csv', '-q', '--', 'sh', '-c', `echo {a}{b} >> ${path('log')}`]
    write('in.csv', 'a,b\n1,2\n3,4\n')
    await run(words)
    write('in.csv', '\ufeffa,b\r\n"3",4\r\n5,6\r\n"1","2"\r\n')
    await run(words)
    expect(lines('log').sort()).toEqual(['12', '34', '56'])
  })

  it('leaves dead items dead until --retry-dead or a redrive', async () => {
    const { run, lines, path } = room()
    const script = `echo $0 >> ${path('log')}; test $0 != 2 -o -e ${path('mended')}`
    const words = (...more: string[]) => [
      'run',
      '-q',
      '--batch',
      'b',
      '--deliveries',
      '1',
      ...more,
      '--',
      'sh',
      '-c',
      script,
    ]
    expect((await run(words(), { input: numbers(3) })).code).toBe(1)
    expect((await run(words('--retry-dead'), { input: numbers(3) })).code).toBe(1)
    expect((await run(words(), { input: numbers(3) })).code).toBe(1)
    expect(lines('log').filter((line) => line === '2')).toHaveLength(2)
    await run(['enqueue', 'other', '1'])
    expect((await run(['dead', 'redrive', 'b', '--all', '--yes'])).stdout).toBe('1 redriven\n')
    await run(['run', '-q', '--batch', 'c', '--', 'touch', 'mended'], { input: 'x\n' })
    expect((await run(words(), { input: numbers(3) })).code).toBe(0)
    expect(lines('log').filter((line) => line === '2')).toHaveLength(3)
  }, 60_000)

  it('is told by a command that does not wait for an input that was read already', async () => {
    const { run, start } = room()
    const words = ['--batch', 'b', '--deliveries', '1', '--', 'sh', '-c', 'test $0 = 1 || exit 3']
    const { stderr } = await run(['run', ...words], { input: '1\n2\n' })
    const line = stderr.trim().split('\n').at(-1)?.trim()
    expect(line).toBe(
      "piecework run --retry-dead --batch b --deliveries 1 -- sh -c 'test $0 = 1 || exit 3' < /dev/null",
    )
    const halted = start(['run', '--halt', 'now,fail=1', '--batch', 'c', '--', 'false'])
    halted.child.stdin?.write('1\n')
    const { stderr: left } = await halted.finished
    expect(left.trim()).toMatch(/-- false {2}# with the same input again$/)
  }, 60_000)

  it('starts anew with --new', async () => {
    const { run, lines, path } = room()
    const words = (...more: string[]) => [
      'run',
      '--json',
      '--batch',
      'b',
      '--deliveries',
      '1',
      ...more,
      '--',
      'sh',
      '-c',
      `echo $0 >> ${path('log')}; test $0 != 2`,
    ]
    await run(words(), { input: numbers(3) })
    const anew = await run(words('--new'), { input: numbers(2) })
    expect(anew.json().at(-1)).toMatchObject({ batch: 'b', total: 2, done: 1, dead: 1 })
    expect(lines('log')).toHaveLength(5)
    expect((await run(['dead', 'list', '--json'])).json()).toHaveLength(1)
  })
})

describe('another COMMAND', () => {
  it('on the same file with work left is refused, unless --batch or --new says what is meant', async () => {
    const { run, write, lines, path } = room()
    write('in.txt', numbers(3))
    const first = ['run', '--json', '--deliveries', '1', '-a', 'in.txt', '--', 'sh', '-c', 'test $0 != 2']
    const name = (await run(first)).json().at(-1)?.batch
    const other = (...more: string[]) => [
      'run',
      '--json',
      '-a',
      './in.txt',
      ...more,
      '--',
      'sh',
      '-c',
      `echo $0 >> ${path('log')}`,
    ]
    const refused = await run(other())
    expect([refused.code, JSON.parse(refused.stderr).error]).toEqual([
      2,
      { code: 'PW_BATCH_OTHER_COMMAND', message: expect.stringContaining(name), cure: expect.any(String) },
    ])
    expect(lines('log')).toEqual([])
    const onward = await run(other('--batch', name, '--retry-dead'))
    expect([onward.code, lines('log')]).toEqual([0, ['2']])
    expect((await run(other())).code).toBe(0)
    expect(lines('log')).toHaveLength(4)
  }, 60_000)

  it('goes on with its own batch, whatever other batches of the file there are', async () => {
    const { run, write, lines, path } = room()
    write('in.txt', numbers(3))
    const failing = ['run', '--json', '--deliveries', '1', '-a', 'in.txt', '--', 'sh', '-c', 'test $0 != 2']
    const other = (await run(failing)).json().at(-1)?.batch
    const script = `echo $0 >> ${path('log')}; test $0 != 3 || test -e ${path('mended')}`
    const own = (...more: string[]) => ['run', '--deliveries', '1', '-a', 'in.txt', ...more, '--', 'sh', '-c', script]
    const begun = await run(own('--new'))
    expect([begun.code, lines('log')]).toEqual([1, ['1', '2', '3']])
    // What it says to type next is taken, and does not begin anew.
    const next = begun.stderr.split('\n').find((line) => line.includes('--retry-dead'))
    expect(next).toMatch(/^ {2}piecework run --retry-dead --deliveries 1 -a in\.txt -- sh -c /)
    const again = await run(own('--retry-dead'))
    expect(again.stderr).toContain(next)
    write('mended', '')
    expect((await run(own('--retry-dead'))).code).toBe(0)
    const finished = await run(own())
    expect([finished.code, finished.stderr]).toEqual([0, expect.stringContaining('nothing new and nothing open')])
    expect(lines('log')).toEqual(['1', '2', '3', '3', '3'])
    expect((await run(['batch', 'show', other, '--json'])).json()[0]).toMatchObject({ done: 2, dead: 1 })
  }, 60_000)

  it('is told how to be rid of the other batch, and that is what these commands do', async () => {
    const { run, write } = room()
    write('in.txt', numbers(30))
    const halted = await run(['run', '--json', '-j', '1', '--halt', 'soon,fail=2', '-a', 'in.txt', '--', 'false'])
    const name = halted.json().at(-1)?.batch
    const words = ['run', '-a', 'in.txt', '--', 'true']
    const removal = [
      ['batch', 'forget', name],
      ['queue', 'purge', name, '--all'],
    ]
    const refused = (await run(words)).stderr
    for (const command of removal) expect(refused).toContain(`piecework ${command.join(' ')}`)
    const forgotten = await run(removal[0] ?? [])
    expect(forgotten.stdout).toBe(`${name} forgotten\n`)
    expect(forgotten.stderr).toMatch(
      /^30 open and 0 dead tasks of it stay in their queue\n {2}next:\n {2}piecework queue/,
    )
    expect((await run(words)).code).toBe(0)
    expect((await run([...(removal[1] ?? []), '--yes'])).stdout).toBe('30 purged\n')
  }, 60_000)

  it('with --new runs beside what is left; stdin is never compared', async () => {
    const { run, write } = room()
    const file = write('in.txt', numbers(3))
    expect((await run(['run', '-a', file, '--deliveries', '1', '--', 'sh', '-c', 'test $0 != 2'])).code).toBe(1)
    expect((await run(['run', '-a', file, '--new', '--', 'true'])).code).toBe(0)
    expect((await run(['run', '--', 'true'], { input: numbers(3) })).code).toBe(0)
    expect((await run(['run', '--', 'echo'], { input: numbers(3) })).code).toBe(0)
    expect((await run(['dead', 'list', '--json'])).json()).toHaveLength(1)
  }, 60_000)
})

describe('a run that was killed', () => {
  it('goes on: each item done, none twice but those that were running', async () => {
    const { start, run, lines, path } = room()
    const words = ['run', '-q', '-j', '2', '--batch', 'b', '--', 'sh', '-c', `echo $0 >> ${path('log')}`]
    const { child, finished } = start(words, { input: numbers(60) })
    await until('10 items are done', () => lines('log').length >= 10)
    child.kill('SIGKILL')
    await finished
    const before = lines('log').length
    expect(before).toBeLessThan(60)
    const { code, json } = await run(['run', '--json', ...words.slice(2)], { input: numbers(60) })
    expect(code).toBe(0)
    expect(json().at(-1)).toMatchObject({ total: 60, done: 60, dead: 0 })
    expect(new Set(lines('log')).size).toBe(60)
    expect(lines('log').length).toBeLessThanOrEqual(60 + 2 + 2)
  }, 60_000)

  it('is shared by two that run at a time', async () => {
    const { start, lines, path } = room()
    const script = `echo $0 >> ${path('log')}; sleep 0.05`
    const words = ['run', '--json', '-j', '2', '--batch', 'b', '--', 'sh', '-c', script]
    const runs = [start(words, { input: numbers(40) }), start(words, { input: numbers(40) })]
    const shares: number[] = []
    for (const { finished } of runs) {
      const { code, json } = await finished
      expect(code).toBe(0)
      expect(json().at(-1)).toMatchObject({ total: 40, done: 40 })
      shares.push(json().length - 1)
    }
    expect(
      lines('log')
        .map(Number)
        .sort((a, b) => a - b),
    ).toEqual(Array.from({ length: 40 }, (_, i) => i + 1))
    expect(Math.min(...shares)).toBeGreaterThan(0)
  }, 60_000)
})
