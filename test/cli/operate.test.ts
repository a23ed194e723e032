// queue, task, batch, dead groups and edit, status --watch: what an operator does from the command line.
import { readdirSync } from 'node:fs'
import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { numbers, room, until } from './cli.js'

describe('queue', () => {
  it('shows where each setting comes from, sets and unsets them in either spelling', async () => {
    const { run } = room()
    await run(['enqueue', 'q', '1'])
    const set = await run([
      'queue',
      'set',
      'q',
      'lease=1m',
      'deliveries=none',
      'backoff.base=5s',
      'perKey.onDead=hold',
      '--json',
    ])
    expect(set.json()[0]).toMatchObject({
      queue: 'q',
      policy: {
        leaseMs: 60_000,
        deliveriesMax: null,
        backoff: { baseMs: 5000, factor: 3 },
        perKey: { onDead: 'hold', width: 1 },
      },
      operator: { leaseMs: 60_000, deliveriesMax: null, backoff: { baseMs: 5000 }, perKey: { onDead: 'hold' } },
    })
    expect((await run(['queue', 'unset', 'q', 'lease', 'deliveriesMax', '--json'])).json()[0]?.operator).toEqual({
      backoff: { baseMs: 5000 },
      perKey: { onDead: 'hold' },
    })
    expect((await run(['queue', 'show', 'q'])).stdout).toMatch(/leaseMs +30000 +default\n[\s\S]*backoff .* operator/)
    expect((await run(['queue', 'unset', 'q', '--json'])).json()[0]?.operator).toBeNull()
  }, 60_000)

  it.each([
    ['laese=1m', 'PW_OPTION_UNKNOWN', 'Did you mean "lease"?'],
    ['deliveriesMx=1', 'PW_OPTION_UNKNOWN', 'Did you mean "deliveriesMax"?'],
    ['banana=1', 'PW_OPTION_UNKNOWN', 'It has: lease, timeout, deliveries,'],
    ['constructor=1', 'PW_OPTION_UNKNOWN', 'no setting "constructor"'],
    ['per-key.wdith=1', 'PW_OPTION_UNKNOWN', 'Did you mean "width"?'],
    ['lease.x=1', 'PW_OPTION_UNKNOWN', 'no part "lease.x"'],
    ['lease', 'PW_OPTION_INVALID', 'name=value'],
    ['lease=banana', 'PW_OPTION_INVALID', 'lease is "banana"; it must be a duration such as 250ms, 30s, 5m or 1h.'],
    ['lease=', 'PW_OPTION_INVALID', 'a duration'],
    ['timeout=x', 'PW_OPTION_INVALID', 'or none'],
    ['lease=1', 'PW_OPTION_INVALID', 'leaseMs is 1; it must be whole milliseconds from 100 to 43200000.'],
    ['deliveries=x', 'PW_OPTION_INVALID', 'deliveriesMax is "x"; it must be a whole number from 1 to 1000000, or null'],
    ['deliveries=1.5', 'PW_OPTION_INVALID', 'a whole number'],
    ['backoff=fast', 'PW_OPTION_INVALID', 'backoff.base=1s'],
    ['backoff.base=x', 'PW_OPTION_INVALID', 'backoff.base is "x"; it must be a duration'],
    ['backoff.factor=0', 'PW_OPTION_INVALID', 'a number from 1 to 100'],
    ['backoff.jitter=some', 'PW_OPTION_INVALID', '"full" or "none"'],
    ['per-key.fair=true', 'PW_OPTION_INVALID', 'it must be false'],
    ['per-key.on-dead=stop', 'PW_OPTION_INVALID', '"continue" or "hold"'],
  ])('set %s is refused with what it should be, before the store is touched', async (setting, code, text) => {
    const { run, folder } = room()
    const refused = await run(['queue', 'set', 'q', setting, '--json'])
    const { error } = JSON.parse(refused.stderr)
    expect([refused.code, error.code, error.message]).toEqual([2, code, expect.stringContaining(text)])
    expect(error.message).not.toMatch(/Invalid|Expected|undefined/)
    expect(readdirSync(folder)).toEqual([])
  })

  it('set says when the queue is new, with the name that may have been meant', async () => {
    const { run } = room()
    await run(['enqueue', 'mail', '1'])
    const typo = await run(['queue', 'set', 'mial', 'lease=1m'])
    expect([typo.code, typo.stderr]).toEqual([
      0,
      'piecework: warning: "mial" is a new queue: nothing was ever enqueued there. Did you mean "mail"? ' +
        '(PW_QUEUE_UNKNOWN)\n',
    ])
    const fresh = await run(['queue', 'set', 'letters', 'lease=1m', '--json'])
    expect(JSON.parse(fresh.stderr).warning.message).toMatch(
      /"letters" is a new queue: nothing was ever enqueued there.$/,
    )
    for (const name of ['mail', 'letters']) {
      expect((await run(['queue', 'set', name, 'lease=2m'])).stderr).toBe('')
    }
  }, 60_000)

  it('paused is told by a run, at once, and how to go on', async () => {
    const { run, start } = room()
    await run(['enqueue', 'b', '1', '--text'])
    await run(['queue', 'pause', 'b'])
    const waiting = start(['run', '--batch', 'b', '--', 'true'], { input: 'x\n' })
    await until('it says so', () => waiting.stderr.includes('PW_QUEUE_PAUSED'))
    expect(waiting.stderr).toContain('Queue b is paused, so no item is started. To go on: piecework queue resume b')
    const json = start(['run', '--json', '--batch', 'b', '--', 'true'], { input: 'x\n' })
    await until('the other one says so, too', () => json.stderr.includes('\n'))
    expect(JSON.parse(json.stderr).warning.code).toBe('PW_QUEUE_PAUSED')
    await run(['queue', 'resume', 'b'])
    expect([(await waiting.finished).code, (await json.finished).code]).toEqual([0, 0])
  }, 60_000)

  it('unset knows its settings too', async () => {
    const { run } = room()
    await run(['enqueue', 'q', '1'])
    await run(['queue', 'set', 'q', 'lease=1m', 'backoff.jitter=none'])
    for (const [field, text] of [
      ['leese', 'Did you mean "lease"?'],
      ['backoff.jitter', 'say backoff'],
    ]) {
      const refused = await run(['queue', 'unset', 'q', 'lease', field as string, '--json'])
      const { error } = JSON.parse(refused.stderr)
      expect([refused.code, error.code, error.message]).toEqual([
        2,
        'PW_OPTION_UNKNOWN',
        expect.stringContaining(text as string),
      ])
    }
    const [shown] = (await run(['queue', 'show', 'q', '--json'])).json()
    expect(shown?.operator).toEqual({ leaseMs: 60_000, backoff: { jitter: 'none' } })
  }, 60_000)

  it('pauses and resumes; purges what nobody holds', async () => {
    const { run } = room()
    await run(['enqueue', 'q', '1', '2', '3'])
    expect((await run(['queue', 'pause', 'q', '--json'])).json()).toEqual([{ queue: 'q', paused: true }])
    expect((await run(['queue', 'list', '--json'])).json()).toMatchObject([{ queue: 'q', paused: true }])
    const [queue] = (await run(['status', '--json'])).json()[0]?.queues ?? []
    expect(queue.paused).toBe(true)
    await run(['queue', 'resume', 'q'])
    expect((await run(['queue', 'purge', 'q', '--json'])).code).toBe(2)
    expect((await run(['queue', 'purge', 'q', '--all', '-n', '--json'])).json()).toEqual([{ purged: 3, dryRun: true }])
    expect((await run(['queue', 'purge', 'q', '--all', '--yes', '--json'])).json()).toEqual([{ purged: 3 }])
    expect((await run(['status', 'q', '--json'])).json()[0]?.queues[0]).toMatchObject({ ready: 0, drained: true })
  }, 60_000)

  it('moves tasks to another queue', async () => {
    const { run } = room()
    await run(['enqueue', 'q', '1', '2', '--type', 'slow'])
    await run(['enqueue', 'q', '3'])
    const move = ['queue', 'move', 'q', '--type', 'slow', '--to']
    expect((await run([...move, 'other', '-n', '--json'])).json()).toEqual([
      { moved: 2, asked: 0, routed: false, dryRun: true },
    ])
    expect((await run(['status', 'other', '--json'])).code).toBe(2)
    expect((await run([...move, 'other'])).stdout).toBe('2 moved; later ones of this type follow\n')
    expect((await run(['status', 'other', '--json'])).json()[0]?.queues[0]).toMatchObject({ ready: 2 })
    expect((await run(['task', 'list', 'q', '--json'])).json()).toMatchObject([{ payload: 3 }])
    expect((await run(['queue', 'show', 'q'])).stdout).toMatch(/\nnew tasks of slow go to other\/slow\n$/)
    await run(['enqueue', 'q', '4', '--type', 'slow'])
    expect((await run(['status', 'other', '--json'])).json()[0]?.queues[0]).toMatchObject({ ready: 3 })
    const back = ['queue', 'move', 'q', '--type', 'slow', '--back', '--json']
    expect((await run(back)).json()).toEqual([{ moved: 3, asked: 0, routed: false }])
    expect(JSON.parse((await run(back)).stderr).error.code).toBe('PW_MOVE_UNKNOWN')
    expect((await run(['queue', 'show', 'q', '--json'])).json()[0]?.routes).toEqual([])
    for (const [to, code] of [['q', 'PW_OPTION_INVALID'], []]) {
      const refused = await run(['queue', 'move', 'q', ...(to ? ['--to', to] : []), '--json'])
      expect([refused.code, JSON.parse(refused.stderr).error.code]).toEqual([2, code ?? 'PW_USAGE'])
    }
  }, 120_000)
})

describe('task', () => {
  it('lists by filter, shows one, cancels what is meant', async () => {
    const { run } = room()
    await run(['enqueue', 'q', '{"n":12345678901234567890}', '--type', 't', '--key', 'k'])
    await run(['enqueue', 'q', '1', '2', '--delay', '1h'])
    const [task] = (await run(['task', 'list', 'q', '--state', 'ready', '--json'])).json()
    expect(task).toMatchObject({ queue: 'q', type: 't', key: 'k', state: 'ready', deliveries: 0, worker: null })
    const shown = await run(['task', 'show', task?.id, '--json'])
    expect(shown.stdout).toContain('"payload":{"n":12345678901234567890}}')
    expect(shown.json()[0]?.history).toEqual([])
    expect((await run(['task', 'show', '1', '--json'])).code).toBe(2)
    expect((await run(['task', 'cancel', 'q', '--json'])).code).toBe(2)
    expect((await run(['task', 'cancel', 'q', '--id', task?.id, '--json'])).json()).toEqual([
      { cancelled: 1, asked: 0 },
    ])
    const unsaid = await run(['task', 'cancel', 'q', '--all', '--json'])
    expect([unsaid.code, JSON.parse(unsaid.stderr).error.code]).toEqual([2, 'PW_UNCONFIRMED'])
    const counted = await run(['task', 'cancel', 'q', '--state', 'scheduled', '--dry-run', '--json'])
    expect(counted.json()).toEqual([{ cancelled: 2, asked: 0, dryRun: true }])
    expect((await run(['task', 'cancel', 'q', '--state', 'scheduled', '--json'])).json()).toEqual([
      { cancelled: 2, asked: 0 },
    ])
    expect((await run(['task', 'list', '--json'])).json()).toEqual([])
  }, 60_000)
})

it('a list is whole, and says when --limit left some out', async () => {
  const { run } = room()
  await run(['enqueue', 'q', '--input', '-'], { input: numbers(1200) })
  const all = await run(['task', 'list', 'q', '--json'])
  expect(all.json().map((task) => task.payload)).toEqual(Array.from({ length: 1200 }, (_, i) => `${i + 1}`))
  const shown = await run(['task', 'list', 'q'])
  expect(shown.stdout.match(/ ready /g)).toHaveLength(1200)
  expect(shown.stderr).toBe('')
  const some = await run(['task', 'list', 'q', '--limit', '1199'])
  expect(some.stdout.match(/ ready /g)).toHaveLength(1199)
  expect(some.stderr).toBe('There are more than 1 199 tasks; without --limit all are listed.\n')
  expect((await run(['task', 'list', 'q', '--limit', '1200'])).stderr).toBe('')
  await run(['run', '-q', '--batch', 'b', '--', 'sh', '-c', 'exit 65'], { input: numbers(3) })
  const dead = await run(['dead', 'list', 'b', '--limit', '2'])
  expect([dead.stdout.match(/ buried /g)?.length, dead.stderr]).toEqual([2, expect.stringContaining('than 2 tasks')])
  expect((await run(['dead', 'list', 'q'])).stdout).toMatch(/^id +queue/)
}, 60_000)

describe('batch', () => {
  it('lists, shows, and forgets, after which the items run again', async () => {
    const { run, lines, path } = room()
    const words = ['run', '-q', '--batch', 'b', '--', 'sh', '-c', `echo $0 >> ${path('log')}`]
    await run(words, { input: numbers(3) })
    expect((await run(['batch', 'list', '--json'])).json()).toMatchObject([
      { batch: 'b', total: 3, done: 3, dead: 0, open: 0, info: { input: '-' } },
    ])
    expect((await run(['batch', 'show', 'b', '--json'])).json()[0]).toMatchObject({
      batch: 'b',
      retries: 0,
      // Nobody sealed it: a run of more lines may follow.
      finishedAt: null,
    })
    await run(words, { input: numbers(3) })
    expect(lines('log')).toHaveLength(3)
    expect((await run(['batch', 'forget', 'b', '--json'])).json()).toEqual([{ batch: 'b', forgotten: true }])
    expect((await run(['batch', 'show', 'b'])).code).toBe(2)
    await run(words, { input: numbers(3) })
    expect(lines('log')).toHaveLength(6)
  }, 60_000)

  it('seals once, and cancels what is open', async () => {
    const { run } = room()
    await run(['enqueue', 'q', '--batch', 'b', '1', '2'])
    expect((await run(['batch', 'seal', 'b', '--json'])).json()).toMatchObject([{ batch: 'b', sealed: true, open: 2 }])
    expect((await run(['batch', 'seal', 'b'])).code).toBe(2)
    expect((await run(['enqueue', 'q', '--batch', 'b', '3'])).stderr).toContain('PW_BATCH_SEALED')
    expect((await run(['batch', 'cancel', 'b'])).stderr).toContain('cancel what is open of batch b: 2 tasks')
    const cancel = ['batch', 'cancel', 'b', '--yes', '--json']
    expect((await run(cancel)).json()).toEqual([{ batch: 'b', cancelled: 2, asked: 0 }])
    expect((await run(['batch', 'show', 'b', '--json'])).json()[0]).toMatchObject({
      ...{ total: 2, cancelled: 2, finishedAt: expect.any(String), followUp: null },
    })
    expect((await run(['batch', 'seal', 'none'])).code).toBe(2)
  }, 60_000)

  it('forgets none that is at work, nor starts it anew', async () => {
    const { run, start, lines, path } = room()
    const words = ['run', '-j1', '--batch', 'b', '--', 'sh', '-c', `echo $0 >> ${path('log')}; sleep 60`]
    const running = start(words, { input: numbers(3) })
    await until('it works', () => lines('log').length === 1)
    for (const other of [
      ['batch', 'forget', 'b'],
      ['run', '--new', ...words.slice(1)],
    ]) {
      const refused = await run([...other.slice(0, 1), '--json', ...other.slice(1)], { input: numbers(3) })
      expect([refused.code, JSON.parse(refused.stderr.trim().split('\n').at(-1) ?? '').error.code]).toEqual([
        2,
        'PW_BATCH_BUSY',
      ])
    }
    running.child.kill('SIGINT')
    await until('it says so', () => running.stderr.includes('stopping'))
    running.child.kill('SIGINT')
    await running.finished
    expect((await run(['batch', 'forget', 'b', '--json'])).code).toBe(0)
  }, 60_000)
})

describe('dead letters', () => {
  it('are grouped by error, edited, and run with what was edited', async () => {
    const { run } = room()
    const script = 'test $0 = fixed || { echo "no $0 here" >&2; exit 65; }; echo $0'
    await run(['run', '-q', '--batch', 'b', '--', 'sh', '-c', script], { input: numbers(3) })
    const groups = (await run(['dead', 'groups', 'b', '--json'])).json()
    expect(groups).toEqual([
      { fingerprint: expect.any(String), count: 3, error: 'exit 65: no 1 here', example: expect.any(String) },
    ])
    const id = groups[0]?.example
    expect((await run(['dead', 'edit', id, '{', '--json'])).code).toBe(2)
    expect((await run(['dead', 'edit', id, '"fixed"', '--json'])).json()).toEqual([{ id, edited: true }])
    await run(['dead', 'redrive', 'b', '--id', id, '--yes'])
    const again = await run(['run', '--batch', 'b', '--', 'sh', '-c', script], { input: numbers(3) })
    expect([again.code, again.stdout]).toEqual([1, 'fixed\n'])
  }, 60_000)
})

it('audit --redelivered lists acks of tasks that had been delivered more than once', async () => {
  const { run } = room()
  await run(['enqueue', 'q', '1'])
  const none = await run(['audit', '--redelivered'])
  expect([none.code, none.stdout]).toEqual([0, 'no task that was delivered more than once was acked\n'])
  const once = ['sh', '-c', 'test "$PIECEWORK_DELIVERY" -gt 1']
  await run(['queue', 'set', 'q', 'backoff.base=1ms'])
  expect((await run(['work', 'q', '--until-drained', '--', ...once])).code).toBe(0)
  const [row] = (await run(['audit', '--redelivered', '--since', '1h', '--json'])).json()
  expect(row).toMatchObject({ queue: 'q', type: 'q', key: null, deliveries: 2 })
  expect(row?.workers).toHaveLength(1)
  expect(Date.parse(String(row?.ackedAt))).toBeGreaterThan(Date.parse(String(row?.enqueuedAt)))
  expect((await run(['audit', '--since', '1h'])).code).toBe(2)
}, 60_000)

it('audit sets every figure beside a full count, and says which one lies', async () => {
  const { run, path } = room()
  await run(['run', '-q', '--batch', 'b', '--', 'sh', '-c', 'test $0 != 2 || exit 65'], { input: numbers(3) })
  await run(['enqueue', 'q', '1', '2'])
  const fine = await run(['audit', '--json'])
  expect(fine.code).toBe(0)
  expect(fine.json()).toMatchObject([
    { kind: 'type', name: 'b/b', counted: { dead: 1 }, equal: true },
    { kind: 'type', name: 'q/q', counted: { ready: 2 }, equal: true },
    { kind: 'batch', name: 'b', counted: { open: 0, dead: 1 }, equal: true },
  ])
  const db = new Database(path('piecework.db'))
  db.exec("update piecework_type set ready = 3 where name = 'q'")
  db.close()
  const wrong = await run(['audit'])
  expect([wrong.code, wrong.stdout]).toEqual([1, expect.stringMatching(/type +q\/q +ready +3 +2/)])
}, 60_000)

it('status --watch goes on until Ctrl-C, with rates from the second look on', async () => {
  const { run, start } = room()
  await run(['enqueue', 'q', '1'])
  const watching = start(['status', '--watch', '--json'])
  await until('two looks', () => watching.stdout.split('\n').length > 2)
  watching.child.kill('SIGINT')
  const ended = await watching.finished
  expect(ended.code).toBe(0)
  const [first, second] = ended.json()
  expect([first?.queues[0].donePerSecond, second?.queues[0].donePerSecond]).toEqual([null, 0])
}, 60_000)

it('a reader that leaves early is no error of a list', async () => {
  const { run, start } = room()
  const items = Array.from({ length: 20_000 }, (_, index) => `${index} ${'x'.repeat(50)}\n`).join('')
  await run(['enqueue', 'q', '--input', '-'], { input: items })
  const { child, finished } = start(['task', 'list', 'q', '--json', '--limit', '20000'])
  child.stdout?.once('data', () => child.stdout?.destroy())
  const { code, stderr } = await finished
  expect([code, stderr]).toEqual([0, ''])
}, 60_000)
