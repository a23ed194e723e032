// The conformance suite needs no test runner of its own choosing, and it notices engines that break the contract.
import { engineSuite } from 'piecework/testing'
import { expect, it } from 'vitest'
import { type Planted, withPlanted } from '../model/planted.js'
import { type EngineFor, sqliteStore } from './subject.js'

/** Every test of the suite by its full name, collected instead of run. */
function testsOf(engineFor?: EngineFor): Map<string, () => Promise<void>> {
  const found = new Map<string, () => Promise<void>>()
  let chapter = ''
  const store = () => sqliteStore({ file: false, ...(engineFor ? { engineFor } : {}) })
  engineSuite(
    { persists: false, deaths: true, store },
    {
      describe(name, define) {
        chapter = name
        define()
      },
      it: (name, run) => void found.set(`${chapter}: ${name}`, run),
    },
  )
  return found
}

const wrong: (Planted & { finds: string })[] = [
  {
    bug: 'places are not looked at',
    file: 'statements.js',
    text: 'state = 3 order by place, id limit ?`;',
    by: 'state = 3 order by id limit ?`;',
    finds: 'claim: lets priority n overtake what was enqueued less than n head starts before it, and no more',
  },
  {
    bug: 'a lapsed receipt cannot be extended',
    file: 'settle.js',
    text: 'if (!row || row.worker === null)',
    by: 'if (!row || row.worker === null || row.state === 3)',
    finds: 'receipts: a receipt that lapsed by time: extend answers held',
  },
  {
    bug: 'a pause is forgotten',
    file: '../names.js',
    text: 'if (row && row.pausedAt === null)',
    by: 'if (row)',
    finds: 'claim: takes nothing from a paused queue or type, and says so',
  },
  {
    bug: 'a filter by key is ignored',
    file: 'select.js',
    text: 'if (filter.key !== undefined)',
    by: 'if (filter.key === filter)',
    finds: 'amend: selects by id, queue, type, key, batch and state',
  },
  {
    bug: 'a dedup key stays where its task was when somebody asks it to move',
    file: 'move.js',
    text: 'dedupFor(s, there, dedupKey, row.id);',
    by: '',
    finds: 'routes: when they end, what is still held in the other queue keeps its dedup key for both',
  },
  {
    bug: 'a route leads away from the dedup keys of the queue where it begins',
    file: 'enqueue.js',
    text: 'left: landing && queue.id',
    by: 'left: undefined',
    finds: 'routes: keep the dedup keys of what was moved, of what is still held, and of what has just ended',
  },
  {
    bug: 'a route that leads back is taken',
    file: '../names.js',
    text: 'return this.way(from).includes(to);',
    by: 'return this.way(from).includes(0);',
    finds: 'routes: may follow one another, and never in a circle',
  },
  {
    bug: 'a schedule that is set again begins anew',
    file: '../schedules.js',
    text: 'const lastAt = before?.lastAt ?? null;',
    by: 'const lastAt = null;',
    finds: 'schedules: set again go on where they were; another timing begins anew, and loses nothing that was due',
  },
]

it('has tests that are named once each', () => {
  const names = [...testsOf().keys()]
  expect(names.length).toBeGreaterThan(180)
  for (const { finds } of wrong) expect(names).toContain(finds)
})

it.each(wrong)('notices that $bug', async (planted) => {
  const failure = await withPlanted(planted, (engineFor) =>
    (testsOf(engineFor).get(planted.finds)?.() ?? Promise.resolve()).then(
      () => null,
      (error: Error) => error.name,
    ),
  )
  expect(failure).toBe('AssertionError')
})
