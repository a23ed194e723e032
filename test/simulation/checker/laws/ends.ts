// Laws of the end: nothing accepted is lost, and in calm everything finishes.
import type { Law } from '../law.js'
import type { World } from '../world.js'

export const kept: Law = {
  name: 'kept',
  promise:
    'an accepted task is in one state, or done by a handler that did its work, or removed by somebody with a name',
  watch(_plan, looked) {
    const worked = new Set<string>()
    const accepted: { id: string; process: string }[] = []
    return {
      *see(event, world) {
        if (event.is === 'end' && event.how === 'ack') worked.add(`${event.id} ${event.number}`)
        if (event.is === 'accepted') accepted.push(event)
        if (event.is === 'answer' && event.answer.verb === 'settle') yield* stillThere(event.call, event.answer, world)
      },
      *change({ what, before, after, life }) {
        if (after !== null) return
        looked()
        if (what.step === 'ack') {
          const did = worked.has(`${life.id} ${before?.number}`)
          if (!did) yield `task ${life.id} was acked, and no handler did the work of delivery ${before?.number}`
        } else if (what.step !== 'cancel' && !before?.cancelAsked) yield `task ${life.id} went with a ${what.step}`
      },
      *end(world) {
        for (const { id, process } of accepted) {
          if (!world.lives.has(id)) yield `task ${id} was accepted of ${process} and never was`
        }
      },
    }
  },
}

/** An ack that was answered "done" leaves nothing behind. */
function* stillThere(call: number, { outcomes }: { outcomes: string[] }, world: World): Iterable<string> {
  const { asked } = world.call(call)
  if (asked.verb !== 'settle') return
  for (const [i, { receipt }] of asked.verdicts.entries()) {
    const id = outcomes[i] === 'done' ? world.receipts.get(receipt)?.id : undefined
    const row = id === undefined ? null : world.lives.get(id)?.row
    if (row) yield `the ack of task ${id} was answered "done", and it is ${row.state}`
  }
}

export const finish: Law = {
  name: 'finish',
  promise: 'once faults have ended, every task comes to its end',
  watch(_plan, looked) {
    let calmed = false
    return {
      *see(event) {
        if (event.is === 'phase' && event.phase === 'closing') calmed = true
        if (event.is !== 'phase' || event.phase !== 'over') return
        looked()
        if (!calmed) yield 'the heal phase ended with tasks that had not'
      },
      *end(world) {
        for (const { id, row } of world.lives.values()) {
          if (row !== null && row.state !== 'dead') yield `task ${id} is ${row.state} in the end`
        }
      },
    }
  },
}
