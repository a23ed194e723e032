// Law P12: every figure shown equals a full count, and totals are the sums of what was committed.
import type { Counts } from '../../events.js'
import type { Law } from '../law.js'
import type { Step } from '../steps.js'
import { typeOf, type World } from '../world.js'

const states = ['scheduled', 'waiting', 'ready', 'leased', 'dead']
/** Which total each step of a life raises. */
const totalOf: Partial<Record<Step['step'], string>> = {
  ...{ enqueue: 'enqueued', claim: 'deliveries', ack: 'done', retry: 'failures', bury: 'failures' },
  ...{ release: 'releases', expire: 'expiries', die: 'deaths', cancel: 'cancelled', redrive: 'redrives' },
}

export const counters: Law = {
  name: 'counters',
  promise: 'state counts equal a full count in one snapshot; totals are sums of what was committed',
  watch(_plan, looked) {
    const totals = new Map<string, Counts>()
    const add = (type: string | null, total: string | undefined) => {
      if (type === null || total === undefined) return
      const counts = totals.get(type) ?? {}
      counts[total] = (counts[total] ?? 0) + 1
      totals.set(type, counts)
    }
    return {
      change({ what, before, after, leaves }) {
        // What ends a delivery counts where it was, even if the task goes on elsewhere.
        const row = before ?? after
        const type = row && typeOf(row)
        add(type, totalOf[what.step])
        if (leaves) add(type, 'moved')
        const cancelled = after === null && before?.state === 'leased' && what.step !== 'ack'
        if (cancelled) add(type, 'cancelled')
        return []
      },
      *see(event, world) {
        if (event.is !== 'figures') return
        looked()
        for (const { name, shown, counted } of event.proof) {
          for (const state of Object.keys(shown)) {
            if (shown[state] !== counted[state])
              yield `${name} shows ${shown[state]} ${state}, and ${counted[state]} are there`
          }
        }
        for (const { counts, ...of } of event.types) {
          const type = typeOf(of)
          const expected: Counts = { ...totals.get(type), ...fullCount(world, type), stale: staleOf(world, type) }
          for (const [figure, shown] of Object.entries(counts)) {
            const sum = expected[figure] ?? 0
            if (shown !== sum) yield `type ${type} shows ${figure} ${shown} where ${sum} were committed`
          }
        }
      },
    }
  },
}

function fullCount(world: World, type: string): Counts {
  return Object.fromEntries(
    states.map((state) => [
      state,
      [...world.lives.values()].filter(({ row }) => row?.state === state && typeOf(row) === type).length,
    ]),
  )
}

function staleOf(world: World, type: string): number {
  let sum = 0
  for (const { acts } of world.calls.values()) {
    sum += acts.filter((acting) => !acting.acts && acting.type === type).length
  }
  return sum
}
