// The small worlds that are walked to their ends: what is enqueued, what a task may go through, which events happen.
import type { NewTask, ReleasedBy } from '../../dist/engine/contract.js'
import type { LifeEvent } from '../../dist/task/lifecycle.js'
import type { Rules } from '../model/model.js'

/** Everything that takes time takes this long, so that one step of the clock is enough to see it over. */
export const unitMs = 1000

export interface World {
  name: string
  rules: Pick<Rules, 'deliveriesMax' | 'releasesMax' | 'onDead'> & { deadTo?: 'other' }
  /** What a task may be enqueued as. */
  offers: readonly Omit<NewTask, 'queue' | 'payload'>[]
  releases: readonly { by: ReleasedBy; delayMs?: number }[]
  workers: 1 | 2
  /** Events that are left to other worlds; every one of the table happens in some. */
  without: readonly LifeEvent[]
}

const later = { delayMs: unitMs }
const plain = { deliveriesMax: 2, releasesMax: 0, onDead: 'continue' as const }
const releases = [{ by: 'unstarted' as const }, { by: 'counted' as const }]
const acts = ['cancel', 'purge', 'edit', 'discard'] as const

const again = {
  ...{ rules: plain, releases: [{ by: 'unstarted' as const }], workers: 1 as const },
  without: ['deadline', 'move', 'extend', 'die', 'bury', 'redrive', ...acts] as const,
}

export const worlds: readonly World[] = [
  {
    name: 'leases, deaths and dead letters',
    ...{ rules: plain, releases, workers: 2, offers: [{}, later] },
    without: ['deadline', 'move', 'promote'],
  },
  {
    name: 'one key',
    ...{ rules: plain, releases, workers: 2, offers: [{ key: 'k' }, { key: 'k', ...later }] },
    without: ['deadline', 'move'],
  },
  {
    name: 'one key that a dead task holds',
    ...{ rules: { ...plain, onDead: 'hold' }, releases, workers: 2, offers: [{ key: 'k' }, { key: 'k', ...later }] },
    without: ['deadline', 'move'],
  },
  {
    name: 'releases',
    rules: { deliveriesMax: 1, releasesMax: 1, onDead: 'continue' },
    releases: [...releases, { by: 'handler' }, { by: 'handler', delayMs: unitMs }],
    ...{ workers: 1, offers: [{}], without: ['deadline', 'move', 'promote', ...acts] },
  },
  {
    name: 'deadlines',
    ...{ rules: { ...plain, deliveriesMax: 1 }, releases: [{ by: 'unstarted' }], workers: 1 },
    offers: [
      { deadlineMs: unitMs, key: 'k' },
      { deadlineMs: unitMs, delayMs: 2 * unitMs },
      { deadlineMs: unitMs, onDeadline: 'drop' },
    ],
    without: ['move', 'extend', 'die', 'bury', 'edit', 'purge', 'discard', 'cancel'],
  },
  {
    name: 'another queue',
    ...{ rules: { ...plain, deliveriesMax: 1 }, releases: [{ by: 'unstarted' }], workers: 1 },
    offers: [{ key: 'k' }, later],
    without: ['deadline', 'extend', 'die', 'bury', 'edit', 'purge', 'cancel'],
  },
  {
    name: 'duplicates of one key',
    ...again,
    // One without a dedup key, for the others to wait behind.
    offers: [{ key: 'k' }, ...[{}, { delayMs: 0 }, later].map((due) => ({ dedupKey: 'd', key: 'k', ...due }))],
  },
  {
    name: 'duplicates without a key',
    ...{ ...again, offers: [{}, { delayMs: 0 }, later].map((due) => ({ dedupKey: 'd', ...due })) },
  },
  {
    name: 'a queue that takes the dead',
    ...{ rules: { ...plain, deliveriesMax: 1, deadTo: 'other' }, releases: [], workers: 1 },
    offers: [{}, { key: 'k' }],
    without: ['deadline', 'move', 'extend', 'die', 'bury', 'due', 'expire', 'redrive', ...acts],
  },
  {
    name: 'suspects',
    rules: { deliveriesMax: 3, releasesMax: 0, onDead: 'continue' },
    ...{ releases: [{ by: 'unstarted' }], workers: 1, offers: [{}] },
    without: ['deadline', 'move', 'promote', 'retry', 'bury', 'extend', 'due', 'expire', 'redrive', ...acts],
  },
]
