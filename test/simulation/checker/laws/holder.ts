// Law P4: one delivery holds a task at a time, and it ends for a reason: a verdict, its time, a death.
import { Calm } from '../calm.js'
import type { Law } from '../law.js'
import { processOf } from '../world.js'

export const holder: Law = {
  name: 'one holder',
  promise: 'never two deliveries hold one task; the former ended by settle, lease end or declared death',
  watch(plan, looked) {
    const started = new Set<string>()
    return {
      *change({ what, before, after, life, now, by, leaves }) {
        const task = `task ${life.id}`
        if (what.step === 'claim') {
          looked()
          if (before?.state !== 'ready') yield `${task} was claimed by ${after?.worker} while ${before?.state}`
          const leaseMs = (after?.wakeAt ?? 0) - now
          if (leaseMs !== plan.policy.leaseMs) yield `${task} got a lease of ${leaseMs} ms`
        }
        if (what.step === 'expire') {
          if ((before?.wakeAt ?? 0) > now)
            yield `${task} lost its lease ${(before?.wakeAt ?? 0) - now} ms before its end`
          if (after?.state === 'ready' && after.holder === null && !leaves)
            yield `${task}: ${before?.worker} was held to be dead`
        }
        if (what.step === 'die' && after?.state === 'ready' && after.holder !== null) yield `${task} died and expired`
        if (what.step === 'touch' && before?.state === 'leased' && (after?.wakeAt ?? 0) < (before.wakeAt ?? 0)) {
          yield `${task} had its lease shortened by a ${by.asked.verb}`
        }
      },
      *see(event, world) {
        if (event.is !== 'start') return
        looked()
        const { process, id, number, fence } = event
        const row = world.lives.get(id)?.row
        const name = `${id} ${fence}`
        if (started.has(name)) yield `${process} started delivery ${number} of task ${id} a second time`
        started.add(name)
        const holds = row?.state === 'leased' && row.fence === fence && processOf(row.worker) === process
        if (!holds) yield `${process} started delivery ${number} of task ${id}, which it does not hold`
      },
    }
  },
}

export const keptLease: Law = {
  name: 'kept lease',
  promise: 'a lease ends by time only when its process, its line or the store was kept from extending it',
  watch(plan, looked) {
    const calm = new Calm()
    return {
      see: (event) => calm.see(event),
      *change({ what, before, at, life }, world) {
        if (what.step === 'extend' && before?.state === 'leased') looked()
        if (what.step !== 'expire') return
        const process = processOf(before?.worker ?? null)
        const { state, since = 0 } = world.processes.get(process) ?? {}
        if (state !== 'up' || since > at - 3 * plan.policy.leaseMs) return
        if (calm.during(process, at - 3 * plan.policy.leaseMs, at)) {
          yield `task ${life.id}: the lease of ${before?.worker} ended while nothing kept it from being extended`
        }
      },
    }
  },
}
