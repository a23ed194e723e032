// enqueue, status, dead, explain, version: what they print, in what shape, with which exit code.
import { readdirSync } from 'node:fs'
import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import type { Figures } from '../../dist/engine/contract.js'
import { errorTable } from '../../dist/ground/errors.js'
import { queueStats } from '../../dist/queue/figures.js'
import { states, totals } from '../../dist/task/lifecycle.js'
import { type Finished, room, until } from './cli.js'

describe('enqueue', () => {
  it('prints one id a line for arguments, JSON as it was written', async () => {
    const { run } = room()
    const { code, stdout } = await run(['enqueue', 'mail', '{"id":12345678901234567890}', '"x"', 'null'])
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^(\d{16}\n){3}$/)])
    const [first, second] = stdout.trim().split('\n')
    expect(Number(second)).toBe(Number(first) + 1)
    const again = await run(['--json', 'enqueue', 'mail', '1', '--dedup-key', 'k', '--url', 'sqlite:piecework.db'])
    const twice = await run(['enqueue', 'mail', '2', '--dedup-key', 'k', '--json'])
    expect(again.json()).toEqual([{ id: expect.stringMatching(/^\d{16}$/), duplicate: false }])
    expect(twice.json()).toEqual([{ id: again.json()[0]?.id, duplicate: true }])
  }, 60_000)

  it('takes texts, options and any input, and says only how many for an input', async () => {
    const { run, write } = room()
    await run([
      'enqueue',
      'q',
      'plain',
      '--text',
      '--delay',
      '1h',
      '--type',
      't',
      '--priority',
      '-5',
      '--key',
      'k',
      '--header',
      'a=b=c',
    ])
    write('in.csv', 'a\n1\n2\n')
    expect((await run(['enqueue', 'q', '--input', 'in.csv', '--json'])).json()).toEqual([
      { enqueued: 2, duplicates: 0 },
    ])
    expect(
      (await run(['enqueue', 'q', '--input', '-', '--format', 'null'], { input: 'x\0y' })).json()[0],
    ).toMatchObject({ enqueued: 2 })
    const [queue] = (await run(['status', '--json'])).json()[0]?.queues ?? []
    expect(queue).toMatchObject({ queue: 'q', ready: 4, scheduled: 1, drained: false })
    expect(queue.types.map(({ type }: { type: string }) => type).sort()).toEqual(['q', 't'])
  }, 60_000)
})

describe('status', () => {
  it('has every figure it promises, and null for what is not known', async () => {
    const { run } = room()
    await run(['enqueue', 'mail', '1', '2'])
    const [status] = (await run(['status', '--json'])).json()
    expect(Object.keys(status ?? {})).toEqual(['at', 'queues', 'workers', 'utilisationSpread'])
    expect(status?.at).toBe(new Date(status?.at).toISOString())
    const [queue] = status?.queues ?? []
    expect(queue).toEqual({
      queue: 'mail',
      paused: false,
      ready: 2,
      scheduled: 0,
      waiting: 0,
      leased: 0,
      dead: 0,
      drained: false,
      backlogAgeMs: expect.any(Number),
      leaseAgeMaxMs: null,
      enqueuedPerSecond: null,
      donePerSecond: null,
      etaMs: null,
      workers: 0,
      redeliveries: 0,
      types: [expect.objectContaining({ type: 'mail', ready: 2, leased: 0, waitP50Ms: null, headroom: null })],
    })
    expect(Object.keys(queue.types[0])).toEqual(
      'type ready leased backlogAgeMs waitP50Ms waitP99Ms runP50Ms runP99Ms ackP50Ms ackP99Ms headroom'.split(' '),
    )
    expect([status?.workers, status?.utilisationSpread]).toEqual([[], null])
    const page = await run(['status', 'mail'])
    expect([page.code, page.stdout]).toEqual([0, expect.stringMatching(/^queue +ready.*\nmail +2 /)])
  })

  it('shows people how many are done, and which worker has been silent for long', async () => {
    const { run, start, path } = room()
    await run(['enqueue', 'q', '1', '2', '3'])
    expect((await run(['work', 'q', '--until-drained', '--', 'true'])).code).toBe(0)
    const { child, finished } = start(['work', 'q', '--', 'true'])
    await until('it has joined', async () => (await run(['status', '--json'])).json()[0]?.workers.length === 1)
    child.kill('SIGKILL')
    await finished
    const db = new Database(path('piecework.db'))
    db.exec('update piecework_worker set aliveAt = aliveAt - 60000')
    db.close()
    const { stdout } = await run(['status'])
    expect(stdout).toMatch(/^queue +ready +scheduled +waiting +leased +done +dead .*\nq +0 +0 +0 +0 +3 +0 /)
    expect(stdout).toMatch(/last heard of\n.* q +0\/10 +1 min \d+ s ago \(silent: dead or stopped\)/)
  }, 60_000)

  it('sorts the figures of thousands of queues once', () => {
    let looks = 0
    const zeros = Object.fromEntries([...states, ...totals].map((name) => [name, 0]))
    const types = Array.from({ length: 3000 }, (_, index) => {
      const row = { ...zeros, type: 't', paused: false, backlogAgeMs: null, leaseAgeMaxMs: null }
      const look = () => {
        looks++
        return `q${index}`
      }
      return Object.defineProperty(row, 'queue', { get: look, enumerable: true })
    })
    const figures = { at: 0, types, workers: [] } as unknown as Figures
    for (let index = 0; index < 3000; index++) {
      expect(queueStats(figures, `q${index}`, false).types).toHaveLength(1)
    }
    expect(looks).toBeLessThan(10 * 3000)
  })

  it('is of one queue when it is named, and refuses an unknown one with a suggestion', async () => {
    const { run } = room()
    await run(['enqueue', 'mail', '1'])
    await run(['enqueue', 'other', '1'])
    expect((await run(['status', 'mail', '--json'])).json()[0]?.queues).toHaveLength(1)
    const unknown = await run(['status', 'mai', '--json'])
    expect([unknown.code, JSON.parse(unknown.stderr).error]).toEqual([
      2,
      expect.objectContaining({ code: 'PW_QUEUE_UNKNOWN', message: expect.stringContaining('Did you mean "mail"?') }),
    ])
  })
})

const deliveriesOf = (listed: Finished) => listed.json().map(({ deliveries }) => deliveries)

describe('run --help', () => {
  it('tells placeholders, ends and exit codes, and its examples run', async () => {
    const { run, write } = room()
    const { code, stdout } = await run(['run', '--help'])
    expect(code).toBe(0)
    for (const word of ['{}', '{.}', '{/}', '{//}', '{/.}', '{#}', '{field}', '65', '75', '126', '130, 143']) {
      expect(stdout).toContain(word)
    }
    const example = /piecework (run -a people.csv .*)/.exec(stdout)?.[1] ?? ''
    write('people.csv', 'name\nAda\nBob\n')
    const words = example.replaceAll("'", '').replace('echo Dear {name},', '').trim().split(/ +/)
    const told = await run([...words, 'echo', 'Dear {name},'])
    expect([told.code, told.stdout]).toEqual([0, 'Dear Ada,\nDear Bob,\n'])
  })
})

describe('limit', () => {
  it('sets ceilings before there is a queue, lists them, and removes what no queue uses', async () => {
    const { run } = room()
    const [made] = (await run(['limit', 'set', 'db', 'concurrency=20', 'per-second=0.5', '--json'])).json()
    expect(made).toEqual({
      ...{ limit: 'db', concurrencyMax: 20, perSecondMax: 0.5, adaptive: false },
      ...{ leased: 0, queues: [], share: 1, concurrencyNow: 20 },
    })
    await run(['enqueue', 'mail', '1'])
    expect((await run(['queue', 'set', 'mail', 'uses=db,api'])).stderr).toContain('PW_LIMIT_UNKNOWN')
    expect((await run(['queue', 'set', 'mail', 'uses=db', 'breaker.distinct-tasks=5'])).code).toBe(0)
    expect((await run(['queue', 'show', 'mail', '--json'])).json()[0]?.policy).toMatchObject({
      uses: ['db'],
      breaker: { failures: 20, distinctTasks: 5, windowMs: 10_000 },
    })
    expect((await run(['limit', 'list'])).stdout).toMatch(/db +20 +0\.5 +all +0 +mail/)
    const refused = await run(['limit', 'remove', 'db'])
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('PW_LIMIT_IN_USE')])
    await run(['queue', 'set', 'mail', 'uses=none'])
    expect((await run(['limit', 'remove', 'db', '--json'])).json()).toEqual([{ limit: 'db', removed: true }])
    expect((await run(['limit', 'list', '--json'])).json()).toEqual([])
    const typo = await run(['limit', 'set', 'db', 'concurency=1'])
    expect([typo.code, typo.stderr]).toEqual([2, expect.stringContaining('Did you mean')])
  }, 60_000)
})

describe('migrate', () => {
  it('prints what it would do, does it, and then has nothing to do', async () => {
    const { run, folder } = room()
    const planned = await run(['migrate', '--dry-run'])
    expect([planned.code, planned.stdout]).toEqual([0, expect.stringContaining('create table piecework_task')])
    expect(readdirSync(folder)).toEqual([])
    const [listed] = (await run(['migrate', '-n', '--json'])).json()
    expect(listed).toMatchObject({
      dryRun: true,
      statements: [
        expect.stringContaining('piecework_task'),
        expect.stringContaining('piecework_token'),
        expect.any(String),
      ],
    })
    expect((await run(['migrate'])).stdout).toBe('migrated in 3 steps\n')
    expect((await run(['migrate'])).stdout).toBe('nothing to migrate\n')
    expect((await run(['status', '--json'])).json()[0]?.queues).toEqual([])
  }, 60_000)
})

describe('dead', () => {
  const filled = async () => {
    const here = room()
    const script = 'echo "no $0" >&2; exit 65'
    await here.run(['run', '-q', '--format', 'ndjson', '--batch', 'b', '--', 'sh', '-c', script, '{n}'], {
      input: '{"n":12345678901234567890}\n{"n":2}\n{"n":3}\n',
    })
    await here.run(['enqueue', 'b', '1'])
    return here
  }

  it('lists, one object a line, payloads as they were written', async () => {
    const { run } = await filled()
    const { stdout, json } = await run(['dead', 'list', '--json'])
    expect(Object.keys(json()[0] ?? {})).toEqual('id queue type key deliveries reason error deadAt payload'.split(' '))
    expect(stdout).toContain('"payload":{"n":12345678901234567890}}')
    expect(json()[0]).toMatchObject({
      queue: 'b',
      type: 'b',
      key: null,
      deliveries: 1,
      reason: 'buried',
      error: 'exit 65: no 12345678901234567890',
    })
    expect((await run(['dead', 'list', 'b', '--json', '--text', 'no 2'])).json()).toHaveLength(1)
    expect((await run(['dead', 'list', 'b', '--json', '--limit', '2'])).json()).toHaveLength(2)
    expect((await run(['dead', 'list'])).stdout.split('\n')[0]).toMatch(/^id +queue +deliveries/)
  }, 60_000)

  it('shows one with its history', async () => {
    const { run } = await filled()
    const id = (await run(['dead', 'list', '--json'])).json()[1]?.id
    const [letter] = (await run(['dead', 'show', 'b', id, '--json'])).json()
    expect(letter).toMatchObject({
      id,
      payload: { n: 2 },
      history: [{ number: 1, outcome: 'bury', error: 'exit 65: no 2' }],
    })
    expect((await run(['dead', 'show', id])).stdout).toContain('exit 65: no 2')
    for (const words of [
      ['dead', 'show', '1'],
      ['dead', 'show', 'nope', id],
    ]) {
      expect((await run([...words, '--json'])).code).toBe(2)
    }
  }, 60_000)

  it('redrives a canary and leaves the others dead when it fails again', async () => {
    const { run, start } = await filled()
    const worker = start(['work', 'b', '--', 'sh', '-c', 'exit 65'])
    const redriven = await run(['dead', 'redrive', 'b', '--text', 'no', '--canary', '1', '--yes', '--json'])
    expect([redriven.code, redriven.json()]).toEqual([1, [{ redriven: 1, failed: 1 }]])
    expect(redriven.stderr).toContain('1 of them failed again, so the others were left dead')
    worker.child.kill('SIGTERM')
    await worker.finished
    expect(deliveriesOf(await run(['dead', 'list', '--json']))).toEqual([2, 1, 1, 1])
  }, 60_000)

  it('redrives and discards what is meant, when it is confirmed', async () => {
    const { run } = await filled()
    const refused = await run(['dead', 'discard', 'b', '--json'])
    expect([refused.code, JSON.parse(refused.stderr).error.code]).toEqual([2, 'PW_FILTER_MISSING'])
    const unasked = await run(['dead', 'discard', 'b', '--all', '--json'])
    expect([unasked.code, JSON.parse(unasked.stderr).error.code]).toEqual([2, 'PW_UNCONFIRMED'])
    expect((await run(['dead', 'redrive', '--all', '-n', '--json'])).json()).toEqual([{ redriven: 3, dryRun: true }])
    expect((await run(['dead', 'redrive', 'b', '--text', 'no 2', '--yes', '--json'])).json()).toEqual([{ redriven: 1 }])
    expect((await run(['dead', 'discard', 'b', '--all', '--yes', '--json'])).json()).toEqual([{ discarded: 2 }])
    expect((await run(['status', 'b', '--json'])).json()[0]?.queues[0]).toMatchObject({ ready: 2, dead: 0 })
  }, 60_000)
})

describe('explain and version', () => {
  it('need no store and know every code', async () => {
    const { run } = room()
    const { stdout, code } = await run(['explain', 'PW_LEASE_LOST'])
    expect([code, stdout]).toEqual([0, expect.stringContaining(errorTable.PW_LEASE_LOST.cure)])
    expect((await run(['explain', 'pw_halted', '--json'])).json()).toEqual([
      { code: 'PW_HALTED', ...errorTable.PW_HALTED, retryable: false, exit: 4 },
    ])
    const unknown = await run(['explain', 'PW_LEASE_LOTS'])
    expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('Did you mean PW_LEASE_LOST?')])
    expect((await run(['version', '--json'])).json()[0]).toMatchObject({
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
    })
  }, 60_000)
})
