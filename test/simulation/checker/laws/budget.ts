// Law P7: one budget, reckoned here from the steps of each task and compared with the row at every step.
import type { Law } from '../law.js'

/** Ends of a delivery that spend it. */
const spending = ['retry', 'expire', 'die']

export const budget: Law = {
  name: 'one budget',
  promise: 'a task dies with its last delivery of deliveriesMax and not before; a free release costs none',
  watch({ policy: { deliveriesMax } }, looked) {
    return {
      *change({ what, before, after, life, dies, leaves }) {
        const task = `task ${life.id}`
        const { step } = what
        if (step === 'claim' && life.spent >= deliveriesMax) {
          yield `${task}: delivery ${after?.number} is spent delivery ${life.spent + 1} of ${deliveriesMax}`
        }
        const over = life.spent >= deliveriesMax
        const spends = spending.includes(step) || (step === 'release' && !what.free)
        if (spends) {
          looked()
          const gone = after === null && before?.cancelAsked
          if (over && !dies && !gone) yield `${task} lives on after ${life.spent} spent deliveries`
          if (!over && dies) yield `${task} is dead after ${life.spent} of ${deliveriesMax}`
          if (after === null && !before?.cancelAsked) yield `${task} is gone after a ${step}`
        }
        if (step === 'release' && what.free && dies) yield `${task} died of a free release`
        if (step === 'bury' && !dies && !before?.cancelAsked) yield `${task} was buried and lives`
        if (after === null) return
        const delta = step === 'claim' ? 1 : step === 'release' && what.free ? -1 : 0
        const spent = step === 'redrive' || step === 'enqueue' || leaves ? 0 : life.spent + delta
        if (after.spent !== spent)
          yield `${task}: ${after.spent} deliveries spent after a ${step}, ${spent} by its life`
      },
    }
  },
}
