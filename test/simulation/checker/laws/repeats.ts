// Law: a call that is sent again is answered as the first time, and an answer that was lost is asked for again.
import type { Law } from '../law.js'
import type { Call } from '../world.js'

/** The longest pause before a call whose answer was lost is sent again. */
const againMsMax = 6000

export const repeats: Law = {
  name: 'repeats',
  promise: 'the same request gets the same answer and changes nothing; a lost answer is asked for under the same name',
  watch(_plan, looked) {
    /** Of each worker: the claim whose answer was lost, until it is sent again. */
    const lost = new Map<string, string | null>()
    /** Settles whose answer was lost and that were not sent again yet, by process and flush. */
    const verdicts = new Map<string, { process: string; at: number }>()
    /** Of each repeated claim: the deliveries under way when it ran, as "id fence". */
    const live = new Map<number, Set<string>>()
    return {
      *change({ by, life, what, after }) {
        // What follows a batch comes with the commit, whichever call is the last of it.
        if (life.follows !== null && (what.step === 'enqueue' || what.step === 'promote')) return
        const own = what.step === 'claim' || what.step === 'enqueue' || by.asked.verb === 'settle'
        if (by.repeats && own)
          yield `the repeated ${by.asked.verb} ${by.call} changed task ${life.id} to ${after?.state}`
      },
      *see(event, world) {
        if (event.is === 'ran' && world.call(event.call).asked.verb === 'claim') {
          live.set(event.call, new Set([...world.rows('leased')].map(({ id, fence }) => `${id} ${fence}`)))
        }
        if (event.is === 'lost' && event.asked.verb === 'claim') lost.set(event.asked.worker, event.asked.request)
        if (event.is === 'lost' && event.asked.verb === 'settle') {
          verdicts.set(`${event.asked.worker} ${event.asked.request}`, event)
        }
        if (event.is === 'ask' && event.asked.verb === 'settle') {
          verdicts.delete(`${event.asked.worker} ${event.asked.request}`)
        }
        if (event.is === 'ask' && event.asked.verb === 'claim' && !event.copy) {
          const { worker, request } = event.asked
          const name = lost.get(worker)
          lost.delete(worker)
          if (name !== undefined && request !== name) yield `${worker} never asked again for its claim ${name}`
        }
        if (event.is === 'answer') yield* sameAgain(event.answer, world.call(event.call), live, looked)
        if (event.is !== 'phase' || event.phase !== 'closing') return
        for (const [name, { process, at }] of verdicts) {
          const waits = event.at - at < againMsMax || world.processes.get(process)?.state !== 'up'
          if (!waits) yield `${process} never sent its verdicts ${name} again`
        }
      },
    }
  },
}

type Answer = NonNullable<Call['answer']>

function* sameAgain(
  answer: Answer,
  { call, repeats: first }: Call,
  live: ReadonlyMap<number, ReadonlySet<string>>,
  looked: () => void,
): Iterable<string> {
  const before = first?.answer
  if (!before) return
  looked()
  const text = (of: Answer) =>
    of.verb === 'claim' ? of.deliveries.map(({ receipt }) => receipt).join(' ') : JSON.stringify(of)
  // Of a claim, those deliveries that were still under way.
  const still = ({ id, fence }: { id: string; fence: number }) => live.get(call)?.has(`${id} ${fence}`)
  const expected = before.verb === 'claim' ? { ...before, deliveries: before.deliveries.filter(still) } : before
  if (text(answer) !== text(expected)) {
    yield `call ${call} repeats ${first.call} and was answered ${text(answer)} where ${text(expected)} was due`
  }
}
