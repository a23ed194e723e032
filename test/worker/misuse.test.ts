// Handlers that misbehave: contained, reported as 'error', and no task or slot suffers.
import { spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import type { Delivery } from '../../dist/task/handler.js'
import { aborted, gate, next, openShop, several } from './shop.js'

type Settle = (value?: unknown) => void
type Then = (ok: Settle, fail: Settle) => void

/** Gives a value a then of its own. */
const withThen = (value: object, then: Then) => Object.defineProperty(value, 'then', { value: then })
const thenable = (then: Then) => withThen({}, then)

describe('what is left behind', () => {
  /** Runs a program with a worker on queue `q`, in a process of its own: a test runner has its eye on rejections. */
  function ran(handler: string, more: string) {
    const url = new URL('../../dist/index.js', import.meta.url).href
    const program = `
      const { connect } = await import(${JSON.stringify(url)})
      const pw = await connect('sqlite::memory:')
      const tasks = pw.queue('q')
      const worker = tasks.work(async (what) => { ${handler} })
      ${more}`
    const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program])
    return { status, said: stdout.toString().split('\n').filter(Boolean), stderr: stderr.toString() }
  }

  it('a rejection is reported, whenever it comes; its task is done and the process lives', () => {
    const handler = `
      if (what === 'at once') Promise.reject(new Error(what))
      if (what === 'in a turn') Promise.resolve().then(() => { throw new Error(what) })
      if (what === 'from a timer') setTimeout(() => Promise.reject(new Error(what)), 5)`
    const more = `
      const heard = new Set(['at once', 'in a turn', 'from a timer'])
      const all = new Promise((resolve) => worker.on('error', ({ code, message, cause }) => {
        console.log(code, cause.message, /delivery 1, left an error behind: /.test(message))
        heard.delete(cause.message)
        if (heard.size === 0) resolve()
      }))
      for (const what of [...heard]) await tasks.enqueue(what)
      await all
      await tasks.enqueue('good')
      await tasks.drained()
      await pw.close()
      console.log((await import('node:process')).exitCode)`
    expect(ran(handler, more)).toEqual({
      status: 0,
      said: [...['at once', 'in a turn', 'from a timer'].map((what) => `PW_STRAY_ERROR ${what} true`), 'undefined'],
      stderr: '',
    })
  })

  it('a rejection of the program itself ends it as ever, while a worker runs and even when that one reports', () => {
    const more = `
      worker.on('error', ({ cause }) => {
        console.log('heard', cause.message)
        Promise.reject(new Error('of the program'))
      })
      await tasks.enqueue(1)
      await new Promise((resolve) => setTimeout(resolve, 20_000))`
    const { status, said, stderr } = ran(`Promise.reject(new Error('of the handler'))`, more)
    expect([status, said]).toEqual([1, ['heard of the handler']])
    expect(stderr).toContain('Error: of the program')
  })

  it.each([
    [
      'throws',
      () => {
        throw new Error('in the listener')
      },
    ],
    [
      'rejects',
      async () => {
        throw new Error('in the listener')
      },
    ],
    [
      'is an object',
      {
        handleEvent() {
          throw new Error('in the listener')
        },
      },
    ],
  ])('a listener on the signal that %s is reported', async (_, listener) => {
    const shop = await openShop({ where: 'memory', policy: { timeoutMs: 30, leaseMs: 1000 } })
    const heard: string[] = []
    const worker = shop.work((_payload: unknown, { signal }: Delivery) => {
      const never = () => heard.push('never')
      signal.addEventListener('abort', never)
      signal.removeEventListener('abort', never)
      signal.addEventListener('abort', listener)
      signal.addEventListener('abort', () => heard.push('after it'), { once: true })
      return aborted(signal)
    })
    const error = next(worker, 'error')
    const [id] = await shop.enqueue(['x'])
    expect(await error).toMatchObject({
      code: 'PW_STRAY_ERROR',
      cause: { message: 'in the listener' },
      details: { id },
    })
    expect(heard).toEqual(['after it'])
  })
})

describe('thenables', () => {
  it('one that settles twice counts once; the second time is reported', async () => {
    const shop = await openShop({ where: 'memory' })
    const [id] = await shop.enqueue(['x'])
    const worker = shop.work(() =>
      thenable((ok, fail) => {
        ok()
        fail(new Error('second thought'))
        ok()
      }),
    )
    const errors = several(worker, 'error', 2)
    expect((await next(worker, 'done')).id).toBe(id)
    const [error] = await errors
    expect(error).toMatchObject({ code: 'PW_STRAY_ERROR', cause: { message: 'second thought' }, details: { id } })
    expect(await shop.count('deliveries')).toBe(1)
    expect(await shop.count('stale')).toBe(0)
  })

  it.each([
    [
      'whose then throws',
      () =>
        thenable(() => {
          throw new Error('broken then')
        }),
      'broken then',
    ],
    [
      'whose getter throws',
      () =>
        Object.defineProperty({}, 'then', {
          get() {
            throw new Error('broken getter')
          },
        }),
      'broken getter',
    ],
    ['that fulfils with a rejecting one', () => thenable((ok) => ok(Promise.reject(new Error('inner')))), 'inner'],
    [
      'that fulfils with a broken one',
      () =>
        thenable((ok) =>
          ok(
            thenable(() => {
              throw new Error('inner then')
            }),
          ),
        ),
      'inner then',
    ],
    [
      'that is a promise with a then of its own',
      () => withThen(Promise.resolve(), (_, fail) => fail(new Error('own then'))),
      'own then',
    ],
  ])('one %s is a retry', async (_name, make, message) => {
    const shop = await openShop({ where: 'memory', policy: { deliveriesMax: 1 } })
    await shop.enqueue(['x'])
    const worker = shop.work(make)
    expect((await next(worker, 'dead')).error.message).toBe(message)
  })

  it.each([
    ['that fulfils with another', () => thenable((ok) => ok(thenable((inner) => inner('x'))))],
    [
      'that is a function',
      () =>
        withThen(
          () => {},
          (ok) => ok(),
        ),
    ],
    ['of a subclass of Promise', () => new (class extends Promise<void> {})((ok) => ok())],
  ])('one %s is an ack', async (_name, make) => {
    const shop = await openShop({ where: 'memory' })
    await shop.enqueue(['x'])
    expect((await next(shop.work(make), 'done')).number).toBe(1)
  })
})

describe('a handler past its timeout', () => {
  const policy = { timeoutMs: 30, backoff: { baseMs: 3_600_000, jitter: 'none' as const } }

  it('that never settles: retried at its timeout, its slot is gone, the other slots work on', async () => {
    const shop = await openShop({ where: 'memory', policy })
    const [id] = await shop.enqueue(['hang'])
    let reason: unknown
    const worker = shop.work(
      (what: string, { signal }: Delivery) => {
        if (what !== 'hang') return
        signal.addEventListener('abort', () => {
          reason = signal.reason
        })
        return new Promise(() => {})
      },
      { concurrency: 2 },
    )
    const retry = await next(worker, 'retry')
    expect(retry).toMatchObject({ id, number: 1, error: { code: 'PW_TIMEOUT' } })
    expect(reason).toBe(retry.error)
    expect(await shop.history(id!)).toMatchObject([{ number: 1, outcome: 'timeout', code: 'PW_TIMEOUT' }])
    expect(await shop.task(id!)).toMatchObject({ state: 'scheduled', worker: null })
    expect(worker.health()).toMatchObject({ live: true, running: 1 })
    const done = several(worker, 'done', 20)
    await shop.enqueue(Array.from({ length: 20 }, () => 'quick'))
    await done
  })

  it("that rejects later with an error of its own is reported, with its signal's reason it is not", async () => {
    const shop = await openShop({ where: 'memory', policy })
    const late = gate()
    const [own] = await shop.enqueue(['own'])
    await shop.enqueue(['obedient', 'fetching', 'wrapped'])
    const errors: Error[] = []
    const worker = shop.work(async (what: string, { signal }: Delivery) => {
      const following = aborted(signal)
      if (what === 'obedient') await following
      await following.catch(() => {})
      if (what === 'fetching') throw new DOMException('stopped', 'AbortError')
      if (what === 'wrapped') throw new Error('query failed', { cause: signal.reason })
      await late.passed
      throw new Error('left behind')
    })
    worker.on('error', (error) => errors.push(error))
    await several(worker, 'retry', 4)
    const error = next(worker, 'error')
    late.open()
    expect(await error).toMatchObject({
      code: 'PW_STRAY_ERROR',
      cause: { message: 'left behind' },
      details: { id: own, number: 1 },
    })
    expect(errors).toHaveLength(1)
    expect(worker.health().running).toBe(0)
  })

  it('that returns after all is stale, and its slot is back', async () => {
    const shop = await openShop({ where: 'memory', policy })
    const late = gate()
    const [id] = await shop.enqueue(['x'])
    const worker = shop.work((what: string) => (what === 'x' ? late.passed : undefined), { concurrency: 1 })
    await next(worker, 'retry')
    const stale = next(worker, 'stale')
    late.open()
    expect(await stale).toMatchObject({ id, number: 1 })
    await shop.enqueue(['y'])
    expect((await next(worker, 'done')).number).toBe(1)
    expect(await shop.count('stale')).toBe(0)
  })

  it('in every slot: PW_HANDLER_HUNG, not live, nothing claimed until one returns', async () => {
    const shop = await openShop({ where: 'memory', policy })
    const late = gate()
    await shop.enqueue(['hang', 'hang'])
    const worker = shop.work((what: string) => (what === 'hang' ? late.passed : undefined), { concurrency: 2 })
    expect(await next(worker, 'error')).toMatchObject({ code: 'PW_HANDLER_HUNG', details: { concurrency: 2 } })
    expect(worker.health()).toMatchObject({ live: false, running: 2 })
    const [id] = await shop.enqueue(['waiting'])
    const { lastClaimAt } = worker.health()
    expect(await shop.task(id!)).toMatchObject({ state: 'ready', number: 0 })
    late.open()
    expect(await next(worker, 'done')).toMatchObject({ id })
    expect(worker.health()).toMatchObject({ live: true, running: 0 })
    expect(worker.health().lastClaimAt!.getTime()).toBeGreaterThanOrEqual(lastClaimAt!.getTime())
  })
})

describe('the rest of what a program can do wrong', () => {
  it('a type without a handler is a retry with our own error, not a crash', async () => {
    const shop = await openShop({ where: 'memory', policy: { deliveriesMax: 1 } })
    await shop.enqueue(['x'], { type: 'unknown' })
    const worker = shop.work({ known: () => {} }, { only: ['known', 'unknown'] })
    expect((await next(worker, 'dead')).error).toMatchObject({ code: 'PW_BUG' })
  })

  it('headers that another program broke are an error of this delivery', async () => {
    const shop = await openShop({ where: 'memory', policy: { deliveriesMax: 1 } })
    await shop.enqueue(['x'], { headers: '{"a":"b"}' })
    await shop.enqueue(['y'], { headers: '{"a":' })
    await shop.enqueue(['z'])
    const seen: unknown[] = []
    const worker = shop.work((_: string, delivery: Delivery) => seen.push(delivery.headers), { concurrency: 1 })
    const done = several(worker, 'done', 2)
    expect((await next(worker, 'dead')).error).toMatchObject({ code: 'PW_PAYLOAD_CORRUPT' })
    await done
    expect(seen).toEqual([{ a: 'b' }, {}])
  })

  it('a listener that throws in the middle of the work stops nothing', async () => {
    const shop = await openShop({ where: 'memory' })
    await shop.enqueue([1, 2, 3])
    const worker = shop.work(() => {})
    const errors = several(worker, 'error', 3)
    worker.on('done', () => {
      throw new Error('listener')
    })
    const done = several(worker, 'done', 3)
    await Promise.all([errors, done])
    expect(await shop.count('done')).toBe(3)
  })
})

it('options that cannot be are refused in our words, also those that no memory could hold', async () => {
  const { connect } = await import('piecework')
  const { newUrl } = await import('../client/store.js')
  const bad: Record<string, unknown[]> = {
    concurrency: ['10', Number.POSITIVE_INFINITY, 1e9, 0, -1, Number.NaN, 1.5, 10n, Symbol('x'), null, {}],
    prefetch: [Number.POSITIVE_INFINITY, 1e12, -1, '1', 10n],
    stopOn: [null, 1, {}, ['SIGKILL'], ['SIGSTOP'], ['SIGNOTHING'], ['sigterm'], [15]],
  }
  for (const url of ['sqlite::memory:', newUrl()]) {
    const pw = await connect(url)
    for (const [option, values] of Object.entries(bad)) {
      for (const value of values) {
        const worker = pw.queue('q').work(() => 1, { [option]: value as never })
        const refused = await worker.ready.then(
          () => 'ready',
          (error) => error.code,
        )
        expect([option, String(value), refused]).toEqual([option, String(value), 'PW_OPTION_INVALID'])
      }
    }
    await pw.close()
  }
})
