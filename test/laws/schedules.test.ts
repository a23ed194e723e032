// Field case 12: deploys set the same schedule while it fires, with kills: one task for each slot, none missing.
import { expect, it } from 'vitest'
import { type Process, passed, start, until } from './processes.js'
import { storeOf, subjects } from './stores.js'

const processes = 8
const kills = 24
const everyMs = 200

const slotOf = (headers: string | null) =>
  Date.parse((JSON.parse(headers ?? '{}') as Record<string, string>)['piecework-slot'] ?? '')

it.each(subjects)(
  'makes one task for each slot on $name, while 8 processes set it and are killed',
  async (subject) => {
    const store = await storeOf(subject)
    const name = 'heartbeat'
    const schedule = { everyMs, missed: 'all' }
    const begin = () => start('scheduler', { url: store.url, queue: 'work', name, schedule })
    const crew: Process[] = Array.from({ length: processes }, begin)
    await Promise.all(crew.map((one) => one.heard('set')))
    for (let kill = 0; kill < kills; kill++) {
      const at = kill % processes
      const victim = crew[at] as Process
      // In the middle of whatever it does: a sweep, a commit, the setting of the schedule.
      for (const one of crew) one.tell({ say: 'set' })
      await passed(60 + ((kill * 37) % 90))
      victim.kill('SIGKILL')
      await victim.exit
      crew[at] = begin()
    }
    await Promise.all(crew.map((one) => one.heard('set')))
    const from = (await store.tasks()).length
    await until('slots after the last kill', async () => (await store.tasks()).length >= from + 5)
    expect(crew.flatMap(({ lines }) => lines.filter(({ what }) => what === 'refused'))).toEqual([])
    for (const one of crew) one.tell({ say: 'stop' })
    await Promise.all(crew.map((one) => one.exit))

    const [record] = (await store.engine.select('schedule', { queue: 'work', name }, null)).items
    const slots = (await store.tasks()).map(({ headers }) => slotOf(headers)).sort((a, b) => a - b)
    const first = slots[0] as number
    console.log(`${slots.length} slots through ${kills} kills of ${processes} processes`)
    expect(slots).toEqual(slots.map((_, n) => first + n * everyMs))
    expect(slots.at(-1)).toBe(record?.lastAt)
    expect(slots.length).toBeGreaterThan(20)
  },
  180_000,
)
