// The names of queues, types and batches as this process knows them, read again when another one changed them.
import { Names, type Tables } from '../names.js'
import type { Link } from './link.js'
import type { Statements } from './statements.js'

/** `settings` in the store's row rises with every change, so a stale cache is noticed. */
export class Catalog extends Names {
  private settings = -1

  constructor(private readonly q: Statements) {
    super()
  }

  async validFor(settings: number, link: Link): Promise<void> {
    if (settings !== this.settings) await this.load(link, settings)
  }

  /** True when nothing newer than what is remembered was changed by then. */
  knows(settings: number): boolean {
    return settings <= this.settings
  }

  /** What is remembered may be wrong: it is read again before it is used. */
  forget(): void {
    this.settings = -1
  }

  async load(link: Link, settings: number): Promise<void> {
    const { q } = this
    const tables = [q.queues, q.types, q.limits, q.routes]
    const [queues, types, limits, routes] = await link.all(tables.map((one) => () => link.run(one)))
    this.keep({ queues, types, limits, routes } as Tables)
    this.settings = settings
  }

  /** The names of batches; one that was forgotten has none. */
  async batchNames(link: Link, ids: Iterable<number | null>): Promise<(id: number | null) => string | null> {
    for (const id of new Set(ids)) {
      if (id === null || this.batches.has(id)) continue
      const [row] = await link.run<{ name: string }>(this.q.batchById, [id])
      if (row) this.batches.set(id, row.name)
    }
    return (id) => (id === null ? null : (this.batches.get(id) ?? null))
  }
}
