// The names of queues, types, batches and workers as numbers, and the policies in force, kept in memory while valid.
import { effectivePolicy, type Policy, storedPolicy } from '../../task/limits.js'
import type { QueueRow } from '../named.js'
import type { Statements } from './statements.js'

export interface TypeRow {
  id: number
  queue: number
  name: string
  pausedAt: number | null
  mixed: number
}

/** A cache of small tables. `settings` in the store's row rises with every change, so a stale cache is noticed. */
export class Catalog {
  /** True when this transaction changed a queue, type or policy. */
  changed = false
  private settings = -1
  private queues = new Map<string, QueueRow>()
  private queuesById = new Map<number, QueueRow>()
  private types = new Map<number, TypeRow>()
  private typesByQueue = new Map<number, Map<string, TypeRow>>()
  private policies = new Map<number, Policy>()
  private batches = new Map<number, string>()

  constructor(private readonly q: Statements) {}

  validFor(settings: number): void {
    if (settings === this.settings) return
    this.load()
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

  /** The queue of this name, made at its first use. */
  ensureQueue(name: string, now: number): QueueRow {
    const known = this.queues.get(name)
    if (known) return known
    this.q.addQueue.run(name, now)
    this.changed = true
    return this.keepQueue(this.q.queueByName.get(name) as QueueRow)
  }

  setQueue(row: QueueRow): void {
    this.q.setQueue.run(row.pausedAt, row.code, row.operator, row.id)
    this.changed = true
    this.policies.delete(row.id)
    this.keepQueue(row)
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

  ensureType(queue: number, name: string): TypeRow {
    const known = this.type(queue, name)
    if (known) return known
    const id = Number(this.q.addType.run(queue, name).lastInsertRowid)
    this.changed = true
    return this.keepType({ id, queue, name, pausedAt: null, mixed: 0 })
  }

  setType(row: TypeRow): void {
    this.q.setType.run(row.pausedAt, row.id)
    this.changed = true
    this.keepType(row)
  }

  /** Notes that the type's tasks are no longer claimed in the order they became due. */
  mix(id: number): void {
    const row = this.types.get(id)
    if (!row || row.mixed) return
    this.q.mixType.run(id)
    this.changed = true
    this.keepType({ ...row, mixed: 1 })
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

  private load(): void {
    this.queues.clear()
    this.queuesById.clear()
    this.types.clear()
    this.typesByQueue.clear()
    this.policies.clear()
    this.batches.clear()
    for (const row of this.q.queues.all() as QueueRow[]) this.keepQueue(row)
    for (const row of this.q.types.all() as TypeRow[]) this.keepType(row)
  }

  private keepQueue(row: QueueRow): QueueRow {
    this.queues.set(row.name, row)
    this.queuesById.set(row.id, row)
    return row
  }

  private keepType(row: TypeRow): TypeRow {
    this.types.set(row.id, row)
    let names = this.typesByQueue.get(row.queue)
    if (!names) {
      names = new Map()
      this.typesByQueue.set(row.queue, names)
    }
    names.set(row.name, row)
    return row
  }
}
