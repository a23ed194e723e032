// Law: ids and fences only rise, deliveries count from one, and what was acked never comes back.
import type { Law } from '../law.js'

export const numbers: Law = {
  name: 'numbers',
  promise: 'neither ids nor fences repeat; deliveries are numbered from 1; nothing happens to a task after its ack',
  watch(_plan, looked) {
    let idMax = 0
    return {
      *change({ what, before, after, life }) {
        if (what.step === 'enqueue') {
          looked()
          if (Number(life.id) <= idMax) yield `task ${life.id} has an id that is not above ${idMax}`
          idMax = Math.max(idMax, Number(life.id))
          if (after?.number !== 0) yield `task ${life.id} begins with delivery ${after?.number}`
        }
        if (what.step !== 'claim' || !after || !before) return
        looked()
        if (after.number !== before.number + 1)
          yield `task ${life.id}: delivery ${after.number} follows ${before.number}`
        if (after.fence <= life.fenceMax) yield `task ${life.id}: fence ${after.fence} is not above ${life.fenceMax}`
        if (after.fence >= 2 ** 53) yield `task ${life.id}: fence ${after.fence} is no whole number any more`
      },
    }
  },
}
