// Finds the row of the route table for a method and a path: exact paths, names decoded once.
import { PieceworkError } from '../ground/errors.js'
import { checkName } from '../task/limits.js'
import type { Route } from './route.js'

export interface Found {
  readonly route: Route
  /** The names in the path; throws PW_REQUEST_INVALID or PW_NAME_INVALID. */
  readonly params: () => Record<string, string>
}

interface Row {
  readonly segments: readonly string[]
  readonly routes: Map<string, Route>
}

export type Find = (method: string, path: string) => Found

/** What it answers throws PW_ROUTE_UNKNOWN or PW_METHOD_UNKNOWN. */
export function routerOf(routes: readonly Route[]): Find {
  const rows: Row[] = []
  for (const route of routes) {
    const segments = route.path.split('/')
    let row = rows.find((one) => one.segments.join('/') === route.path)
    if (!row) {
      row = { segments, routes: new Map() }
      rows.push(row)
    }
    row.routes.set(route.method, route)
  }
  return (method, path) => {
    const given = path.split('/')
    const row = rows.find(({ segments }) => fits(segments, given))
    if (!row) throw new PieceworkError('PW_ROUTE_UNKNOWN', 'There is nothing at this path.')
    const route = row.routes.get(method === 'HEAD' ? 'GET' : method)
    if (route) return { route, params: () => paramsOf(row.segments, given) }
    const allow = [...row.routes.keys()]
    throw new PieceworkError('PW_METHOD_UNKNOWN', `This path takes ${allow.join(', ')}.`, { allow })
  }
}

const isName = (segment: string) => segment.startsWith('{')

function fits(segments: readonly string[], given: readonly string[]): boolean {
  if (segments.length !== given.length) return false
  return segments.every((segment, at) => (isName(segment) ? given[at] !== '' : segment === given[at]))
}

function paramsOf(segments: readonly string[], given: readonly string[]): Record<string, string> {
  const params: Record<string, string> = {}
  segments.forEach((segment, at) => {
    if (!isName(segment)) return
    params[segment.slice(1, -1)] = checkName('name in the path', decoded(given[at] ?? ''))
  })
  return params
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch (cause) {
    throw new PieceworkError('PW_REQUEST_INVALID', 'A name in the path is not percent-encoded UTF-8.', {}, { cause })
  }
}
