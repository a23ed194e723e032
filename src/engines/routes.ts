// Routes, which tasks of a moved type follow from their enqueue on, as both SQL engines check and show them.
import type { Filter, Patch } from '../engine/contract.js'
import { PieceworkError } from '../ground/errors.js'
import { checkName } from '../task/limits.js'
import type { RouteRecord } from '../task/records.js'
import type { Names, TypeRow } from './names.js'

/** The queue and the type that `configure('route', …)` names: the queue, a NUL and the type; PW_NAME_INVALID. */
export function routeNamed(text: string): { queue: string; type: string } {
  const [queue, type] = text.split('\0', 2)
  return { queue: checkName('queue name', queue), type: checkName('type', type) }
}

/** The target that a patch names, and what tasks of this type are called there; PW_NAME_INVALID, PW_OPTION_INVALID. */
export function targetOf(from: { queue: string; type: string }, patch: Patch): { queue: string; type: string } {
  const queue = checkName('to', patch.to)
  if (queue === from.queue) {
    throw new PieceworkError('PW_OPTION_INVALID', `to is ${JSON.stringify(queue)}, the queue that it leads away from.`)
  }
  return { queue, type: from.type === from.queue ? queue : from.type }
}

/** Throws PW_MOVE_CIRCLE when the way from the target comes back. */
export function refuseCircle(catalog: Names, from: TypeRow, to: TypeRow): void {
  if (!catalog.leads(to.id, from.id)) return
  const [here, there] = [from, to].map(({ queue, name }) => `${catalog.queueById(queue).name}/${name}`)
  throw new PieceworkError('PW_MOVE_CIRCLE', `Tasks of ${there} go to ${here} already.`, { from: here, to: there })
}

export const routeUnknown = ({ queue, type }: { queue: string; type: string }) =>
  new PieceworkError('PW_MOVE_UNKNOWN', `No route leads away from ${JSON.stringify(`${queue}/${type}`)}.`, {
    queue,
    type,
  })

export const routeRecord = (catalog: Names, from: TypeRow, to: TypeRow): RouteRecord => ({
  queue: catalog.queueById(from.queue).name,
  type: from.name,
  to: catalog.queueById(to.queue).name,
  toType: to.name,
})

/** The routes that a filter picks by queue and type. */
export function routeRecords(catalog: Names, { queue, type }: Filter): RouteRecord[] {
  const all = [...catalog.allRoutes()].map(({ from, to }) => routeRecord(catalog, from, to))
  return all.filter((row) => (queue ?? row.queue) === row.queue && (type ?? row.type) === row.type)
}
