// Laws of places: which number a task gets, who keeps it, and that claims take the lowest first.
import type { Row } from '../../events.js'
import type { Law } from '../law.js'
import type { Call, Change, World } from '../world.js'

export const keepsPlace: Law = {
  name: 'keeps place',
  promise: 'release, lease end and death give a task back at its old place',
  watch: (_plan, looked) => ({
    *change({ what, before, after, life, leaves }) {
      if (!before || !after || leaves) return
      if (what.step === 'retry' && after.state === 'scheduled') return
      // A revised one has a law of its own.
      if (what.step === 'redrive' || what.step === 'revise') return
      if (['release', 'expire', 'die'].includes(what.step)) looked()
      const moved = after.place - before.place
      if (moved !== 0) yield `task ${life.id} moved ${moved} ms in its order with a ${what.step}`
    },
  }),
}

/** The claim that runs now: what was ready when it took its first, and what it took. */
interface Taking {
  call: Call
  ready: Row[]
  taken: string[]
}

export const places: Law = {
  name: 'places',
  promise: 'claims take the lowest places first, equal ones by id; a place is the due instant minus the head start',
  watch(plan, looked) {
    let taking: Taking | null = null
    const finish = function* (world: World): Iterable<string> {
      if (!taking) return
      const { call, taken } = taking
      const { max } = call.asked as Extract<Call['asked'], { verb: 'claim' }>
      const ready = taken.length === 0 ? readyFor(call, world) : taking.ready
      taking = null
      if (call.repeats) return
      looked()
      const fair = ready.slice(0, atMost(ready, max)).map(({ id }) => id)
      const same = fair.length === taken.length && fair.every((id) => taken.includes(id))
      if (!same)
        yield `${call.process} took ${taken.join(' ') || 'nothing'} where ${fair.join(' ') || 'nothing'} came first`
    }
    return {
      *change(change, world) {
        yield* placed(change, plan.policy.headStartMs)
        if (change.what.step !== 'claim' || !taking) return
        if (taking.taken.length === 0) taking.ready = readyFor(taking.call, world)
        taking.taken.push(change.life.id)
      },
      *see(event, world) {
        if (event.is !== 'change') yield* finish(world)
        if (event.is === 'ran' && world.call(event.call).asked.verb === 'claim') {
          taking = { call: world.call(event.call), ready: [], taken: [] }
        }
        if (event.is === 'answer' && event.answer.verb === 'claim' && event.commit === null) {
          const ready = readyFor(world.call(event.call), world)
          if (ready.length > 0) yield `a claim found nothing where ${ready.map(({ id }) => id)} were ready`
        }
      },
    }
  },
}

function* placed({ what, after, life, now }: Change, headStartMs: number): Iterable<string> {
  if (!after) return
  const { place, priority } = after
  const due = what.step === 'redrive' ? now : after.dueAt
  const given = what.step === 'enqueue' || what.step === 'redrive' || (what.step === 'retry' && after.state !== 'dead')
  if (given && place !== due - priority * headStartMs)
    yield `task ${life.id} of priority ${priority} has place ${place}`
  const late = what.step === 'enqueue' && after.state !== 'scheduled' && after.dueAt > now
  if (late) yield `task ${life.id} is ${after.state} before it is due`
  if (what.step === 'due' && life.row && (life.row.wakeAt ?? 0) > now) yield `task ${life.id} matured early`
}

function readyFor({ asked }: Call, world: World): Row[] {
  const { types, queue } = asked as Extract<Call['asked'], { verb: 'claim' }>
  const mine = [...world.rows('ready', queue)].filter(({ type }) => types?.includes(type) ?? true)
  // What the limit of the queue leaves room for.
  const room = (world.ceilingOf(queue) ?? Number.POSITIVE_INFINITY) - [...world.rows('leased', queue)].length
  return mine.sort((a, b) => a.place - b.place || Number(a.id) - Number(b.id)).slice(0, Math.max(0, room))
}

/** A suspect goes out alone, and only from the head. */
function atMost(ready: readonly Row[], max: number): number {
  const suspect = ready.findIndex(({ deaths }) => deaths >= 2)
  return suspect < 0 || suspect >= max ? max : Math.max(1, suspect)
}
