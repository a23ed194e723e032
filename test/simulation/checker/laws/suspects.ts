// Law: a task that saw two deaths is handed out alone and runs with nothing beside it in its process.
import type { Law } from '../law.js'
import type { Life } from '../world.js'

interface Lonely {
  id: string
  at: number
}

export const suspects: Law = {
  name: 'suspects',
  promise: 'a suspect is handed out alone and runs with nothing beside it, unless that outlives the grace time',
  watch({ policy, processes }, looked) {
    const alone = new Map<string, Lonely>()
    const heardAt = new Map<string, number>()
    /** What each claim has taken. */
    const taken = new Map<number, Life[]>()
    return {
      *change({ what, before, after, life, by, leaves }) {
        if (after === null || before === null) return
        if (what.step === 'claim') {
          const others = taken.get(by.call) ?? []
          taken.set(by.call, [...others, life])
          const suspect = [...others, life].find(({ row }) => (row?.deaths ?? 0) >= 2)
          if (suspect && others.length > 0)
            yield `the suspect ${suspect.id} was handed out with ${others.length} others`
        }
        const died = what.step === 'die' ? 1 : 0
        const rose = what.step === 'redrive' || leaves ? 0 : after.deaths - before.deaths
        if (rose < 0 || rose > died) yield `task ${life.id} has ${after.deaths} deaths after a ${what.step}`
      },
      *see(event, world) {
        if (event.is === 'heard') {
          const { answer } = world.call(event.call)
          if (answer?.verb === 'claim') for (const { receipt } of answer.deliveries) heardAt.set(receipt, event.at)
        }
        if (event.is === 'end' && alone.get(event.process)?.id === event.id) alone.delete(event.process)
        if (event.is !== 'start') return
        const { process, id, running, at } = event
        const row = world.lives.get(id)?.row
        const before = alone.get(process)
        const timedOut = policy.timeoutMs != null && at - (before?.at ?? 0) >= policy.timeoutMs
        if (before && !timedOut) yield `${process} started task ${id} while the suspect ${before.id} ran`
        if (!row || row.deaths < 2) return
        looked()
        alone.set(process, { id, at })
        const { graceMs = 0 } = processes[Number(process.slice(1).split('.')[0])] ?? {}
        const receipt = [...world.receipts].find(([, known]) => known.id === id && known.fence === row.fence)?.[0] ?? ''
        // Sums of fractions: a wait of 200 ms may be 199.9999 of them.
        const waited = at - (heardAt.get(receipt) ?? 0) + 1e-6
        if (running.length > 0 && waited < graceMs) yield `${process} started the suspect ${id} beside ${running}`
      },
    }
  },
}
