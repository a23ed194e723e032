// Laws of the end: nothing accepted is lost, what died is back soon, and in calm everything finishes.
import { Calm } from '../calm.js'
import type { Law } from '../law.js'
import { processOf, type World } from '../world.js'

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

/** P8: how soon what a dead process held must be back where its death can be known. */
const backMs = 1000

export const back: Law = {
  name: 'back in a second',
  promise: "a dead process's tasks are back within a second where its death can be known and another process runs",
  watch(_plan, looked) {
    const calm = new Calm()
    let deaths: { process: string; at: number }[] = []
    const witness = (world: World, from: number, to: number) =>
      [...world.processes].some(
        ([name, { state, since }]) => state === 'up' && since <= from - backMs && calm.during(name, from - backMs, to),
      )
    return {
      *see(event, world) {
        for (const { process, at } of deaths.filter((death) => event.at > death.at + backMs)) {
          if (!witness(world, at, event.at)) continue
          looked()
          for (const { id, worker } of world.rows('leased')) {
            if (processOf(worker) === process)
              yield `task ${id} is still held by ${process}, dead for ${event.at - at} ms`
          }
        }
        deaths = deaths.filter((death) => event.at <= death.at + backMs)
        calm.see(event)
        const beside = event.is === 'killed' && !world.processes.get(event.process)?.wire
        if (beside) deaths.push({ process: event.process, at: event.at })
      },
    }
  },
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
