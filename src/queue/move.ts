// Moves tasks to another queue and back; a type that is moved as a whole leaves a route for those that come later.
import type { Filter } from '../engine/contract.js'
import { PieceworkError } from '../ground/errors.js'
import { checkName, shown } from '../task/limits.js'
import type { RouteRecord } from '../task/records.js'
import { amendAll } from './amend.js'
import type { Acting } from './connection.js'

export interface Moved {
  moved: number
  /** Leased ones, which follow when their delivery ends without an ack. */
  asked: number
  /** True when later enqueues of the type follow. */
  routed: boolean
}

const movable = ['scheduled', 'waiting', 'ready', 'leased'] as const

/** The routes that begin in this queue, of all types or one. */
export async function readRoutes(connection: Acting, queue: string, type?: string): Promise<RouteRecord[]> {
  const page = await connection.engine().select('route', type === undefined ? { queue } : { queue, type }, null)
  return page.items as unknown as RouteRecord[]
}

/** Answers the filter's type, when it picks by nothing else. */
function typeAlone({ queue: _, limit: _limit, ...picks }: Filter): string | null {
  return Object.keys(picks).join() === 'type' ? (picks.type ?? null) : null
}

/**
 * Takes what the filter picks, but the dead, to another queue; a type alone with a route that later enqueues follow.
 * PW_OPTION_INVALID, PW_NAME_INVALID, PW_MOVE_CIRCLE.
 */
export async function moveTasks(
  connection: Acting,
  queue: string,
  filter: Filter,
  to: unknown,
  dryRun: boolean,
): Promise<Moved> {
  const other = checkName('to', to)
  if (other === queue) {
    throw new PieceworkError('PW_OPTION_INVALID', `to is ${shown(to)}, the queue that the tasks are in.`, { to })
  }
  const type = typeAlone(filter)
  // The route first: what comes while tasks are moved is there already.
  if (type !== null && !dryRun) await configure(connection, queue, type, { to: other })
  const states = filter.states ?? movable
  const { changed, asked } = await amendAll(connection, { ...filter, states }, { do: 'move', to: other }, dryRun)
  return { moved: changed, asked, routed: type !== null && !dryRun }
}

/** Ends the route of a type and brings all tasks of it back. PW_OPTION_INVALID, PW_MOVE_UNKNOWN. */
export async function moveBack(connection: Acting, queue: string, filter: Filter, dryRun: boolean): Promise<Moved> {
  const type = typeAlone(filter)
  if (type === null) throw new PieceworkError('PW_OPTION_INVALID', 'back takes a type, and nothing else.')
  const { to, toType } = await routeOf(connection, queue, type)
  if (!dryRun) await configure(connection, queue, type, null)
  const there = { queue: to, type: toType, states: movable }
  const { changed, asked } = await amendAll(connection, there, { do: 'move', to: queue }, dryRun)
  return { moved: changed, asked, routed: false }
}

/** The route that begins with this type; throws PW_MOVE_UNKNOWN. */
export async function routeOf(connection: Acting, queue: string, type: string): Promise<RouteRecord> {
  const [route] = await readRoutes(connection, queue, type)
  if (route) return route
  throw new PieceworkError('PW_MOVE_UNKNOWN', `No route leads away from ${shown(`${queue}/${type}`)}.`, { queue, type })
}

const configure = (connection: Acting, queue: string, type: string, patch: { to: string } | null) =>
  connection.engine().configure('route', `${queue}\0${type}`, patch, connection.actor)
