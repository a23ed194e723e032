// P9: the same dedup key gives the same id, to every process, and to one that died before it heard the first answer.
import { describe, expect, it } from 'vitest'
import { readLogs } from './evidence.js'
import { start } from './processes.js'
import { storeOf, subjects } from './stores.js'

const keys = Array.from({ length: 60 }, (_, n) => `order-${n}`)

describe.each(subjects)('P9 on $name', (subject) => {
  it('makes one task of each key that four producers ask for, two of which are killed and ask again', async () => {
    const store = await storeOf(subject)
    // Each in an order of its own, a few at a time.
    const roundsOf = (n: number) => {
      const turned = [...keys.slice(n * 15), ...keys.slice(0, n * 15)]
      const items = turned.map((dedupKey) => ({ payload: { do: 'quick' }, options: { dedupKey } }))
      return Array.from({ length: 20 }, (_, round) => items.slice(round * 3, round * 3 + 3))
    }
    const ordersOf = (n: number) => ({
      url: store.url,
      queue: 'orders',
      policy: {},
      rounds: roundsOf(n),
      log: `${store.folder}/producer-${n}.log`,
      waits: true,
    })
    const producers = keys.slice(0, 4).map((_, n) => start('producer', ordersOf(n)))
    await Promise.all(producers.map((producer) => producer.heard('ready')))
    for (const producer of producers) producer.tell({ say: 'go' })
    const [first, second, ...others] = producers
    for (const victim of [first, second]) {
      await victim?.heard('asked', 10)
      victim?.kill('SIGKILL')
      await victim?.exit
    }
    const again = [0, 1].map((n) => start('producer', { ...ordersOf(n), waits: false }))
    await Promise.all([...again, ...others].map((producer) => producer.heard('finished')))

    const answers = readLogs(store.folder).filter(({ what }) => what === 'accepted')
    const tasks = await store.tasks()
    expect(tasks).toHaveLength(keys.length)
    const byKey = new Map(tasks.map((task) => [task.dedupKey, task.id]))
    for (const { id, item } of answers) expect(id).toBe(byKey.get(item?.options.dedupKey ?? ''))
    // Of all answers for a key at most one says that it made the task: the one that did may have been lost.
    for (const key of keys) {
      const made = answers.filter(({ item, duplicate }) => item?.options.dedupKey === key && !duplicate)
      expect(made.length).toBeLessThanOrEqual(1)
    }
    expect(answers.length).toBeGreaterThanOrEqual(4 * keys.length)
    expect(answers.filter(({ duplicate }) => duplicate).length).toBeGreaterThanOrEqual(3 * keys.length)
  })
})
