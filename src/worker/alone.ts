// Lets one suspect of a process run with nothing beside it: whoever else works here pauses until it has ended.

/** A worker that shares its process with others. */
export interface Neighbour {
  /** Takes no new tasks, gives unstarted ones back; resolves when nothing of it runs. */
  pause(): Promise<void>
  resume(): void
}

/** The workers of one process, as far as they would die together. */
export class Alone {
  readonly #neighbours = new Set<Neighbour>()
  #last: Promise<void> = Promise.resolve()
  #suspects = 0

  join(neighbour: Neighbour): void {
    this.#neighbours.add(neighbour)
    if (this.#suspects > 0) void neighbour.pause()
  }

  leave(neighbour: Neighbour): void {
    this.#neighbours.delete(neighbour)
  }

  /**
   * Resolves when nothing else runs in this process, or `patience` has ended; the answer ends the quiet. Suspects of
   * several workers take turns.
   */
  async enter(patience: Promise<void>): Promise<() => void> {
    const before = this.#last
    let leave = () => {}
    this.#last = new Promise((resolve) => {
      leave = resolve
    })
    this.#suspects++
    const quiet = Promise.all([...this.#neighbours].map((neighbour) => neighbour.pause()))
    await before
    await Promise.race([quiet, patience])
    return () => {
      this.#suspects--
      if (this.#suspects === 0) for (const neighbour of this.#neighbours) neighbour.resume()
      leave()
    }
  }
}

/** Processes die whole, so all workers of this one share it. */
export const thisProcess = new Alone()
