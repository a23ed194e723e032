// `run` as its users see it: what COMMAND gets, what comes out, how each end counts, and the exit code.
import { chmodSync, mkdirSync, readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { numbers, room } from './cli.js'

const sorted = (text: string) => text.split('\n').filter(Boolean).sort()

describe('what COMMAND gets', () => {
  it('is the item as last argument, or where {} stands, without a shell', async () => {
    const { run } = room()
    const plain = await run(['run', '--', 'echo', '$HOME;'], { input: 'a b\n*\n' })
    expect([plain.code, sorted(plain.stdout)]).toEqual([0, ['$HOME; *', '$HOME; a b']])
    const placed = await run(['run', '-k', 'echo', '{/.}:{#}', '-n'], { input: 'x/y.png\nz\n' })
    expect([placed.code, placed.stdout]).toEqual([0, 'y:1 -n\nz:2 -n\n'])
  }, 60_000)

  it('is JSON on stdin for structured items, fields in words, and /dev/null otherwise', async () => {
    const { run, write } = room()
    write('in.ndjson', '{"id":12345678901234567890,"to":{"a":"x y"}}\n')
    const stdin = await run(['run', '-a', 'in.ndjson', '--', 'cat'])
    expect(stdin.stdout).toBe('{"id":12345678901234567890,"to":{"a":"x y"}}\n')
    const fields = await run(['run', '-a', 'in.ndjson', '--', 'sh', '-c', 'echo "$0"; cat', '{id}={to.a}'])
    expect(fields.stdout).toBe('12345678901234567890=x y\n')
    const forced = await run(['run', '--stdin', '--', 'cat', '-n'], { input: 'line' })
    expect(forced.stdout.trim()).toBe('1\tline')
  }, 60_000)

  it('is an environment that names the task', async () => {
    const { run } = room()
    const script = ['QUEUE', 'TYPE', 'BATCH', 'DELIVERY', 'DELIVERIES_MAX', 'ID', 'FENCE', 'KEY']
      .map((name) => `echo $PIECEWORK_${name};`)
      .join('')
    const { stdout } = await run(['run', '--batch', 'b', '--', 'sh', '-c', script], {
      input: 'x\n',
      env: { PIECEWORK_KEY: 'outer' },
    })
    expect(stdout).toMatch(/^b\nb\nb\n1\n3\n\d{16}\n\d{16}\n\n$/)
  })

  it('starts in a process group of its own', async () => {
    const { run } = room()
    const { stdout } = await run(['run', '--', 'sh', '-c', 'echo $$ $(ps -o pgid= -p $$)'], { input: 'x\n' })
    const [pid, group] = stdout.trim().split(/\s+/)
    expect(group).toBe(pid)
  })
})

describe('how it ends', () => {
  it('exit 0 acks, 65 buries, others retry, and the last of stderr is kept', async () => {
    const { run, lines, path } = room()
    const cases = 'bad) echo "no good" >&2; exit 65;; worse) echo "$0: broken" >&2; exit 3;; killed) kill -9 $$;;'
    const script = `echo $0 >> ${path('log')}; case $0 in ${cases} esac`
    const { code, json } = await run(['run', '--json', '--batch', 'b', '--', 'sh', '-c', script], {
      input: 'ok\nbad\nworse\nkilled\n',
    })
    expect(code).toBe(1)
    expect(json().at(-1)).toMatchObject({
      batch: 'b',
      total: 4,
      done: 1,
      dead: 3,
      cancelled: 0,
      ms: expect.any(Number),
    })
    expect(lines('log').sort()).toEqual(['bad', 'killed', 'killed', 'killed', 'ok', 'worse', 'worse', 'worse'])
    const dead = await run(['dead', 'list', 'b', '--json'])
    expect(dead.json().map(({ payload, deliveries, reason, error }) => [payload, deliveries, reason, error])).toEqual([
      ['bad', 1, 'buried', 'exit 65: no good'],
      ['worse', 3, 'spent', 'exit 3: worse: broken'],
      ['killed', 3, 'spent', 'killed by SIGKILL'],
    ])
  }, 60_000)

  it('exit 75 gives the task back with a delay, and costs no delivery', async () => {
    const { run, path } = room()
    const script = `test -e ${path('ready')} || { touch ${path('ready')}; exit 75; }; echo $PIECEWORK_DELIVERY`
    const { code, stdout, stderr } = await run(['run', '--deliveries', '1', '--', 'sh', '-c', script], { input: 'x\n' })
    expect([code, stdout]).toEqual([0, '2\n'])
    expect(stderr).toContain('1 of 1 done')
  })

  it('keeps the last 4 KiB of stderr, whatever bytes they are', async () => {
    const { run } = room()
    const script = `head -c 9000 /dev/zero | tr '\\0' x >&2; printf 'é\\377 the end' >&2; exit 1`
    await run(['run', '-q', '--deliveries', '1', '--batch', 'b', '--', 'sh', '-c', script], { input: 'x\n' })
    const [letter] = (await run(['dead', 'list', '--json'])).json()
    expect(letter?.error).toMatch(/^exit 1: x+é\ufffd the end$/)
    expect(Buffer.byteLength(letter?.error)).toBeLessThanOrEqual(4096)
    expect(Buffer.byteLength(letter?.error)).toBeGreaterThan(4000)
  })

  it('at --timeout: TERM, and a retry that says so', async () => {
    const { run } = room()
    const { code, json } = await run(
      ['run', '--json', '-t', '300ms', '--deliveries', '2', '--batch', 'b', '--', 'sh', '-c', 'sleep 60'],
      { input: 'x\n' },
    )
    expect([code, json().at(-1)?.dead]).toEqual([1, 1])
    const [letter] = (await run(['dead', 'list', '--json'])).json()
    expect(letter).toMatchObject({ deliveries: 2, reason: 'spent', error: expect.stringContaining('300') })
  })

  it('buries what cannot be an argument or lacks a field, without a retry', async () => {
    const { run, write } = room()
    write('in.ndjson', `{"a":"x\\u0000y"}\n{"b":1}\n{"a":"${'z'.repeat(200_000)}"}\n{"a":"fine"}\n`)
    const { code, stdout } = await run(['run', '-a', 'in.ndjson', '--batch', 'b', '--', 'echo', '{a}'])
    expect([code, stdout]).toEqual([1, 'fine\n'])
    const shown = await run(['dead', 'list', 'b', '--json'])
    expect(shown.json().map(({ deliveries, reason }) => [deliveries, reason])).toEqual(Array(3).fill([1, 'buried']))
    const first = await run(['dead', 'show', shown.json()[1]?.id, '--json'])
    expect(first.json()[0]).toMatchObject({ code: 'PW_FIELD_MISSING', error: 'The item has no field "a".' })
  })
})

describe('COMMAND itself', () => {
  it('missing: 127, not executable: 126, before anything is made', async () => {
    const { run, folder, write } = room()
    write('plain.txt', 'no program')
    for (const [command, code, name] of [
      ['no-such-command', 127, 'PW_COMMAND_MISSING'],
      ['./nope', 127, 'PW_COMMAND_MISSING'],
      ['./plain.txt', 126, 'PW_COMMAND_REFUSED'],
      ['.', 126, 'PW_COMMAND_REFUSED'],
    ] as const) {
      const ended = await run(['run', '--json', '--', command], { input: 'a\n' })
      expect([ended.code, ended.stdout, JSON.parse(ended.stderr).error.code]).toEqual([code, '', name])
    }
    expect(readdirSync(folder)).toEqual(['plain.txt'])
  }, 60_000)

  it('whose interpreter is missing: 126, before anything is made', async () => {
    const { run, write, folder, path } = room()
    chmodSync(write('script', `#!${path('nowhere')} -x\necho hello\n`), 0o755)
    const { code, stderr } = await run(['run', '--', './script'], { input: 'x\n' })
    expect([code, stderr]).toEqual([126, expect.stringContaining(`its interpreter ${path('nowhere')} does not exist`)])
    expect(readdirSync(folder)).toEqual(['script'])
    chmodSync(write('script', '#!/bin/sh\necho "$1"\n'), 0o755)
    expect((await run(['run', '--', './script'], { input: 'x\n' })).stdout).toBe('x\n')
  })

  it.each(['--joblog', '--results'])(
    '%s in a place that cannot be written: 2, before anything is made',
    async (option) => {
      const { run, write, folder } = room()
      write('file', '')
      for (const place of option === '--joblog' ? ['none/log', '.', '/dev/full'] : ['file', 'file/x']) {
        const { code, stderr } = await run(['run', option, place, '--', 'true'], { input: 'x\n' })
        expect([code, stderr]).toEqual([2, expect.stringContaining(`piecework: ${option}: `)])
        expect(readdirSync(folder)).toEqual(['file'])
      }
    },
  )

  it('missing when the item names it: stops at once, counts nothing, and goes on later', async () => {
    const { run } = room()
    const first = await run(['run', '--batch', 'b', '--', '{}'], { input: 'true\nno-such-command\n' })
    expect(first.code).toBe(127)
    const { json } = await run(['run', '--json', '--batch', 'b', '--', 'echo'], { input: 'true\nno-such-command\n' })
    expect(json().at(-1)).toMatchObject({ total: 2, done: 2, dead: 0, retries: 0 })
  })
})

describe('what comes out', () => {
  it('is each output in one piece, however slowly it was written', async () => {
    const { run } = room()
    const script = 'echo $0-a; sleep 0.2; echo $0-b; sleep 0.2; echo $0-c'
    const { stdout } = await run(['run', '-j', '4', '--', 'sh', '-c', script], { input: numbers(4) })
    const letters = stdout.trim().split('\n')
    expect(letters).toHaveLength(12)
    for (let at = 0; at < 12; at += 3) {
      const item = letters[at]?.[0]
      expect(letters.slice(at, at + 3)).toEqual([`${item}-a`, `${item}-b`, `${item}-c`])
    }
  })

  it('is of done tasks only, and whole when it is large', async () => {
    const { run } = room()
    const script = 'head -c 3000000 /dev/zero | tr "\\0" $0; test $0 != x'
    const { stdout, code } = await run(['run', '--deliveries', '1', '--', 'sh', '-c', script], { input: 'x\ny\n' })
    expect(code).toBe(1)
    expect(stdout).toBe('y'.repeat(3_000_000))
  })

  it('keeps the order of the input with -k, also over a retry, and is tagged with --tag', async () => {
    const { run, path } = room()
    const flaky = `mkdir ${path('once')} 2>/dev/null && exit 1`
    const script = `case $0 in 1) sleep 0.5;; 2) ${flaky};; esac; printf '%s\\n%s' $0 last`
    const { stdout, code } = await run(['run', '-k', '--tag', '-j', '3', '--', 'sh', '-c', script], {
      input: numbers(6),
    })
    expect(code).toBe(0)
    expect(stdout).toBe([1, 2, 3, 4, 5, 6].map((n) => `${n}\t${n}\n${n}\tlast`).join(''))
  })

  it('goes to files with --results and to a log with --joblog', async () => {
    const { run, read, lines } = room()
    const script = 'echo out $0; echo err >&2; test $0 = ok'
    const words = [
      'run',
      '--deliveries',
      '1',
      '--results',
      'res',
      '--joblog',
      'log',
      '--batch',
      'b',
      '--',
      'sh',
      '-c',
      script,
    ]
    await run(words, { input: 'ok\nno\n' })
    expect([read('res/1/stdout'), read('res/1/stderr'), read('res/1/item')]).toEqual(['out ok\n', 'err\n', 'ok'])
    expect(read('res/2/stdout')).toBe('out no\n')
    const [head, ...rows] = lines('log')
    expect(head?.split('\t')).toEqual([
      'Seq',
      'Host',
      'Starttime',
      'JobRuntime',
      'Send',
      'Receive',
      'Exitval',
      'Signal',
      'Command',
    ])
    expect(
      rows
        .map((row) => row.split('\t'))
        .map((row) => [row[0], row[5], row[6], row[7], row[8]])
        .sort(),
    ).toEqual([
      ['1', '7', '0', '0', `sh -c '${script}' ok`],
      ['2', '7', '1', '0', `sh -c '${script}' no`],
    ])
    await run(['run', '--joblog', 'log', '--retry-dead', ...words.slice(7)], { input: 'ok\nno\n' })
    expect(lines('log').filter((line) => line.startsWith('Seq'))).toHaveLength(1)
  })

  it('is an object a delivery with --json, then the summary, and stderr stays clean', async () => {
    const { run, write } = room()
    write('flaky', '#!/bin/sh\nprintf "\\377"; test -e seen || { touch seen; echo why >&2; exit 7; }\n')
    const ended = await run(['run', '--json', '--', 'sh', './flaky'], { input: 'x\n' })
    const [first, second, summary] = ended.json()
    expect(first).toMatchObject({
      item: 'x',
      number: 1,
      delivery: 1,
      verdict: 'retry',
      exit: 7,
      signal: null,
      error: 'exit 7: why',
      stdoutBase64: '/w==',
    })
    expect(second).toMatchObject({ delivery: 2, verdict: 'ack', exit: 0, error: null })
    expect(Object.keys(summary ?? {})).toEqual(['batch', 'total', 'done', 'dead', 'cancelled', 'retries', 'ms'])
    expect(ended.stderr).toBe('')
  })

  it.each([
    [
      'text that is cut inside a character',
      'x=$(printf "%4096s" "" | sed "s/ /é/g"); for i in $(seq 300); do printf "$x"; done',
      'é'.repeat(4096 * 300),
    ],
    ['control characters, six times as long in JSON', 'head -c 3000000 /dev/zero', '\0'.repeat(3_000_000)],
    ['nothing', 'true', ''],
  ])(
    'carries %s in that object, whatever its length',
    async (_, script, text) => {
      const { run } = room()
      const ended = await run(['run', '--json', '--', 'sh', '-c', script], { input: 'x\n' })
      expect([ended.code, ended.json()[0]?.stdout === text]).toEqual([0, true])
    },
    60_000,
  )

  it('that finds no room before it is written ends the run, counts nothing, and the run goes on later', async () => {
    const { run } = room()
    const words = ['run', '--batch', 'b', '-j2', '--', 'sh', '-c', 'head -c 2000000 /dev/zero; echo $0']
    const ended = await run(words, { input: numbers(4), env: { TMPDIR: '/no/such/folder' } })
    expect([ended.code, ended.stderr]).toEqual([4, expect.stringContaining('PW_OUTPUT_CLOSED')])
    expect((await run(['dead', 'list', '--json'])).json()).toEqual([])
    const again = await run([...words.slice(0, 1), '-q', ...words.slice(1)], { input: numbers(4) })
    expect(again.code).toBe(0)
    expect((await run(['batch', 'show', 'b', '--json'])).json()[0]).toMatchObject({ done: 4, returned: 0, retries: 0 })
  }, 60_000)

  it('carries bytes that are no text in base64, whatever their number', async () => {
    const { run } = room()
    const script = 'head -c 2000000 /dev/zero | tr "\\0" "\\377"'
    const ended = await run(['run', '--json', '--', 'sh', '-c', script], { input: 'x\n' })
    const bytes = Buffer.from(ended.json()[0]?.stdoutBase64, 'base64')
    expect([ended.code, bytes.equals(Buffer.alloc(2_000_000, 0xff))]).toEqual([0, true])
  }, 60_000)

  it('is what would run with --dry-run, quoted, with no store made', async () => {
    const { run, folder } = room()
    const { stdout, code } = await run(['run', '-n', '--', 'no-such', '-o', '{.}.png'], {
      input: "it's.jpg\nb c.jpg\n",
    })
    expect([code, stdout]).toEqual([0, "no-such -o 'it'\\''s.png'\nno-such -o 'b c.png'\n"])
    expect(readdirSync(folder)).toEqual([])
  })

  it('stops the run when nobody reads it any more, and loses nothing', async () => {
    const { start, run } = room()
    const words = ['run', '-j', '1', '--batch', 'b', '--', 'sh', '-c', 'head -c 200000 /dev/zero; echo $0', '{}']
    const { child, finished } = start(words, { input: numbers(20) })
    child.stdout?.once('data', () => child.stdout?.destroy())
    const ended = await finished
    expect([ended.code, ended.stderr]).toEqual([4, expect.stringContaining('PW_OUTPUT_CLOSED')])
    const queue = (await run(['status', 'b', '--json'])).json()[0]?.queues[0]
    expect(queue.ready).toBeGreaterThan(0)
    expect(queue.dead).toBe(0)
    expect((await run(words, { input: numbers(20) })).code).toBe(0)
  })
})

describe('stopping by itself', () => {
  it('on defaults after 20 deliveries that failed alike: exit 4, nothing lost', async () => {
    const { run } = room()
    const ended = await run(['run', '--json', '-j', '2', '--', 'sh', '-c', 'echo "cannot open $0" >&2; exit 1'], {
      input: numbers(50),
    })
    expect(ended.code).toBe(4)
    expect(JSON.parse(ended.stderr).error).toMatchObject({
      code: 'PW_HALTED',
      message: expect.stringMatching(/all failed with one error: exit 1: cannot open \d+$/),
    })
    const summary = ended.json().at(-1)
    expect(summary).toMatchObject({ total: 50, done: 0 })
    expect(summary?.retries).toBeLessThan(30)
  })

  it('by --halt: soon lets what runs end, now ends it, never goes on', async () => {
    const { run, lines, path } = room()
    const script = `test $0 = 1 && exit 1; sleep 0.6; echo $0 >> ${path('ended')}`
    const soon = await run(['run', '-j', '2', '--halt', 'soon,fail=1', '--', 'sh', '-c', script], { input: numbers(9) })
    expect([soon.code, lines('ended').length <= 2]).toEqual([4, true])
    expect(lines('ended')).toContain('2')
    const slow = 'test $0 = 1 && { sleep 0.3; exit 1; }; sleep 60'
    const now = await run(['run', '-j', '2', '--halt', 'now,fail=1', '--', 'sh', '-c', slow], { input: numbers(9) })
    expect(now.code).toBe(4)
    const never = await run(['run', '--halt', 'never', '--deliveries', '1', '--', 'false'], { input: numbers(25) })
    expect(never.code).toBe(1)
  }, 60_000)
})

it('starts no more than --per-second says', async () => {
  const { run } = room()
  const { json } = await run(['run', '--json', '-j', '10', '--per-second', '10', '--', 'true'], { input: numbers(12) })
  expect(json().at(-1)).toMatchObject({ done: 12 })
  expect(json().at(-1)?.ms).toBeGreaterThanOrEqual(1000)
})

it('says where it is at the beginning and what to do at the end', async () => {
  const { run, folder, write } = room()
  mkdirSync(`${folder}/sub`)
  write('sub/in.txt', numbers(4))
  const { stderr, code } = await run([
    'run',
    '-a',
    'sub/in.txt',
    '--deliveries',
    '1',
    '--url',
    'sqlite:sub/x.db',
    '--',
    'sh',
    '-c',
    'test $0 != 2',
    '{}',
  ])
  expect(code).toBe(1)
  const [first, ...rest] = stderr.trim().split('\n')
  const name = /batch (\S+) in/.exec(first ?? '')?.[1]
  expect(name).toMatch(/^sh-in-[0-9a-f]{10}$/)
  expect(first).toBe(`piecework: batch ${name} in ${folder}/sub/x.db: 4 items, 0 done`)
  expect(rest.join('\n')).toContain('3 of 4 done, 1 dead')
  expect(rest.join('\n')).toContain('1 x exit 1')
  expect(rest.slice(-2)).toEqual([
    `  piecework dead list ${name} --url sqlite:sub/x.db`,
    "  piecework run --retry-dead -a sub/in.txt --deliveries 1 --url sqlite:sub/x.db -- sh -c 'test $0 != 2' '{}'",
  ])
})
