// The walk bites: each bug planted into a copy of the engine makes it stop in the world where the bug shows.
import { describe, expect, it } from 'vitest'
import type { EngineFor } from '../engine/subject.js'
import { type Edit, withCopy } from '../planting/copy.js'
import { walk } from './walk.js'
import { type World, worlds } from './worlds.js'

interface Planted {
  bug: string
  world: string
  edit: Edit
}

const engines = (file: string, text: string, by: string): Edit => ({ file: `engines/${file}`, text, by })

const planted: Planted[] = [
  {
    bug: "a delayed task keeps its key's slot",
    world: 'duplicates of one key',
    edit: engines('duplicate.js', 'wakeAt, slot: 0, place:', 'wakeAt, place:'),
  },
  {
    bug: 'a task that is put off is counted where it was',
    world: 'duplicates without a key',
    edit: engines('duplicate.js', 'to = state;', ''),
  },
  {
    bug: 'a task that was taken over dead keeps what it has spent',
    world: 'a queue that takes the dead',
    edit: engines('endings.js', 'spent: 0,\n            releases', 'releases'),
  },
  {
    bug: 'an extension takes back what a death has ended',
    world: 'leases, deaths and dead letters',
    edit: engines('sqlite/settle.js', 'if (!row || row.worker === null)', 'if (!row)'),
  },
  {
    bug: 'a late ack is refused',
    world: 'leases, deaths and dead letters',
    edit: engines(
      'sqlite/statements.js',
      'claimedAt from piecework_task\n    where id = ? and fence = ? and nonce = ?`',
      'claimedAt from piecework_task\n    where id = ? and fence = ? and nonce = ? and state = 4`',
    ),
  },
  {
    bug: 'deliveriesMax is off by one',
    world: 'leases, deaths and dead letters',
    edit: engines('endings.js', 'row.spent >= deliveriesMax', 'row.spent > deliveriesMax'),
  },
  {
    bug: 'a cancel is forgotten when the lease ends',
    world: 'leases, deaths and dead letters',
    edit: engines(
      'endings.js',
      'if (row.flags & cancelAsked)\n        return cancelled(s, event, row);\n    if (exhausted',
      'if (exhausted',
    ),
  },
  {
    bug: 'a redriven task keeps what it has spent',
    world: 'leases, deaths and dead letters',
    edit: engines('acts.js', 'dueAt, spent: 0, releases: 0,', 'dueAt, releases: 0,'),
  },
  {
    bug: 'the engine has another table',
    world: 'leases, deaths and dead letters',
    edit: {
      file: 'task/lifecycle.js',
      text: "expire: { from: ['leased'], to: ['ready', 'dead', null]",
      by: "expire: { from: ['leased'], to: ['ready', null]",
    },
  },
  {
    bug: "a key's width is ignored",
    world: 'one key',
    edit: engines('sqlite/session.js', 'const { width } = this.catalog.policyOf(queue).perKey;', 'const width = 1000;'),
  },
  {
    bug: 'a dead task lets go of its key',
    world: 'one key that a dead task holds',
    edit: engines('endings.js', 'const hold = row.key !== null &&', 'const hold = row.key === 0 &&'),
  },
  {
    bug: 'releasesMax is ignored',
    world: 'releases',
    edit: engines('endings.js', 'if (byHandler && row.releases >=', 'if (byHandler && -1 >='),
  },
  {
    bug: 'what is to be dropped at its deadline becomes a dead letter',
    world: 'deadlines',
    edit: engines('endings.js', 'if (row.flags & dropsAtDeadline)', 'if (row.flags < 0)'),
  },
  {
    bug: 'a moved task takes its slot along',
    world: 'another queue',
    edit: engines('acts.js', 'dedupKey, slot: 0, nonce: null', 'dedupKey, nonce: null'),
  },
  {
    bug: 'a suspect is handed out with others',
    world: 'suspects',
    edit: engines('sqlite/claim.js', 'return Math.max(1, ahead);', 'return max;'),
  },
]

describe('a planted bug stops the walk', () => {
  it.each(planted)('$bug: $world', { timeout: 120_000 }, async ({ world, edit }) => {
    const where = worlds.find(({ name }) => name === world) as World
    const walked = withCopy([edit], async (folder) => {
      const copy = (await import(/* @vite-ignore */ new URL('engines/open.js', folder).href)) as {
        engineFor: EngineFor
      }
      return walk(where, copy.engineFor)
    })
    await expect(walked).rejects.toThrow(`${world}, after `)
  })

  it('and every world has one', () => {
    expect(new Set(planted.map(({ world }) => world))).toEqual(new Set(worlds.map(({ name }) => name)))
  })
})
