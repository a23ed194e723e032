// Law P9: while a task lives, and for dedupWindowMs after its end, its dedup key stands for it; the dead give it up.
import type { Law } from '../law.js'

interface Holding {
  id: string
  /** When its window ends; null while the task lives. */
  endsAt: number | null
}

export const dedup: Law = {
  name: 'dedup',
  promise: 'the same dedup key answers the same id as long as promised, and a new one afterwards',
  watch({ policy: { dedupWindowMs } }, looked) {
    const held = new Map<string, Holding>()
    const holds = (key: string, now: number) => {
      const holding = held.get(key)
      return holding && (holding.endsAt === null || holding.endsAt > now) ? holding.id : null
    }
    /** For each enqueue that ran: whom each of its keys stood for then. */
    const stood = new Map<number, Map<string, string | null>>()
    return {
      *see(event, world) {
        if (event.is === 'ran') {
          const { asked } = world.call(event.call)
          if (asked.verb !== 'enqueue') return
          const keys = asked.tasks.flatMap(({ dedupKey }) => (dedupKey === null ? [] : [dedupKey]))
          stood.set(event.call, new Map(keys.map((key) => [key, holds(key, event.now)])))
        }
        if (event.is !== 'answer' || event.answer.verb !== 'enqueue') return
        const { asked, repeats } = world.call(event.call)
        const known = stood.get(event.call)
        if (repeats || asked.verb !== 'enqueue' || !known) return
        for (const [i, { dedupKey }] of asked.tasks.entries()) {
          if (dedupKey === null) continue
          looked()
          const expected = known.get(dedupKey) ?? null
          const id = event.answer.ids[i] as string
          const duplicate = event.answer.duplicates[i]
          if (expected === null ? duplicate : !duplicate || id !== expected) {
            yield `dedup key ${dedupKey} stood for ${expected} and was answered ${duplicate ? '' : 'a new '}${id}`
          }
          // Later tasks of the same call meet this one.
          known.set(dedupKey, id)
        }
      },
      *change({ what, before, after, life, now, dies }) {
        const key = after?.dedupKey ?? before?.dedupKey ?? null
        if (key === null) return
        const holder = holds(key, now)
        if (what.step === 'enqueue') {
          if (holder !== null) yield `dedup key ${key} made task ${life.id} beside ${holder}`
          held.set(key, { id: life.id, endsAt: null })
        } else if (what.step === 'redrive') {
          const takes = after?.dedupKey !== null
          if (takes && holder !== null && holder !== life.id) yield `task ${life.id} took ${key} from ${holder}`
          if (!takes && holder === null) yield `task ${life.id} lost dedup key ${key} to nobody`
          if (takes) held.set(key, { id: life.id, endsAt: null })
        } else if (held.get(key)?.id === life.id) {
          if (after === null && before?.state !== 'dead') held.set(key, { id: life.id, endsAt: now + dedupWindowMs })
          if (dies) held.delete(key)
        }
      },
    }
  },
}
