// P7: never more than deliveriesMax spent deliveries, then dead; a crash counts, and each leaves a row that says so.
import { connect, type Queue } from 'piecework'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Store } from './eyes.js'
import { type Process, start, until } from './processes.js'
import { storeOf, subjects } from './stores.js'

interface Work {
  do: string
  ms?: number
  times?: number
}
const policy = { leaseMs: 30_000, deliveriesMax: 5 }

async function open(store: Store): Promise<Queue<Work>> {
  const pw = await connect(store.url)
  onTestFinished(() => pw.close())
  return pw.queue<Work>('work', policy)
}

/** Keeps so many worker processes running: who dies is replaced at once, as a supervisor does. Answers the deaths. */
function crew(store: Store, size: number, options: object = {}): { deaths: () => number } {
  let deaths = 0
  let over = false
  onTestFinished(() => {
    over = true
  })
  const keep = async () => {
    while (!over) {
      const process: Process = start('worker', { url: store.url, queue: 'work', policy, options })
      const { signal, code } = await process.exit
      if (over) return
      if (signal !== 'SIGKILL') throw new Error(`A worker ended with ${signal ?? code}: ${process.stderr}`)
      deaths++
    }
  }
  for (let n = 0; n < size; n++) void keep()
  return { deaths: () => deaths }
}

describe.each(subjects)('P7 on $name', (subject) => {
  it('is done at delivery 3 when its worker was killed twice (case 3)', async () => {
    const store = await storeOf(subject)
    const tasks = await open(store)
    const { id } = await tasks.enqueue({ do: 'die', times: 2 })
    const { deaths } = crew(store, 1)
    expect(await tasks.drained({ waitMs: 25_000 })).toEqual({ dead: 0 })
    expect(deaths()).toBe(2)
    const entries = store.chronicle([id])
    expect(entries.filter(({ event }) => event === 'note').map(({ outcome }) => outcome)).toEqual(['died', 'died'])
    expect(entries.at(-1)).toMatchObject({ event: 'leave', number: 3, spent: 3 })
  })

  it('is dead at the last delivery when kills are all it brings, and its neighbours are done (suspects)', async () => {
    const store = await storeOf(subject)
    const tasks = await open(store)
    const neighbours = Array.from({ length: 20 }, () => ({ do: 'slow', ms: 150 }))
    const works = [...neighbours.slice(0, 5), { do: 'die', ms: 60 }, ...neighbours.slice(5)]
    const ids = (await Promise.all(works.map((work) => tasks.enqueue(work)))).map(({ id }) => id)
    const culprit = ids.splice(5, 1)[0] ?? ''
    crew(store, 2)
    expect(await tasks.drained({ waitMs: 50_000 })).toEqual({ dead: 1 })

    const letter = await tasks.dead.get(culprit)
    expect(letter).toMatchObject({ reason: 'spent', code: 'PW_LEASE_LOST', deliveries: 5 })
    expect(letter?.history.map(({ number, outcome }) => [number, outcome])).toEqual(
      [1, 2, 3, 4, 5].map((number) => [number, 'died']),
    )
    for (const row of letter?.history ?? []) expect(row.error).toContain('worker that held the task died')
    // Each row names the worker that was lost, and no two lost it together.
    expect(new Set(letter?.history.map(({ worker }) => worker)).size).toBe(5)

    const chronicle = store.chronicle(ids)
    const lost = ids.map((id) => chronicle.filter(({ task, outcome }) => task === id && outcome === 'died').length)
    const done = ids.filter((id) => chronicle.findLast(({ task }) => task === id)?.event === 'leave')
    expect(done).toHaveLength(20)
    expect(Math.max(...lost)).toBeLessThanOrEqual(2)
    // Neighbours that never shared a process with the culprit would prove nothing.
    expect(Math.max(...lost)).toBeGreaterThan(0)
  }, 60_000)

  it('counts throws and deaths in one budget, and no delivery that a stop gave back', async () => {
    const store = await storeOf(subject)
    const tasks = await open(store)
    const { id } = await tasks.enqueue({ do: 'wait' })
    for (let stops = 0; stops < 2; stops++) {
      const process = start('worker', { url: store.url, queue: 'work', policy, options: { graceMs: 0 } })
      await process.heard('started')
      process.kill('SIGTERM')
      expect(await process.exit).toMatchObject({ code: 0 })
      expect(await store.task(id)).toMatchObject({ state: 'ready', spent: 0, number: stops + 1, deaths: 0 })
    }
    expect(await store.history(id)).toEqual([])
    const process = start('worker', { url: store.url, queue: 'work', policy })
    await process.heard('started')
    process.kill('SIGKILL')
    await until('the death to be on record', async () => (await store.task(id))?.deaths === 1)
    expect(await store.task(id)).toMatchObject({ state: 'ready', spent: 1, number: 3 })
  })
})
