// Law P8: what a dead process held is back within a second, long before its leases end.
import { Calm } from '../calm.js'
import type { Law } from '../law.js'
import { processOf, type World } from '../world.js'

const backMs = 1000

interface Death {
  process: string
  at: number
  /** Held its tasks under leases that end much later: nothing but its death brings them back. */
  telling: boolean
}

export const back: Law = {
  name: 'back in a second',
  promise: "a dead process's tasks are back within a second where its death can be known and another process runs",
  watch({ policy }, looked) {
    // Neither syncs nor verdicts nor extensions keep a sweep from its work.
    const calm = new Calm({ store: ['busy', 'fail', 'full'], line: ['lose', 'twice', 'pause'] })
    let deaths: Death[] = []
    const held = (world: World, process: string) =>
      [...world.rows('leased')].filter(({ worker }) => processOf(worker) === process)
    const witness = (world: World, from: number, to: number) =>
      [...world.processes].some(
        ([name, { state, since }]) => state === 'up' && since <= from - backMs && calm.during(name, from - backMs, to),
      )
    return {
      *see(event, world) {
        for (const { process, at, telling } of deaths.filter((death) => event.at > death.at + backMs)) {
          if (!witness(world, at, event.at)) continue
          if (telling) looked()
          for (const { id } of held(world, process))
            yield `task ${id} is still held by ${process}, dead for ${event.at - at} ms`
        }
        deaths = deaths.filter((death) => event.at <= death.at + backMs)
        calm.see(event)
        if (event.is !== 'killed' || world.processes.get(event.process)?.wire) return
        const telling = policy.leaseMs > 10 * backMs && held(world, event.process).length > 0
        deaths.push({ process: event.process, at: event.at, telling })
      },
    }
  },
}
