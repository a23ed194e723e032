// The lesson on effects, as it checks itself: eight workers, kills among them, and what each protection leaves.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { keptIn, makeTables, wrongIn } from './boundaries.js'
import { start, until } from './processes.js'
import { storeOf, subjects } from './stores.js'

const tasks = 120
const workers = 8

describe.each(subjects)('on $name', (subject) => {
  it('eight workers append to a table and count, three are killed: no row twice, none missing', async () => {
    const store = await storeOf(subject)
    await makeTables(store)
    const added = await store.engine.enqueue(
      null,
      Array.from({ length: tasks }, () => ({ queue: 'effects', payload: '1' })),
    )
    const run = () => start('effects', { url: store.url, act: 'transaction' })
    const all = Array.from({ length: workers }, run)
    let killed = 0
    for (const one of all.slice(0, 3)) {
      const before = (await keptIn(store)).effects.length
      await until('progress', async () => (await keptIn(store)).effects.length > before)
      one.kill('SIGKILL')
      if ((await one.exit).signal === 'SIGKILL') killed++
    }
    await Promise.all([run(), ...all.slice(3)].map((one) => one.heard('over')))
    const kept = await keptIn(store)
    expect(killed).toBeGreaterThan(0)
    expect(
      wrongIn(
        added.map(({ id }) => id),
        kept,
      ),
    ).toBe(null)
    expect([kept.effects.length, kept.counter]).toEqual([tasks, tasks])
    expect(await store.tasks()).toEqual([])
  }, 120_000)
})

/** Charges once for each key that it is told, and each time when it is told none. */
async function provider(): Promise<{ url: string; charges: string[] }> {
  const charges: string[] = []
  const seen = new Set<string>()
  const server = createServer((request, response) => {
    let id = ''
    request.on('data', (text) => {
      id += text
    })
    request.on('end', () => {
      const key = request.headers['idempotency-key']
      if (key === undefined || !seen.has(String(key))) charges.push(id)
      if (key !== undefined) seen.add(String(key))
      response.end('charged')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, charges }
}

it.each([
  ['charge', 1],
  ['charge blindly', 2],
])(
  'a provider, killed between %s and the ack: charged %i times',
  async (act, times) => {
    const [subject] = subjects
    const store = await storeOf(subject as NonNullable<typeof subject>)
    await makeTables(store)
    const { url, charges } = await provider()
    const orders = { url: store.url, act, provider: url }
    const [task] = await store.engine.enqueue(null, [{ queue: 'effects', payload: '1' }])
    // The boundary behind the charge is the only one: the effect is there, the ack is not.
    const first = start('effects', { ...orders, fall: { how: 'before', at: 1 }, only: 'end' })
    expect((await first.exit).signal).toBe('SIGKILL')
    await start('effects', orders).heard('over')
    expect(charges).toEqual(Array.from({ length: times }, () => task?.id))
    expect(await store.tasks()).toEqual([])
  },
  60_000,
)
