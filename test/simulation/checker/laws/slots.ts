// Law of schedules: one task for each slot, in order, not before its instant, and none that had to come is missing.
import type { Law } from '../law.js'
import type { World } from '../world.js'

/** Somebody sweeps at least so often when all is well. */
const sweptMs = 2000
/** More missed slots than this are not given back. */
const missedMax = 1000

export const slots: Law = {
  name: 'slots',
  promise: 'a schedule puts exactly one task for each slot into its queue, also while it is set again and clocks jump',
  watch({ beat }, looked) {
    let first = 0
    let last: number | null = null
    /** The highest that the wall clock stood at in any call. */
    let highest = 0
    const after = (slot: number | null) => (slot === null || !beat ? first : slot + beat.everyMs)
    return {
      *see(event) {
        if (event.is === 'ran') highest = Math.max(highest, event.wallMs)
        if (event.is !== 'beat' || !beat) return
        if (event.firstAt !== null) first = event.firstAt
        // What a clock that was ahead has passed over is not made up for, and slots never go back.
        else if (beat.missed === 'skip' && highest > event.wallMs) return
        else if (after(last) <= event.wallMs - sweptMs) yield `slot ${after(last)} has no task at ${event.wallMs}`
      },
      *change({ what, after: row, by }, world) {
        if (what.step !== 'enqueue' || row?.slotAt == null || !beat) return
        looked()
        const { slotAt } = row
        const wallMs = wallOf(by.call, world)
        const told = `slot ${slotAt} after ${last} at ${wallMs}`
        if ((slotAt - first) % beat.everyMs !== 0 || slotAt < first) yield `${told} is none of the schedule`
        if (last !== null && slotAt <= last) yield `${told} is not a new one`
        if (slotAt > wallMs) yield `${told} is early`
        const newest = slotAt + beat.everyMs > wallMs
        if (beat.missed !== 'all' && !newest) yield `${told} is not the newest`
        const passed = (slotAt - after(last)) / beat.everyMs
        if (beat.missed === 'all' && passed > 0 && (wallMs - after(last)) / beat.everyMs < missedMax) {
          yield `${told} leaves ${passed} out`
        }
        last = slotAt
      },
    }
  },
}

const wallOf = (call: number, world: World) => world.call(call).wallMs
