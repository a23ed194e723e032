// P11: effects in the caller's transaction together with the ack, or under an effect key in it, apply exactly once.
import { describe, expect, it } from 'vitest'
import { type Edit, withCopy } from '../planting/copy.js'
import { type Fall, keptIn, killEverywhere, makeTables, wrongIn } from './boundaries.js'
import type { Subject } from './eyes.js'
import { storeOf, subjects } from './stores.js'

const howsOf = ({ name }: Subject): Fall['how'][] => (name === 'SQLite' ? ['before'] : ['before', 'sent'])

/** Kills a program at every boundary of `act`; answers what is wrong afterwards. */
async function trial(subject: Subject, act: string, lib?: string): Promise<string | null> {
  const store = await storeOf(subject)
  await makeTables(store)
  const { died, boundaries, tasks } = await killEverywhere({ store, act, lib }, howsOf(subject))
  const kept = await keptIn(store)
  // A law that saw no death has seen nothing; one that killed nobody in the middle has no word on it.
  if (boundaries < 4 || died < boundaries * 0.8) return `VACUOUS: ${died} deaths at ${boundaries} boundaries`
  if (act === 'transaction' && kept.counter !== tasks.length) return `the counter is ${kept.counter} of ${tasks.length}`
  expect(await store.tasks()).toEqual([])
  for (const { shown, counted } of await store.proof()) expect(shown).toEqual(counted)
  return wrongIn(tasks, kept)
}

describe.each(subjects)('P11 on $name', (subject) => {
  it.each(['transaction', 'ack', 'once'])(
    '%s: killed at every boundary, each effect is there once',
    async (act) => {
      expect(await trial(subject, act)).toBe(null)
    },
    120_000,
  )
})

/** The ack in a commit of its own, after that of the effects. */
const apart = (text: string): Edit[] => [
  { file: 'queue/transactions.js', text, by: '' },
  { file: 'worker/transactions.js', text: 'run.ask = committed;', by: 'run.ask = null;' },
]
const planted: Record<string, { act: string; edits: Edit[] }[]> = {
  SQLite: [
    { act: 'transaction', edits: apart('acked(sync.ackSync(receipt, tx));') },
    { act: 'once', edits: [{ file: 'engines/sqlite/visit.js', text: '.changes > 0', by: '.changes >= 0' }] },
  ],
  PostgreSQL: [
    { act: 'transaction', edits: apart('acked(await later.ackWithin(receipt, tx));') },
    {
      act: 'once',
      edits: [{ file: 'engines/postgres/visit.js', text: 'values)).length > 0', by: 'values)).length >= 0' }],
    },
  ],
}

describe.each(subjects)('P11 on $name objects', (subject) => {
  it.each(planted[subject.name] ?? [])(
    'when $act is not one with the ack',
    async ({ act, edits }) => {
      await withCopy(edits, async (folder) => {
        expect(await trial(subject, act, new URL('index.js', folder).href)).toMatch(/there twice|the counter is/)
      })
    },
    120_000,
  )
})
