// What a process remembers of queues and types: names as numbers, and the policies in force.
import { effectivePolicy, type Policy, storedPolicy } from '../task/limits.js'
import { drawn, type Limit, type LimitRow } from './limits.js'
import type { QueueRow } from './named.js'

export interface TypeRow {
  id: number
  queue: number
  name: string
  pausedAt: number | null
  /** 1: places and due instants of its tasks may be in different orders. */
  mixed: number
}

export interface RouteRow {
  type: number
  goesTo: number
}

/** What a catalog holds of. */
export interface Tables {
  queues: readonly QueueRow[]
  types: readonly TypeRow[]
  limits: readonly LimitRow[]
  routes: readonly RouteRow[]
}

interface Draws {
  limits: Map<number, readonly Limit[]>
  queues: Map<number, readonly number[]>
}

const noLimits: readonly Limit[] = []
const noTypes: readonly number[] = []

/** A cache of small tables; each engine fills it, and knows when it is stale. */
export class Names {
  private readonly queues = new Map<string, QueueRow>()
  private readonly queuesById = new Map<number, QueueRow>()
  private readonly types = new Map<number, TypeRow>()
  private readonly typesByQueue = new Map<number, Map<string, TypeRow>>()
  private readonly policies = new Map<number, Policy>()
  /** Where tasks go that are enqueued as a type: from type (id) to type. */
  private readonly routes = new Map<number, number>()
  protected readonly batches = new Map<number, string>()
  private limitRows: readonly LimitRow[] = []
  /** What each queue draws on, and the queues that draw on each limit; null until somebody asks. */
  private draws: Draws | null = null

  queue(name: string): QueueRow | undefined {
    return this.queues.get(name)
  }

  queueById(id: number): QueueRow {
    return this.queuesById.get(id) as QueueRow
  }

  policyOf(queue: number): Policy {
    let policy = this.policies.get(queue)
    if (!policy) {
      const row = this.queueById(queue)
      policy = effectivePolicy(storedPolicy(row.code), storedPolicy(row.operator))
      this.policies.set(queue, policy)
    }
    return policy
  }

  type(queue: number, name: string): TypeRow | undefined {
    return this.typesByQueue.get(queue)?.get(name)
  }

  typeById(id: number): TypeRow | undefined {
    return this.types.get(id)
  }

  typesOf(queue: number): Iterable<TypeRow> {
    return this.typesByQueue.get(queue)?.values() ?? []
  }

  /** What a new task of this type becomes: the type at the end of the routes; undefined where none begins. */
  landing(queue: number, name: string): TypeRow | undefined {
    if (this.routes.size === 0) return undefined
    const own = this.type(queue, name)?.id ?? 0
    return this.routes.has(own) ? this.typeById(this.way(own).at(-1) as number) : undefined
  }

  /** Where a route from this type (id) leads, if there is one. */
  routeFrom(type: number): TypeRow | undefined {
    return this.typeById(this.routes.get(type) ?? 0)
  }

  /** True when the routes lead from one type (id) to another. */
  leads(from: number, to: number): boolean {
    return this.way(from).includes(to)
  }

  /** The types (ids) from this one to the end of the routes; circles are refused, and none would hold anybody here. */
  private way(from: number): number[] {
    const way = [from]
    for (let next = this.routes.get(from); next !== undefined && !way.includes(next); next = this.routes.get(next)) {
      way.push(next)
    }
    return way
  }

  *allRoutes(): Iterable<{ from: TypeRow; to: TypeRow }> {
    for (const [from, to] of this.routes)
      yield { from: this.types.get(from) as TypeRow, to: this.types.get(to) as TypeRow }
  }

  /** The types (ids) of a queue that a claim may look at: of these names or all, without the paused ones. */
  claimable(queue: number, names: readonly string[] | null): number[] {
    const found: number[] = []
    const rows = names === null ? this.typesOf(queue) : names.map((name) => this.type(queue, name))
    for (const row of rows) if (row && row.pausedAt === null) found.push(row.id)
    return found
  }

  /** The name of the same type in another queue; tasks of no type of their own have none there either. */
  nameThere(type: number, queue: string): string {
    const { name, queue: own } = this.typeById(type) as TypeRow
    return name === this.queueById(own).name ? queue : name
  }

  /** The type (id) as which a dead task of this type becomes one of the queue that takes the dead; null: it stays. */
  deadTypeOf(type: number): number | null {
    const { queue } = this.typeById(type) as TypeRow
    const { deadTo } = this.policyOf(queue)
    const target = deadTo === null ? undefined : this.queue(deadTo)
    return target === undefined ? null : this.typeThere(target.id, this.nameThere(type, target.name))
  }

  /** The type (id) of this name in a queue that takes the dead; null when it is not known there. */
  protected typeThere(queue: number, name: string): number | null {
    return this.type(queue, name)?.id ?? null
  }

  /** The names of the queues of these types. */
  queuesOf(types: Iterable<number>): Set<string> {
    const names = new Set<string>()
    for (const id of types) {
      const type = this.typeById(id)
      if (type) names.add(this.queueById(type.queue).name)
    }
    return names
  }

  /** The limits that claims of a queue draw on; none for most, which costs them nothing. */
  limitsOf(queue: number): readonly Limit[] {
    if (this.limitRows.length === 0) return noLimits
    return this.drawing().limits.get(queue) ?? noLimits
  }

  /** The queues (ids) that draw on a limit. */
  queuesUnder(limit: number): readonly number[] {
    return this.drawing().queues.get(limit) ?? []
  }

  queueNamesUnder(limit: number): string[] {
    return this.queuesUnder(limit).map((id) => this.queueById(id).name)
  }

  private drawing(): Draws {
    if (this.draws !== null) return this.draws
    const draws: Draws = { limits: new Map(), queues: new Map() }
    for (const queue of this.queuesById.keys()) {
      const limits = drawn(queue, this.policyOf(queue), this.limitRows)
      draws.limits.set(queue, limits)
      for (const { id } of limits) draws.queues.set(id, [...(draws.queues.get(id) ?? []), queue])
    }
    this.draws = draws
    return draws
  }

  /** The types (ids) whose deliveries count under a limit. */
  typesUnder(limit: number): number[] {
    return this.queuesUnder(limit).flatMap((queue) => [...this.typesOf(queue)].map((type) => type.id))
  }

  /** The types that share a limit with this one; none when it draws on no limit. */
  sharing(type: number): Iterable<number> {
    if (this.limitRows.length === 0) return noTypes
    const limits = this.limitsOf(this.typeById(type)?.queue ?? 0)
    return limits.length === 0 ? noTypes : new Set(limits.flatMap(({ id }) => this.typesUnder(id)))
  }

  limitNamed(name: string): LimitRow | undefined {
    return this.limitRows.find((row) => row.name === name)
  }

  limitById(id: number): Limit | undefined {
    const [queue] = this.queuesUnder(id)
    return queue === undefined ? undefined : this.limitsOf(queue).find((limit) => limit.id === id)
  }

  /** The limit that is a queue's own. */
  limitFor(queue: number): LimitRow | undefined {
    return this.limitRows.find((row) => row.queue === queue)
  }

  get allLimits(): readonly LimitRow[] {
    return this.limitRows
  }

  protected keepLimits(rows: readonly LimitRow[]): void {
    this.limitRows = rows
    this.draws = null
  }

  protected keep({ queues, types, limits, routes }: Tables): void {
    this.keepLimits(limits)
    const maps = [this.queues, this.queuesById, this.types, this.typesByQueue, this.policies, this.routes]
    for (const map of maps) map.clear()
    this.batches.clear()
    for (const row of queues) this.keepQueue(row)
    for (const row of types) this.keepType(row)
    for (const { type, goesTo } of routes) this.routes.set(type, goesTo)
  }

  protected keepRoute(type: number, goesTo: number | null): void {
    if (goesTo === null) this.routes.delete(type)
    else this.routes.set(type, goesTo)
  }

  protected keepQueue(row: QueueRow): QueueRow {
    this.policies.delete(row.id)
    this.draws = null
    this.queues.set(row.name, row)
    this.queuesById.set(row.id, row)
    return row
  }

  protected keepType(row: TypeRow): TypeRow {
    this.types.set(row.id, row)
    const names = this.typesByQueue.get(row.queue) ?? new Map<string, TypeRow>()
    this.typesByQueue.set(row.queue, names.set(row.name, row))
    return row
  }
}
