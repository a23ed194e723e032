// Law P13: a process that stopped in good order holds nothing any more, and its stop has cost nobody a delivery.
import { Calm } from '../calm.js'
import type { Law } from '../law.js'
import { processOf } from '../world.js'

export const stops: Law = {
  name: 'stops',
  promise: 'a deploy never waits for a lease: unstarted tasks go back at once, running ones after the grace time',
  watch(_plan, looked) {
    const calm = new Calm()
    const asked = new Map<string, number>()
    return {
      *see(event, world) {
        calm.see(event)
        if (event.is === 'stopping') asked.set(event.process, event.at)
        if (event.is !== 'stopped') return
        const from = asked.get(event.process) ?? event.at
        if (!calm.during(event.process, from, event.at)) return
        looked()
        for (const { id, worker } of world.rows('leased')) {
          if (processOf(worker) === event.process) yield `${event.process} stopped and still holds task ${id}`
        }
      },
    }
  },
}
