// P2: a task that is enqueued in the caller's own transaction is there if and only if that commits.
import { describe, expect, it } from 'vitest'
import { type Edit, withCopy } from '../planting/copy.js'
import { type Fall, keptIn, killEverywhere, makeTables } from './boundaries.js'
import type { Subject } from './eyes.js'
import { storeOf, subjects } from './stores.js'

const howsOf = ({ name }: Subject): Fall['how'][] => (name === 'SQLite' ? ['before'] : ['before', 'sent'])

/** Kills a producer at every boundary of a transaction; answers what is wrong afterwards. */
async function trial(subject: Subject, lib?: string): Promise<string | null> {
  const store = await storeOf(subject)
  await makeTables(store)
  const { died, boundaries } = await killEverywhere({ store, act: 'produce', lib }, howsOf(subject), { rounds: 1 })
  if (boundaries < 5 || died < boundaries * 0.8) return `VACUOUS: ${died} deaths at ${boundaries} boundaries`
  const { effects } = await keptIn(store)
  const tasks = (await store.tasks()).map(({ payload }) => String(JSON.parse(payload))).sort()
  for (const { shown, counted } of await store.proof()) expect(shown).toEqual(counted)
  const alone = effects.filter((id) => !tasks.includes(id)).length
  const orphaned = tasks.filter((id) => !effects.includes(id)).length
  const twice = tasks.length - new Set(tasks).size
  return alone + orphaned + twice === 0 ? null : `${alone} rows without task, ${orphaned} without row, ${twice} twice`
}

const planted: Record<string, Edit> = {
  SQLite: {
    file: 'engines/sqlite/session.js',
    text: 'this.q.savepoint.run();',
    by: "this.db.exec('commit; begin immediate'); this.q.savepoint.run();",
  },
  PostgreSQL: {
    file: 'engines/postgres/engine.js',
    text: 'return this.use().visits.enqueue(tasks, tx);',
    by: 'tx = undefined;',
  },
}

describe.each(subjects)('P2 on $name', (subject) => {
  it('holds for a producer that is killed at every boundary', async () => {
    expect(await trial(subject)).toBe(null)
  }, 120_000)

  it('objects when the task is committed on its own', async () => {
    await withCopy([planted[subject.name] as Edit], async (folder) => {
      expect(await trial(subject, new URL('index.js', folder).href)).toMatch(/without/)
    })
  }, 120_000)
})
