// What the checker knows of batches: what was said to follow each, and a full count of its own of all that is in it.
import type { Asked, BatchRow, Followed, Row } from '../events.js'

/** One batch from the first word of it on. */
export interface BatchLife {
  name: string
  /** As it stands. */
  row: BatchRow | null
  /** The newest that was said. */
  said: Followed | null
  /** Reckoned here from every change of a task's row, and from places that were taken and given back. */
  counted: Counted
  /** Tasks of it that are neither gone nor dead. */
  tasks: number
}
export interface Counted {
  total: number
  done: number
  dead: number
  cancelled: number
}

export class Batches {
  private readonly lives = new Map<string, BatchLife>()

  get all(): Iterable<BatchLife> {
    return this.lives.values()
  }

  get(name: string): BatchLife {
    const counted = { total: 0, done: 0, dead: 0, cancelled: 0 }
    const life = this.lives.get(name) ?? { name, row: null, said: null, counted, tasks: 0 }
    this.lives.set(name, life)
    return life
  }

  /** What is neither done, dead nor cancelled: tasks, and places of tasks to come. */
  open({ name, tasks }: BatchLife): number {
    const places = [...this.all].filter(({ said, row }) => said?.place === name && row?.finishedAt == null)
    return tasks + places.length
  }

  /** The batch that this item was said to follow. */
  followedBy(item: number): string | null {
    for (const { name, said } of this.all) if (said?.item === item) return name
    return null
  }

  /** A call runs that may say what follows a batch: it takes a place and gives the former one back. */
  asked(asked: Asked): void {
    if (asked.verb !== 'configure' || asked.kind !== 'batch') return
    const life = this.get(asked.name)
    const { follows } = asked
    if (follows === null || follows.item === life.said?.item) return
    const before = life.said?.place ?? null
    const { place } = follows
    if (place !== null && place !== before) this.get(place).counted.total++
    if (before !== null && before !== place) this.get(before).counted.cancelled++
    life.said = follows
  }

  changed(row: BatchRow): void {
    this.get(row.name).row = row
  }

  /** A task's row changed; `follows`: the batch that it follows, in whose name it has its place already. */
  counts(before: Row | null, after: Row | null, acked: boolean, follows: string | null): void {
    // Who leaves it for another queue was of it.
    const name = before === null ? (after?.batch ?? null) : before.batch
    if (name === null) return
    const life = this.get(name)
    const { counted } = life
    const left = (row: Row) => row.state === 'dead' || row.batch !== name
    const dead = (row: Row | null) => (row !== null && left(row) ? 1 : 0)
    const here = (row: Row | null) => (row !== null && !left(row) ? 1 : 0)
    if (before === null && follows === null) counted.total++
    if (after === null) counted[acked ? 'done' : 'cancelled']++
    counted.dead += dead(after) - dead(before)
    life.tasks += here(after) - here(before)
  }
}
