// The names of queues, types and batches as this connection knows them, and how new ones are made.
import type { LimitRow } from '../limits.js'
import type { QueueRow } from '../named.js'
import { Names, type Tables, type TypeRow } from '../names.js'
import type { Statements } from './statements.js'

/** `settings` in the store's row rises with every change, so a stale cache is noticed. */
export class Catalog extends Names {
  /** True when this transaction changed a queue, type or policy. */
  changed = false
  private settings = -1

  constructor(private readonly q: Statements) {
    super()
  }

  validFor(settings: number): void {
    if (settings === this.settings) return
    const { queues, types, limits, routes } = this.q
    const tables = { queues: queues.all(), types: types.all(), limits: limits.all(), routes: routes.all() }
    this.keep(tables as unknown as Tables)
    this.settings = settings
  }

  committed(settings: number): void {
    this.changed = false
    this.settings = settings
  }

  forget(): void {
    this.changed = false
    this.settings = -1
  }

  /** The queue of this name, made at its first use. */
  ensureQueue(name: string, now: number): QueueRow {
    const known = this.queue(name)
    if (known) return known
    this.q.addQueue.run(name, now)
    this.changed = true
    return this.keepQueue(this.q.queueByName.get(name) as QueueRow)
  }

  setQueue(row: QueueRow): void {
    this.q.setQueue.run(row.pausedAt, row.code, row.operator, row.id)
    this.changed = true
    this.keepQueue(row)
  }

  ensureType(queue: number, name: string): TypeRow {
    const known = this.type(queue, name)
    if (known) return known
    const id = Number(this.q.addType.run(queue, name).lastInsertRowid)
    this.changed = true
    return this.keepType({ id, queue, name, pausedAt: null, mixed: 0 })
  }

  /** Here it is made at the first death: no other connection can be writing. */
  protected override typeThere(queue: number, name: string): number {
    return this.ensureType(queue, name).id
  }

  setType(row: TypeRow): void {
    this.q.setType.run(row.pausedAt, row.id)
    this.changed = true
    this.keepType(row)
  }

  /** After a change of this transaction to the limits. */
  reloadLimits(): void {
    this.keepLimits(this.q.limits.all() as LimitRow[])
    this.changed = true
  }

  /** Notes that the type's tasks are no longer claimed in the order they became due. */
  mix(id: number): void {
    const row = this.typeById(id)
    if (!row || row.mixed) return
    this.q.mixType.run(id)
    this.changed = true
    this.keepType({ ...row, mixed: 1 })
  }

  /** Leads new tasks of a type (id) to another; null ends that. */
  setRoute(type: number, goesTo: number | null): void {
    if (goesTo === null) this.q.dropRoute.run(type)
    else this.q.putRoute.run(type, goesTo)
    this.changed = true
    this.keepRoute(type, goesTo)
  }

  batchName(id: number | null): string | null {
    if (id === null) return null
    let name = this.batches.get(id)
    if (name === undefined) {
      name = (this.q.batchById.get(id) as { name: string } | undefined)?.name
      if (name === undefined) return null
      this.batches.set(id, name)
    }
    return name
  }
}
