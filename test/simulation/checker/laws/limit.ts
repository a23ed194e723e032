// Law: no claim takes a task while as many as the limit allows are under lease.
import type { Law } from '../law.js'

export const limit: Law = {
  name: 'limit',
  promise: 'a queue with concurrencyMax never hands out a delivery while so many are under lease',
  watch({ policy: { concurrencyMax } }, looked) {
    return {
      *change({ life, what }, world) {
        if (what.step !== 'claim' || concurrencyMax == null) return
        looked()
        const leased = [...world.rows('leased')].length
        if (leased >= concurrencyMax) yield `task ${life.id} was claimed beside ${leased} others`
      },
    }
  },
}
