// Gives each COMMAND's output its turn: one at a time, and with --keep-order in the order of the items' numbers.

interface Turn {
  readonly number: number
  state: 'running' | 'held' | 'away'
  go: () => void
}

/** Outputs in the order of their numbers, as far as the tasks are known here. */
export class Order {
  readonly #turns = new Map<string, Turn>()
  readonly #heldMax: number
  #writing: Promise<unknown> = Promise.resolve()
  #stopping = false

  /** `heldMax` outputs wait for one that is away at most; 0: nothing waits, outputs go as they come. */
  constructor(heldMax: number) {
    this.#heldMax = heldMax
  }

  /** A delivery of this task starts. */
  begin(id: string, number: number): void {
    if (this.#heldMax > 0) this.#turns.set(id, { number, state: 'running', go: () => {} })
  }

  /** Its delivery succeeded: `write` is called when its turn has come; resolves when that has ended. */
  async deliver(id: string, write: () => Promise<void>): Promise<void> {
    const turn = this.#turns.get(id)
    if (turn) {
      await new Promise<void>((resolve) => {
        turn.state = 'held'
        turn.go = resolve
        this.#next()
      })
    }
    try {
      await this.alone(write)
    } finally {
      this.leave(id)
    }
  }

  /** Calls `write` while no other output is being written, whatever the order; resolves when it has ended. */
  alone(write: () => Promise<void>): Promise<void> {
    const written = this.#writing.then(write)
    this.#writing = written.catch(() => {})
    return written
  }

  /** Its delivery failed; the task keeps its turn, because it may come back. */
  away(id: string): void {
    const turn = this.#turns.get(id)
    if (!turn) return
    turn.state = 'away'
    this.#next()
  }

  /** The task has no output to come. */
  leave(id: string): void {
    if (this.#turns.delete(id)) this.#next()
  }

  /** Nothing that is away comes back any more. */
  stop(): void {
    this.#stopping = true
    this.#next()
  }

  #next(): void {
    let held = 0
    for (const turn of this.#turns.values()) if (turn.state === 'held') held++
    for (;;) {
      const first = this.#first()
      if (first === null) return
      const [id, turn] = first
      if (turn.state === 'held') return turn.go()
      if (turn.state === 'running' || (held < this.#heldMax && !this.#stopping)) return
      // It has been waited for long enough: its output comes when it comes.
      this.#turns.delete(id)
    }
  }

  #first(): [string, Turn] | null {
    let first: [string, Turn] | null = null
    for (const entry of this.#turns) if (first === null || entry[1].number < first[1].number) first = entry
    return first
  }
}
