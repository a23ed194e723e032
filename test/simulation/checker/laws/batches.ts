// Laws of batches: when one is finished, what follows it, what its counters show, and that all come to their end.
import type { BatchRow, SimEvent } from '../../events.js'
import type { BatchLife } from '../batches.js'
import type { Law, Watcher } from '../law.js'
import type { Change, World } from '../world.js'

/** What one commit did, as far as batches are concerned. */
interface Commit {
  commit: number
  /** Batches that it finished. */
  finished: Set<string>
  /** What it enqueued to follow a batch. */
  followers: Change[]
}

/** Calls `ended` after each commit that touched a batch or a task of one: the world is as that left it. */
function commits(ended: (commit: Commit, world: World) => Iterable<string>): Watcher & { of(commit: number): Commit } {
  let open: Commit | null = null
  const of = (commit: number) => {
    open ??= { commit, finished: new Set(), followers: [] }
    return open
  }
  const close = function* (world: World) {
    const over = open
    open = null
    if (over) yield* ended(over, world)
  }
  return {
    of,
    change(change) {
      const { commit, before, after, life } = change
      const follows = life.follows !== null
      if (!follows && (before ?? after)?.batch == null) return []
      const { followers } = of(commit)
      if (follows && before === null) followers.push(change)
      return []
    },
    *see(event, world) {
      if (open !== null && !belongs(event, open.commit)) yield* close(world)
      if (event.is !== 'batch') return
      const { finished } = of(event.commit)
      if (event.after.finishedAt !== null && event.before?.finishedAt == null) finished.add(event.after.name)
    },
    end: close,
  }
}

const belongs = (event: SimEvent, commit: number) =>
  (event.is === 'change' || event.is === 'batch' || event.is === 'ran') && event.commit === commit

export const batchEnds: Law = {
  name: 'batch ends',
  promise:
    'a batch finishes once, in the commit that leaves it sealed with nothing of it open; a sealed one takes none',
  watch(_plan, looked) {
    const watcher = commits(function* ({ commit, finished }, world) {
      for (const life of world.batches.all) {
        const open = world.batches.open(life)
        const over = life.row?.sealed === true && open === 0
        const told = `batch ${life.name}, ${life.row?.sealed ? '' : 'not '}sealed with ${open} open`
        if (over && life.row?.finishedAt === null) yield `${told}, is not finished by commit ${commit}`
        if (!finished.has(life.name)) continue
        looked()
        if (!over) yield `${told}, is finished by commit ${commit}`
      }
    })
    return {
      ...watcher,
      *change(change, world) {
        yield* watcher.change?.(change, world) ?? []
        const { before, after, life } = change
        if (before !== null || after?.batch == null || life.follows !== null) return
        if (world.batches.get(after.batch).row?.sealed)
          yield `task ${life.id} joined batch ${after.batch} after its seal`
      },
      *see(event, world) {
        yield* watcher.see?.(event, world) ?? []
        if (event.is === 'batch') yield* forward(event.before, event.after)
      },
    }
  },
}

function* forward(before: BatchRow | null, { name, sealed, finishedAt }: BatchRow): Iterable<string> {
  if (before?.sealed && !sealed) yield `batch ${name} lost its seal`
  if (before?.finishedAt != null && finishedAt !== before.finishedAt) yield `batch ${name} was finished a second time`
}

export const followUps: Law = {
  name: 'follow-up',
  promise: 'what was said last to follow a batch is enqueued exactly once, in the commit that marks it finished',
  watch(_plan, looked) {
    const watcher = commits(function* ({ commit, finished, followers }, world) {
      for (const { life } of followers) {
        if (!finished.has(life.follows ?? ''))
          yield `task ${life.id} follows ${life.follows} in commit ${commit}, not its last`
      }
      for (const name of finished) {
        const batch = world.batches.get(name)
        const those = followers.filter(({ life }) => life.follows === name)
        if (batch.said !== null) looked()
        yield* fits(batch, those, commit)
      }
    })
    const { of: _, ...rest } = watcher
    return rest
  },
}

function* fits({ name, row, said }: BatchLife, followers: readonly Change[], commit: number): Iterable<string> {
  const due = said === null ? 0 : 1
  const told = `batch ${name}, finished by commit ${commit}`
  if (followers.length !== due) yield `${told}, is followed by ${followers.length} tasks where ${due} was said`
  for (const { after, life } of followers) {
    if (after?.batch !== said?.place)
      yield `${told}: task ${life.id} is in batch ${after?.batch}, its place in ${said?.place}`
    if (String(row?.followId) !== life.id) yield `${told}, names task ${row?.followId} where ${life.id} follows it`
  }
}

export const batchCounts: Law = {
  name: 'batch counts',
  promise: 'after each commit the figures of a batch equal a full count of its tasks and of places in it',
  watch(_plan, looked) {
    const { of: _, ...watcher } = commits(function* ({ commit }, world) {
      for (const { name, row, counted, ...rest } of world.batches.all) {
        if (row === null) continue
        looked()
        const { total, done, dead, cancelled } = row
        const open = total - done - dead - cancelled
        const shown = { total, done, dead, cancelled, open }
        const there = { ...counted, open: world.batches.open({ name, row, counted, ...rest }) }
        if (JSON.stringify(shown) === JSON.stringify(there)) continue
        yield `batch ${name} shows ${JSON.stringify(shown)} after commit ${commit}, ${JSON.stringify(there)} are there`
      }
    })
    return watcher
  },
}

export const batchesFinish: Law = {
  name: 'batches finish',
  promise: 'once faults have ended, every batch that is sealed finishes',
  watch(_plan, looked) {
    return {
      *end(world) {
        for (const { name, row } of world.batches.all) {
          if (row === null) continue
          looked()
          if (!row.sealed) yield `batch ${name} was never sealed`
          else if (row.finishedAt === null) yield `batch ${name} is sealed and not finished in the end`
        }
      },
    }
  },
}
