// Law P5: which receipts act, and which are stale, for every verdict and every extension.
import type { Law } from '../law.js'
import type { Acting, Call, World } from '../world.js'

export const newest: Law = {
  name: 'newest receipt',
  promise:
    'only the newest receipt of a task acts, while its lease lives; everything else answers stale and changes nothing',
  watch: (_plan, looked) => ({
    *see(event, world) {
      yield* compared(event, world, (acting) => acting.held !== 'lapsed', looked)
    },
    *change({ what, life, by }) {
      if (what.step === 'strange') yield `task ${life.id} was changed by a ${by.asked.verb} that had no right to it`
    },
  }),
}

export const lapsed: Law = {
  name: 'lapsed receipt',
  promise: 'an ack after the lease is accepted as long as nobody else claimed the task, an extension if time ended it',
  watch: (_plan, looked) => ({
    *see(event, world) {
      yield* compared(event, world, (acting) => acting.held === 'lapsed', looked)
    },
  }),
}

type Event = Parameters<NonNullable<ReturnType<Law['watch']>['see']>>[0]

/** What each verdict was answered beside what it had to be. */
function* compared(
  event: Event,
  world: World,
  mine: (acting: Acting) => boolean,
  looked: () => void,
): Iterable<string> {
  if (event.is !== 'answer') return
  const call = world.call(event.call)
  const { answer } = event
  const outcomes = answer.verb === 'settle' ? answer.outcomes : answer.verb === 'extend' ? answer.held : []
  if (call.repeats) return
  for (const [i, acting] of call.acts.entries()) {
    if (!mine(acting)) continue
    looked()
    const said = outcomes[i]
    if (acting.acts === (said !== 'stale')) continue
    const should = acting.acts ? `had to act (${acting.held})` : `was ${acting.held}`
    yield `${what(call, i)} by ${call.process} ${should} and was answered "${said}"`
  }
}

function what({ asked }: Call, i: number): string {
  if (asked.verb === 'extend') return `the extension of ${asked.receipts[i]}`
  if (asked.verb !== 'settle') return 'nothing'
  return `the ${asked.verdicts[i]?.do} of ${asked.verdicts[i]?.receipt}`
}
