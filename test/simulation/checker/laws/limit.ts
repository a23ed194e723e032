// Law: no claim takes a task while as many as the limit allows are under lease.
import type { Law } from '../law.js'

export const limit: Law = {
  name: 'limit',
  promise: 'a queue with concurrencyMax never hands out a delivery while so many are under lease',
  watch(_plan, looked) {
    return {
      *change({ life, what, after }, world) {
        const ceiling = world.ceilingOf(after?.queue ?? '')
        if (what.step !== 'claim' || ceiling === null) return
        looked()
        const leased = [...world.rows('leased', after?.queue)].length
        if (leased >= ceiling) yield `task ${life.id} was claimed beside ${leased} others`
      },
    }
  },
}
