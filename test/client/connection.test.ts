// The life of a connection: what connect() takes and refuses, refusals that nobody hears too early, and close().
import { existsSync, mkdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import * as piecework from 'piecework'
import { connect, PieceworkError, type } from 'piecework'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { latch, newUrl, openStore, refusalOf } from './store.js'

const fileOf = (url: string) => url.slice('sqlite:'.length)

describe('connect', () => {
  it('takes a URL, an object, PIECEWORK_URL, or nothing at all', async () => {
    const [first, second, third] = [newUrl(), newUrl(), newUrl()]
    for (const pw of [await connect(first, {}), await connect({ url: second, durability: 'full' })]) await pw.close()
    vi.stubEnv('PIECEWORK_URL', third)
    onTestFinished(() => void vi.unstubAllEnvs())
    await (await connect()).close()
    vi.stubEnv('PIECEWORK_URL', '')
    const folder = dirname(fileOf(newUrl()))
    const cwd = vi.spyOn(process, 'cwd').mockReturnValue(folder)
    onTestFinished(() => cwd.mockRestore())
    await (await connect({ policy: 'strict' })).close()
    cwd.mockRestore()
    expect([first, second, third].map(fileOf).map((file) => existsSync(file))).toEqual([true, true, true])
    expect(existsSync(`${folder}/piecework.db`)).toBe(true)
  })

  it.each([
    [['postgress://x'], 'PW_ENGINE_UNKNOWN'],
    [['work.db'], 'PW_ENGINE_UNKNOWN'],
    [['sqlite:'], 'PW_ENGINE_UNKNOWN'],
    [['sqlite://work.db'], 'PW_ENGINE_UNKNOWN'],
    [['sqlite::memory:?cache=shared'], 'PW_ENGINE_UNKNOWN'],
    [[7], 'PW_OPTION_INVALID'],
    [[{ url: 7 }], 'PW_OPTION_INVALID'],
    [[{ urll: 'sqlite::memory:' }], 'PW_OPTION_UNKNOWN'],
    [['sqlite::memory:', { durabilty: 'full' }], 'PW_OPTION_UNKNOWN'],
    [['sqlite::memory:', { durability: 'none' }], 'PW_OPTION_INVALID'],
    [['sqlite::memory:', { policy: 'lax' }], 'PW_OPTION_INVALID'],
    [['sqlite::memory:', { url: 'sqlite::memory:' }], 'PW_OPTION_INVALID'],
    [[{ url: 'sqlite::memory:' }, {}], 'PW_OPTION_INVALID'],
    [[{ database: {} }], 'PW_OPTION_UNKNOWN'],
  ])('connect(...%j) is refused with %s', async (given, code) => {
    expect(await refusalOf((connect as (...args: unknown[]) => Promise<unknown>)(...given))).toMatchObject({ code })
  })

  it('refuses a folder and a file of somebody else, leaving them alone', async () => {
    const url = newUrl()
    mkdirSync(fileOf(url))
    expect(await refusalOf(connect(url))).toMatchObject({ code: 'PW_NOT_OURS' })
    expect(await refusalOf(connect(`sqlite:${import.meta.filename}`))).toMatchObject({ code: 'PW_NOT_OURS' })
  })

  it('is one of few exports, and require() gives the same', () => {
    const names = ['Bury', 'Overloaded', 'PieceworkError', 'Release', 'Retry', 'connect', 'type']
    expect(Object.keys(piecework).sort()).toEqual(names)
    const required = createRequire(import.meta.url)('piecework') as typeof piecework
    expect(
      Object.keys(required)
        .filter((name) => name !== 'module.exports')
        .sort(),
    ).toEqual(expect.arrayContaining(names))
    expect(type<number>()['~standard'].validate(3)).toEqual({ value: 3 })
  })
})

describe('a connection', () => {
  it('lets refusals of queue() and work() wait until somebody asks, and none goes astray', async () => {
    const stray: unknown[] = []
    const listen = (reason: unknown) => stray.push(reason)
    process.on('unhandledRejection', listen)
    onTestFinished(() => void process.off('unhandledRejection', listen))
    const { pw } = await openStore({ url: 'sqlite::memory:' })
    const queue = pw.queue('\0')
    const worker = queue.work(() => {}).on('error', () => {})
    const { id } = await pw.queue('fine').enqueue(1)
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
    expect(await refusalOf(worker.ready)).toMatchObject({ code: 'PW_NAME_INVALID' })
    expect(await refusalOf(pw.ready)).toMatchObject({ code: 'PW_NAME_INVALID' })
    expect(await refusalOf(queue.enqueue(1))).toMatchObject({ code: 'PW_NAME_INVALID' })
    expect(await pw.queue('fine').get(id)).toMatchObject({ state: 'ready' })
    await worker.stop()
    expect(stray).toEqual([])
  })

  it('after close() refuses every call, and can be closed again', async () => {
    const { pw } = await openStore()
    const mail = pw.queue('mail')
    const batch = pw.batch('b')
    await Promise.all([pw.close(), pw.close()])
    await pw.close()
    const calls = [
      () => mail.enqueue(1),
      () => mail.enqueueMany([1]),
      () => mail.drained(),
      () => mail.stats(),
      () => mail.get('1'),
      () => mail.list(),
      () => mail.cancel('1'),
      () => mail.pause(),
      () => mail.configure({ leaseMs: 1000 }),
      () => mail.dead.list(),
      () => mail.dead.redrive({ all: true }),
      () => batch.seal(),
      () => batch.done(),
      () => mail.work(() => {}).on('error', () => {}).ready,
      () => pw.queue('new', { leaseMs: 1000 }).enqueue(1),
      () => pw.ready,
    ]
    for (const call of calls) expect(await refusalOf(call())).toMatchObject({ code: 'PW_CLOSED' })
  })

  it('close() keeps what was enqueued before it, without waiting for the answers', async () => {
    const url = newUrl()
    const { pw } = await openStore({ url })
    const mail = pw.queue('mail')
    const answers = Promise.all(Array.from({ length: 1500 }, (_, n) => mail.enqueue(n)))
    await pw.close()
    expect(await answers).toHaveLength(1500)
    const again = await openStore({ url })
    expect((await again.pw.queue('mail').stats()).ready).toBe(1500)
  })

  it('close() keeps also what waits for the policy of its queue or for what follows its batch', async () => {
    const url = newUrl()
    const { pw } = await openStore({ url })
    const mail = pw.queue('mail', { leaseMs: 1000 })
    pw.batch('b', { onDone: pw.queue('report', { leaseMs: 2000 }).draft(0) })
    const answers = Promise.all([mail.enqueue(1), mail.enqueue(2, { batch: 'b' })])
    await pw.close()
    expect(await answers).toHaveLength(2)
    const again = await openStore({ url })
    expect(await again.pw.queue('mail').stats()).toMatchObject({ ready: 2 })
  })

  it('close() stops its workers gracefully first: what runs may end, what has not started goes back', async () => {
    const url = newUrl()
    const { pw } = await openStore({ url })
    const mail = pw.queue('mail')
    await mail.enqueueMany([1, 2, 3])
    const [gate, begun] = [latch(), latch()]
    mail.work(
      async () => {
        begun.hit()
        await gate.reached
      },
      { concurrency: 1, prefetch: 2 },
    )
    await begun.reached
    const closing = pw.close()
    gate.hit()
    await closing
    const again = await openStore({ url })
    expect(await again.pw.queue('mail').stats()).toMatchObject({ done: 1, ready: 2, leased: 0, workers: 0 })
  })

  it('ends with its block', async () => {
    const url = newUrl()
    let mail: ReturnType<typeof kept> | undefined
    const kept = (pw: Awaited<ReturnType<typeof connect>>) => pw.queue('mail')
    {
      await using pw = await connect(url)
      mail = kept(pw)
      await mail.enqueue(1)
    }
    expect(await refusalOf(mail.stats())).toBeInstanceOf(PieceworkError)
  })

  it('accepted tasks stay when a caller of the same turn is refused (case 2)', async () => {
    const url = newUrl()
    const [one, two] = [await openStore({ url }), await openStore({ url })]
    await one.pw.batch('sealed').seal()
    const outcomes = await Promise.allSettled(
      Array.from({ length: 400 }, (_, n) => {
        const { pw } = n % 2 ? one : two
        return pw.queue('mail').enqueue(n, n % 5 === 0 ? { batch: 'sealed' } : {})
      }),
    )
    const accepted = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value.id] : []))
    expect(accepted).toHaveLength(320)
    for (const id of accepted) expect(await two.pw.queue('mail').get(id)).toMatchObject({ state: 'ready' })
    expect((await one.pw.queue('mail').stats()).enqueued).toBe(320)
  })
})
