// Law P10: of one key at most `width` tasks hold a slot, and slots go to those that were due first.
import type { Row } from '../../events.js'
import type { Law } from '../law.js'

export const keys: Law = {
  name: 'keys',
  promise: 'per key at most width tasks are ready or leased, and they start in the order in which they were due',
  watch({ width }, looked) {
    /** Tasks that the running call has promoted; it may promote several in any order. */
    let promoted: Row[] = []
    return {
      *change({ before, after, life, what }, world) {
        const { key } = life.as
        if (key === null || after?.state !== 'ready' || life.slot) return
        looked()
        const holding = [...world.lives.values()].filter(
          ({ row, slot, id }) => slot && row?.key === key && row.queue === after.queue && id !== life.id,
        )
        if (holding.length >= width) yield `task ${life.id} is ready beside ${holding.length} others of key ${key}`
        if (what.step === 'promote' && before) promoted.push(before)
      },
      *see(event, world) {
        if (event.is === 'change') return
        for (const row of promoted) {
          const passed = [...world.rows('waiting', row.queue)].find(
            (other) => other.key === row.key && earlier(other, row),
          )
          if (passed) yield `task ${row.id} went before ${passed.id} of its key ${row.key}`
        }
        promoted = []
      },
    }
  },
}

const earlier = (a: Row, b: Row) => a.dueAt < b.dueAt || (a.dueAt === b.dueAt && Number(a.id) < Number(b.id))
