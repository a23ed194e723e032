// Law of duplicates: what a newer task of a dedup key does to the one that stands there, while nobody works on it.
import type { AskedTask, Row } from '../../events.js'
import type { Law } from '../law.js'
import type { World } from '../world.js'

/** What an enqueue that runs has to do to one task, and what it did. */
interface Revision {
  before: Row
  by: AskedTask[]
  after: Row | null
}

export const duplicates: Law = {
  name: 'duplicates',
  promise:
    'replace and delay change the task of their dedup key unless it is leased, and nothing of it that is not said',
  watch({ policy: { headStartMs } }, looked) {
    /** Of the enqueue that runs, by the task's id. */
    const due = new Map<string, Revision>()
    const made = new Set<string>()
    let ran: { call: number; now: number } | null = null
    let now = 0
    return {
      *see(event, world) {
        if (ran !== null) {
          now = ran.now
          for (const [id, revision] of revisionsOf(ran.call, world)) due.set(id, revision)
        }
        ran = event.is === 'ran' ? event : null
        if (event.is === 'change' || event.is === 'batch') return
        for (const [id, revision] of due) {
          looked()
          yield* compared(id, revision, now, headStartMs)
        }
        due.clear()
        made.clear()
      },
      *change({ what, before, after, life, by }) {
        const revision = due.get(life.id)
        if (revision && by.asked.verb === 'enqueue') revision.after = after
        if (before === null) made.add(life.id)
        const may = revision !== undefined || made.has(life.id)
        if (what.step === 'revise' && !may) yield `task ${life.id} was revised by call ${by.call}, which may not`
        if (what.step !== 'revise' && before && after && before.item !== after.item) {
          yield `task ${life.id} got another payload with a ${what.step}`
        }
      },
    }
  },
}

/** Tasks that this call meets by their dedup key and has to change; those that it makes itself are left to others. */
function revisionsOf(number: number, world: World): Map<string, Revision> {
  const revisions = new Map<string, Revision>()
  const { asked, repeats } = world.call(number)
  if (asked.verb !== 'enqueue') return revisions
  for (const { row } of world.lives.values()) {
    if (row === null || row.dedupKey === null || row.state === 'leased' || row.state === 'dead') continue
    const by = asked.tasks.filter(({ dedupKey, onDuplicate }) => dedupKey === row.dedupKey && onDuplicate !== 'keep')
    if (by.length > 0 && !repeats) revisions.set(row.id, { before: row, by, after: null })
  }
  return revisions
}

function* compared(id: string, { before, by, after }: Revision, now: number, headStartMs: number): Iterable<string> {
  const told = `task ${id}, met by ${by.map(({ onDuplicate, item }) => `a ${onDuplicate} of item ${item}`).join(', ')},`
  if (after === null) return yield `${told} was left as it was`
  const replacing = by.filter(({ onDuplicate }) => onDuplicate === 'replace').at(-1)
  const naming = by.filter(({ dueNamed }) => dueNamed).at(-1)
  const item = replacing?.item ?? before.item
  if (after.item !== item) yield `${told} has the payload of item ${after.item} where item ${item} was said`
  const priority = replacing?.priority ?? before.priority
  if (after.priority !== priority) yield `${told} has priority ${after.priority} where ${priority} was said`
  if (after.type !== before.type || after.key !== before.key) yield `${told} became ${after.type} ${after.key}`
  if (after.nonce !== null || after.holder !== null) yield `${told} has a receipt that still acts`
  if (!naming && after.dueAt !== before.dueAt) yield `${told} is due at another time, and nobody said so`
  const moved = before.place + (before.priority - priority) * headStartMs
  const place = naming ? after.dueAt - priority * headStartMs : moved
  if (after.place !== place) yield `${told} has place ${after.place}, ${place} by its due instant and priority`
  if (naming && naming.delayMs > 0) yield* delayed(told, after, now + naming.delayMs)
}

function* delayed(told: string, { dueAt, state }: Row, until: number): Iterable<string> {
  if (dueAt !== until) yield `${told} is due ${dueAt - until} ms beside what was said`
  if (state !== 'scheduled') yield `${told} is ${state} before it is due`
}
