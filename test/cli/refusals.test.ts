// What the command line refuses: with a code, what to do, the right exit code, never a stack, and nothing lost.
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { errorTable } from '../../dist/ground/errors.js'
import { type Finished, mainFile, numbers, room } from './cli.js'

/** The error object; checks what holds for every error. */
function errorOf({ stderr, stdout }: Finished): { code: string; message: string; cure: string } {
  const { error } = JSON.parse(stderr)
  expect(Object.keys(error)).toEqual(['code', 'message', 'cure'])
  expect(errorTable).toHaveProperty(error.code)
  expect(error.message).not.toMatch(/\n\s+at /)
  expect(stdout).toBe('')
  return error
}

describe('words', () => {
  it.each([
    [['stauts'], 'PW_COMMAND_UNKNOWN', 'Did you mean status?'],
    [['dead', 'lst'], 'PW_COMMAND_UNKNOWN', 'Did you mean list?'],
    [['dead', 'lsit'], 'PW_COMMAND_UNKNOWN', 'Did you mean list?'],
    [['run', '--formta', 'csv', '--', 'true'], 'PW_OPTION_UNKNOWN', 'Did you mean --format?'],
    [['dead', 'list', '--typ', 'x'], 'PW_OPTION_UNKNOWN', 'Did you mean --type?'],
    [['run', '--jobs', '4', '--', 'true'], 'PW_OPTION_UNKNOWN', '--concurrency'],
    [['run', '--retries=4', '--', 'true'], 'PW_OPTION_UNKNOWN', '--deliveries'],
    [['run', '--resume', '--', 'true'], 'PW_OPTION_UNKNOWN', 'run the same command again'],
    [['run', '--eta', '--', 'true'], 'PW_OPTION_UNKNOWN', 'progress'],
    [['run', '--max-args', '4', '--', 'true'], 'PW_OPTION_UNKNOWN', 'COMMAND of its own'],
    [['run'], 'PW_USAGE', 'COMMAND is missing'],
    [['run', '--'], 'PW_USAGE', 'COMMAND is missing'],
    [['run', '--stdin', '--arg', '--', 'cat'], 'PW_USAGE', 'exclude each other'],
    [['run', '-j', '0', '--', 'true'], 'PW_OPTION_INVALID', 'whole number from 1'],
    [['run', '--lease', '30', '--', 'true'], 'PW_OPTION_INVALID', 'Did you mean "30s"?'],
    [['run', '--halt', 'soon', '--', 'true'], 'PW_OPTION_INVALID', 'soon,fail=N'],
    [['run', '--format', 'csb', '--', 'true'], 'PW_OPTION_INVALID', 'Did you mean "csv"?'],
    [['run', '--url', 'mysql://x', '--', 'true'], 'PW_ENGINE_UNKNOWN', 'mysql'],
    [['enqueue', 'q'], 'PW_USAGE', 'nothing to enqueue'],
    [['enqueue'], 'PW_USAGE', 'queue'],
    [['enqueue', 'q', '1', '{"a":tru}'], 'PW_JSON_INVALID', 'Argument 2: Not JSON at offset 8: "}" cannot stand there'],
    [['enqueue', 'q', '{'], 'PW_JSON_INVALID', 'Argument 1: Not JSON at offset 1: it ends too early'],
    [['enqueue', 'q', '1', '--priority', '101'], 'PW_OPTION_INVALID', '-100 to 100'],
    [['enqueue', 'q', '['.repeat(65) + ']'.repeat(65)], 'PW_PAYLOAD_TOO_DEEP', '64'],
    [['enqueue', '', '1'], 'PW_NAME_INVALID', 'empty'],
    [['enqueue', 'a\u0007', '1'], 'PW_NAME_INVALID', 'offset 1'],
    [['enqueue', 'x'.repeat(201), '1'], 'PW_NAME_INVALID', '201'],
    [['run', '-a', 'nope.txt', '--', 'true'], 'PW_INPUT_UNREADABLE', 'does not exist'],
    [['run', '-a', '.', '--', 'true'], 'PW_INPUT_UNREADABLE', 'folder'],
  ])('%j', async (words, code, text) => {
    const { run, folder } = room()
    const ended = await run([...words.slice(0, 1), '--json', ...words.slice(1)], { input: '' })
    const error = errorOf(ended)
    expect([ended.code, error.code]).toEqual([2, code])
    expect(error.message).toContain(text)
    expect(readdirSync(folder)).toEqual([])
  })

  it('are explained to people in two lines', async () => {
    const { run } = room()
    const { stderr } = await run(['enqueue', 'q', '{'])
    expect(stderr.trim().split('\n')).toEqual([
      expect.stringMatching(/^piecework: Argument 1: Not JSON/),
      expect.stringMatching(/^ {2}Correct .*--text.* \(PW_JSON_INVALID\)$/),
    ])
    const bare = await run([])
    expect([bare.code, bare.stdout, bare.stderr]).toEqual([2, '', expect.stringContaining('Usage: piecework')])
  })
})

it('takes any name that is one', async () => {
  const { run } = room()
  const names = ['a:b', 'a/b', '日本', '../x', '%2F', ' ', 'x'.repeat(200), "it's"]
  for (const name of names) expect((await run(['enqueue', '--json', name, '1'])).code).toBe(0)
  const queues: { queue: string }[] = (await run(['status', '--json'])).json()[0]?.queues
  expect(queues.map(({ queue }) => queue).sort()).toEqual([...names].sort())
}, 60_000)

describe('input', () => {
  it('with a bad line is refused before anything runs or is stored', async () => {
    const { run, write, folder, lines, path } = room()
    const bad = Buffer.concat([Buffer.from(numbers(1000)), Buffer.from([0x62, 0xff, 0x0a]), Buffer.from('z\n')])
    write('in.txt', bad)
    for (const words of [['-a', 'in.txt'], []]) {
      const ended = await run(
        ['run', '--json', ...words, '--', 'touch', path('ran')],
        words.length > 0 ? {} : { input: bad },
      )
      expect([ended.code, errorOf(ended)]).toEqual([
        2,
        expect.objectContaining({
          code: 'PW_UTF8_INVALID',
          message: expect.stringMatching(/^Line 1001: .*offset 3894 /),
        }),
      ])
    }
    const enqueue = await run(['enqueue', '--json', 'q', '--input', 'in.txt'])
    expect([enqueue.code, errorOf(enqueue).code]).toEqual([2, 'PW_UTF8_INVALID'])
    expect(readdirSync(folder)).toEqual(['in.txt'])
    const skipped = await run([
      'run',
      '--json',
      '-a',
      'in.txt',
      '-j',
      '1',
      '--skip-invalid',
      '--batch',
      'b',
      '--halt',
      'now,fail=1',
      '--',
      'sh',
      '-c',
      `echo $0 >> ${path('log')}; exit 1`,
    ])
    expect([skipped.code, lines('log').length]).toEqual([4, 1])
  }, 60_000)

  it('that is skipped goes to the dead letters with its bytes', async () => {
    const { run, write } = room()
    write('in.txt', Buffer.from([0x61, 0x0a, 0xff, 0x0a, 0x62]))
    const { code, stdout } = await run(['run', '-k', '-a', 'in.txt', '--skip-invalid', '--', 'echo'])
    expect([code, stdout]).toEqual([1, 'a\nb\n'])
    const [letter] = (await run(['dead', 'list', '--json'])).json()
    expect(letter).toMatchObject({
      deliveries: 1,
      reason: 'buried',
      payload: { base64: '/w==' },
      error: expect.stringContaining('Line 2'),
    })
  })

  it('that is skipped and too long for base64 keeps what fits, its length and its hash', async () => {
    const { run, write } = room()
    const bad = Buffer.alloc(1_000_000, 0xff)
    const other = Buffer.from(bad).fill(0xfe, 999_999)
    write('in.txt', Buffer.concat([bad, Buffer.from('\na\n'), other]))
    const { code, stdout } = await run(['run', '-a', 'in.txt', '--skip-invalid', '--', 'echo'])
    expect([code, stdout]).toEqual([1, 'a\n'])
    const letters = (await run(['dead', 'list', '--json'])).json()
    expect(letters.map(({ payload }) => [payload.bytes, Buffer.from(payload.base64, 'base64').length])).toEqual([
      [1_000_000, 783_360],
      [1_000_000, 783_360],
    ])
    expect(letters[0]?.payload.sha256).not.toBe(letters[1]?.payload.sha256)
  })

  it("that is the store's own file is refused, by any name", async () => {
    const { run, path } = room()
    await run(['enqueue', 'q', '1'])
    for (const name of ['piecework.db', path('piecework.db'), './piecework.db-ballast']) {
      const ended = await run(['run', '--json', '-a', name, '--', 'true'])
      expect([ended.code, errorOf(ended).code]).toEqual([2, 'PW_OWN_FILE'])
    }
  })
})

describe('the store', () => {
  it('missing: 3 for those that read', async () => {
    const { run, folder } = room()
    for (const words of [['status'], ['dead', 'list'], ['dead', 'redrive', 'q', '--all']]) {
      const ended = await run([...words, '--json'])
      expect([ended.code, errorOf(ended).code]).toEqual([3, 'PW_STORE_MISSING'])
    }
    expect(readdirSync(folder)).toEqual([])
  })

  it('not ours: 3, and left as it was', async () => {
    const { run, write } = room()
    const text = write('notes.txt', 'This is no database, it is a text of some length.\n')
    const db = new Database(room().path('foreign.db'))
    db.exec('create table mine (a)')
    db.close()
    const before = readFileSync(db.name)
    for (const url of [`sqlite:${text}`, `sqlite:${db.name}`]) {
      for (const words of [['status'], ['enqueue', 'q', '1'], ['run', '--', 'true']]) {
        const ended = await run([words[0] ?? '', '--json', '--url', url, ...words.slice(1)], { input: 'a\n' })
        expect([ended.code, errorOf(ended).code]).toEqual([3, 'PW_NOT_OURS'])
      }
    }
    expect(readFileSync(text, 'utf8')).toMatch(/^This is no database/)
    expect(readFileSync(db.name).equals(before)).toBe(true)
  }, 60_000)

  it('of a newer version: 3, and nothing in it changes', async () => {
    const { run, path } = room()
    await run(['enqueue', 'q', '1'])
    const db = new Database(path('piecework.db'))
    db.exec('update piecework_store set format = 999')
    for (const words of [['status'], ['enqueue', 'q', '2']]) {
      const ended = await run([...words, '--json'])
      expect([ended.code, errorOf(ended).code]).toEqual([3, 'PW_SCHEMA_NEW'])
    }
    expect(db.prepare('select count(*) from piecework_task').pluck().get()).toBe(1)
    db.close()
  })

  it('of an older version: 3 for what only uses it, and nothing in it changes', async () => {
    const { run, path } = room()
    await run(['enqueue', 'q', '1'])
    const db = new Database(path('piecework.db'))
    db.exec('update piecework_store set format = 0')
    for (const words of [['status'], ['task', 'list'], ['queue', 'pause', 'q'], ['audit']]) {
      const ended = await run([...words, '--json'])
      const error = errorOf(ended)
      expect([ended.code, error.code, error.cure]).toEqual([3, 'PW_SCHEMA_OLD', expect.stringContaining('migrate')])
    }
    expect(db.prepare('select format from piecework_store').pluck().get()).toBe(0)
    db.close()
  }, 60_000)

  it('read-only: 3', async () => {
    const { run, path, folder } = room()
    await run(['enqueue', 'q', '1'])
    chmodSync(path('piecework.db'), 0o444)
    chmodSync(folder, 0o555)
    // Root may write everywhere, so root steps down for this.
    const ended = await run(['enqueue', '--json', 'q', '2'], process.getuid?.() === 0 ? { uid: 65_534 } : {})
    chmodSync(folder, 0o755)
    expect([ended.code, errorOf(ended).code]).toEqual([3, 'PW_STORE_READONLY'])
  })
})

it('takes --url before the command, and says when the current folder is gone', async () => {
  const { run, path } = roomWith()
  const url = `sqlite:${path('a.db')}`
  await run(['--url', url, 'enqueue', 'q', '1'])
  expect((await run(['--url', url, 'work', 'q', '--until-drained', '--', 'cat'])).code).toBe(0)
  const script = `mkdir gone && cd gone && rmdir ../gone && exec "$0" "$1" run -- true`
  const { status, stderr } = spawnSync('sh', ['-c', script, process.execPath, mainFile], {
    cwd: path('.'),
    encoding: 'utf8',
    input: 'x\n',
  })
  expect([status, stderr]).toEqual([3, expect.stringContaining('The current folder is gone')])
})

it('refuses a folder for results that no file system will make', async () => {
  const { run } = roomWith()
  const refused = await run(['run', '--results', '/proc/piecework', '--json', '--', 'true'], { input: 'x\n' })
  expect([refused.code, errorOf(refused).code]).toEqual([2, 'PW_USAGE'])
})

describe('slips that are legal', () => {
  it('refuses a column that no record can have, before anything runs', async () => {
    const { write, run, exists } = roomWith()
    write('people.csv', 'name,city\nAda,London\nBob,Rome\n')
    const refused = await run(['run', '-a', 'people.csv', '--json', '--', 'echo', '{nam}'])
    expect([refused.code, errorOf(refused)]).toEqual([2, expect.objectContaining({ code: 'PW_FIELD_MISSING' })])
    const piped = await run(['run', '--format', 'csv', '--json', '--', 'echo', '{nam}'], { input: 'name\nAda\n' })
    expect([piped.code, errorOf(piped).code]).toEqual([2, 'PW_FIELD_MISSING'])
    expect(exists('piecework.db')).toBe(false)
    expect((await run(['run', '-a', 'people.csv', '-k', '--', 'echo', '{name}'])).stdout).toBe('Ada\nBob\n')
  })

  it('says that a .json file is read as lines, and that lines have no fields', async () => {
    const { write, run } = roomWith()
    write('list.json', '[1,\n2]\n')
    const run1 = await run(['run', '-a', 'list.json', '-k', '--', 'echo', '{name}'])
    expect(run1.stdout).toBe('{name} [1,\n{name} 2]\n')
    expect(run1.stderr).toContain('list.json is read as lines; --format ndjson')
    expect(run1.stderr).toContain('{name} stays as it is: items of lines have no fields')
    expect((await run(['enqueue', 'q', '--input', 'list.json'])).stderr).toContain('list.json is read as lines')
    write('good.jsonl', '{"a":1}\n')
    expect((await run(['enqueue', 'q', '--input', 'good.jsonl', '--format', 'jsonl'])).code).toBe(0)
  })
})

/** A room, and whether a file is in it. */
function roomWith() {
  const here = room()
  return { ...here, exists: (name: string) => existsSync(here.path(name)) }
}
