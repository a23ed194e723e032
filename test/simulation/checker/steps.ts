// Reads a change of a row as a step of a task's life: from the row before and after, and the call that made it.
import type { AskedVerdict, Row, SimEvent } from '../events.js'
import type { Call } from './world.js'

export type Step =
  | { step: 'enqueue' | 'promote' | 'due' | 'claim' | 'extend' | 'redrive' | 'ack' | 'retry' | 'bury' }
  /** `revise`: by a newer task of its dedup key. */
  | { step: 'expire' | 'die' | 'cancel' | 'revise' | 'strange' }
  /** `free`: costs no delivery; `paid`: costs one of releasesMax. */
  | { step: 'release'; free: boolean; paid: boolean }
  /** Nothing of its life: a lease lengthened, a due instant reckoned anew, a cancel asked for. */
  | { step: 'touch' }

/** What the rows alone do not say. */
export interface Context {
  by: Call
  /** The verdict of the call on the delivery that the task is in. */
  verdict: AskedVerdict | null
  /** The process that held the task was known to be dead when the call was made. */
  died: boolean
  /** The handler has no free release left. */
  releasesSpent: boolean
}

export function stepOf({ before, after }: Extract<SimEvent, { is: 'change' }>, context: Context): Step {
  const { by, verdict } = context
  if (before === null) return { step: 'enqueue' }
  if (after === null && verdict?.do === 'ack') return { step: 'ack' }
  if (before.state === 'leased') return leaseEnd(after, context)
  if (after === null) return { step: by.asked.verb === 'amend' ? 'cancel' : 'strange' }
  if (after.state === 'leased') return { step: after.number === before.number ? 'extend' : 'claim' }
  if (by.asked.verb === 'enqueue' && before.state !== 'dead' && !promotes(before, after)) return { step: 'revise' }
  if (before.state === after.state) return { step: 'touch' }
  if (before.state === 'dead') return { step: 'redrive' }
  if (before.state === 'scheduled') return { step: 'due' }
  return { step: before.state === 'waiting' && after.state === 'ready' ? 'promote' : 'strange' }
}

const promotes = (before: Row, after: Row) =>
  before.state === 'waiting' && after.state === 'ready' && before.dueAt === after.dueAt && before.item === after.item

function leaseEnd(after: Row | null, { by, verdict, died, releasesSpent }: Context): Step {
  if (after?.state === 'leased') return { step: by.asked.verb === 'extend' ? 'extend' : 'touch' }
  if (verdict) return settled(verdict, releasesSpent)
  // The dead are looked for by sweeps only, and before the leases that are over.
  if (by.asked.verb === 'sweep') return { step: died ? 'die' : 'expire' }
  return { step: by.asked.verb === 'claim' ? 'expire' : 'strange' }
}

function settled({ do: what, by }: AskedVerdict, releasesSpent: boolean): Step {
  if (what === 'retry' || what === 'bury') return { step: what }
  if (what !== 'release') return { step: 'strange' }
  const handler = by === 'handler' || by === 'overloaded'
  // Beyond releasesMax a release is a retry.
  return handler && releasesSpent ? { step: 'retry' } : { step: 'release', free: by !== 'counted', paid: handler }
}
