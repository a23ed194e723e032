// Law of deadTo: the dead of a queue go on in another, in the commit of their death, and nothing else comes there.
import type { Row } from '../../events.js'
import type { Law } from '../law.js'

export const deadTo: Law = {
  name: 'dead to',
  promise: 'who dies in a queue with deadTo goes on as one task of the other, with its key, payload and a fresh budget',
  watch({ deadTo: sends = false, policy: { headStartMs } }, looked) {
    const left = new Set<string>()
    return {
      *change({ before, after, life, dies, leaves, what, now }) {
        if (!sends) return
        const task = `task ${life.id}`
        const fresh = before === null && after?.queue !== life.as.queue
        if (fresh) yield `${task} of queue ${life.as.queue} was enqueued into ${after?.queue}`
        if (!dies || !before || !after || left.has(life.id)) return
        looked()
        if (!leaves) return yield `${task} died of a ${what.step} and stayed`
        left.add(life.id)
        yield* same(task, before, after)
        const { place, priority, dueAt } = after
        if (place !== now - priority * headStartMs || dueAt !== now)
          yield `${task} has place ${place}, as if it were old`
      },
      *end(world) {
        for (const { id, row, as } of world.lives.values()) {
          if (row && row.queue !== as.queue && !left.has(id))
            yield `task ${id} is in queue ${row.queue} and did not die`
        }
      },
    }
  },
}

function* same(task: string, before: Row, after: Row): Iterable<string> {
  for (const field of ['type', 'key', 'item', 'number', 'fence', 'priority'] as const) {
    if (before[field] !== after[field]) yield `${task} had ${field} ${before[field]} and died to ${after[field]}`
  }
  const { spent, deaths, releases, batch, dedupKey, nonce, cancelAsked, state, key } = after
  if (spent + deaths + releases > 0) yield `${task} begins its second life with ${spent} deliveries spent`
  if (batch !== null || dedupKey !== null) yield `${task} took batch ${batch} and dedup key ${dedupKey} along`
  if (nonce !== null || cancelAsked) yield `${task} has a receipt that acts, or a cancel that was asked for`
  if (state !== (key === null ? 'ready' : 'waiting')) yield `${task} is ${state} after its death`
}
