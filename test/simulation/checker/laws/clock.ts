// Law of time: the engine's clock goes with the monotonic one and takes in what the machine slept, nothing else.
import type { Law } from '../law.js'

export const clockLaw: Law = {
  name: 'clock',
  promise: 'no jump of the wall clock moves the clock by which leases end',
  watch(_plan, looked) {
    let offsetMs: number | null = null
    let sleptMs = 0
    return {
      *see(event) {
        if (event.is === 'fault' && event.fault.kind === 'sleep') sleptMs += event.fault.size
        if (event.is !== 'ran') return
        looked()
        const offset = event.now - Math.floor(event.at)
        const moved = offset - (offsetMs ?? offset)
        // Rounding to whole ms makes one of difference.
        if (offsetMs !== null && Math.abs(moved) <= 1) return
        if (moved < 0 || moved > sleptMs + 1) yield `the engine's clock moved by ${moved} ms of itself`
        sleptMs -= moved
        offsetMs = offset
      },
    }
  },
}
