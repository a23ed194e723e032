// Law P1: nobody is told that something is accepted before a sync that began after its commit has ended.
import type { Law } from '../law.js'

export const synced: Law = {
  name: 'synced',
  promise: 'what a caller was told is on the disk: enqueues, verdicts, acts, and claims of what was handed out before',
  watch(_plan, looked) {
    return {
      *see(event, world) {
        if (event.is !== 'answer' || event.commit === null) return
        const { answer, commit, synced: onDisk } = event
        const again = answer.verb === 'claim' && answer.deliveries.some(({ number }) => number > 1)
        if (!again && answer.verb !== 'enqueue' && answer.verb !== 'settle' && answer.verb !== 'amend') return
        looked()
        const { process } = world.call(event.call)
        if (onDisk < commit) yield `${process} was answered a ${answer.verb} of commit ${commit}, synced is ${onDisk}`
      },
    }
  },
}
