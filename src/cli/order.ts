// Gives each COMMAND's output its turn: one at a time, and with --keep-order in the order of the batch's tasks.
import type { Clock, Timer } from '../ground/clock.js'
import type { Parked } from '../queue/seam.js'

/** Reads the ids of a batch's open tasks above `after`, the lowest first, some at a time; none when there are none. */
export type OpenAfter = (after: string | null) => Promise<string[]>

/** How often it is looked for what became of an earlier task that does not run here. */
const lookEveryMs = 100
/** Ended tasks that are remembered before those that nobody asks about any more are forgotten. */
const overMax = 1000

/** True: write now. False: give the task back. */
type Go = (write: boolean) => void

/**
 * An output waits until every earlier task of the batch has ended: those that run here, that come again later, and
 * those that others hold. What waits is not acked, so that a crash loses no output.
 */
export class Order implements Parked {
  readonly #clock: Clock
  readonly #openAfter: OpenAfter | null
  #writing: Promise<unknown> = Promise.resolve()
  /** Tasks that run here, or whose output waits or is written. */
  readonly #here = new Set<string>()
  readonly #held = new Map<string, Go>()
  /** Tasks that ended here and were not passed yet. */
  readonly #over = new Set<string>()
  /** Open tasks when they were last read, the lowest first; all up to `passed` have ended. */
  #open: string[] = []
  #passed: string | null = null
  #looking = false
  #again = false
  #timer: Timer | null = null
  #closed = false
  #quiet = false
  #returned = 0
  #more: () => void = () => {}

  /** `openAfter` null: nothing waits, outputs go as they come. */
  constructor(clock: Clock, openAfter: OpenAfter | null) {
    this.#clock = clock
    this.#openAfter = openAfter
  }

  /** Outputs that wait for their turn. */
  get count(): number {
    return this.#held.size
  }

  onMore(listener: () => void): void {
    this.#more = listener
  }

  /** How many outputs were given back because their turn would not have come. */
  get returned(): number {
    return this.#returned
  }

  /** A delivery of this task starts. */
  begin(id: string): void {
    if (this.#openAfter === null) return
    this.#here.add(id)
    this.#over.delete(id)
  }

  /**
   * Its delivery succeeded: `write` is called when its turn has come. Resolves true when that has ended, false when the
   * turn does not come while this run, or the delivery (`signal`), lives: then the task has to be given back.
   */
  async deliver(id: string, signal: AbortSignal, write: () => Promise<void>): Promise<boolean> {
    if (this.#openAfter === null) {
      await this.alone(write)
      return true
    }
    const turn = await this.#turn(id, signal)
    try {
      if (turn) {
        await this.alone(write)
        this.#over.add(id)
      }
    } finally {
      this.#here.delete(id)
      this.#look()
    }
    return turn
  }

  /** Calls `write` while no other output is being written, whatever the order; resolves when it has ended. */
  alone(write: () => Promise<void>): Promise<void> {
    const written = this.#writing.then(write)
    this.#writing = written.catch(() => {})
    return written
  }

  /** Its delivery ended without an output; the task may come again, here or elsewhere. */
  away(id: string): void {
    if (this.#here.delete(id)) this.#look()
  }

  /** The task is dead: no output of it comes. */
  leave(id: string): void {
    if (this.#openAfter === null) return
    this.#here.delete(id)
    this.#over.add(id)
    this.#look()
  }

  /** No task starts any more: what would wait for one that does not run here is given back. */
  close(): void {
    this.#closed = true
    this.#look()
  }

  /** While it is true nothing may wait, because something else waits until nothing runs. */
  hush(quiet: boolean): void {
    this.#quiet = quiet
    this.#look()
  }

  #turn(id: string, signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const go: Go = (write) => {
        this.#held.delete(id)
        signal.removeEventListener('abort', lost)
        resolve(write)
      }
      const lost = () => go(false)
      if (signal.aborted) return resolve(false)
      signal.addEventListener('abort', lost, { once: true })
      this.#held.set(id, go)
      this.#look()
    })
  }

  /** Looks whose turn it is, one look at a time. */
  #look(): void {
    this.#again = true
    if (!this.#looking && this.#openAfter !== null) void this.#looks()
  }

  async #looks(): Promise<void> {
    this.#looking = true
    while (this.#again) {
      this.#again = false
      await this.#next()
    }
    this.#looking = false
  }

  async #next(): Promise<void> {
    const first = lowest(this.#held.keys())
    if (first === null) return
    const head = await this.#head()
    if (head === undefined) return this.#later()
    if (head === null || !isBelow(head, first)) return this.#held.get(first)?.(true)
    if (!this.#here.has(head) && !this.#closed) {
      // It may have ended elsewhere since it was read.
      this.#open = []
      if ((await this.#head()) !== head) return this.#look()
      this.#later()
    }
    const hopeless = this.#closed && !this.#here.has(head)
    if (hopeless || this.#quiet) this.#giveBack()
    else this.#more()
  }

  /** The lowest open task that has not ended here; null when there is none, undefined when the store does not say. */
  async #head(): Promise<string | null | undefined> {
    for (;;) {
      for (let head = this.#open[0]; head !== undefined; head = this.#open[0]) {
        if (!this.#over.delete(head)) return head
        this.#passed = head
        this.#open.shift()
      }
      try {
        this.#open = (await this.#openAfter?.(this.#passed)) ?? []
      } catch {
        // Its troubles are told by those who work on it.
        return undefined
      }
      const [first] = this.#open
      if (first === undefined) return null
      if (this.#over.size > overMax) for (const id of this.#over) if (isBelow(id, first)) this.#over.delete(id)
    }
  }

  #later(): void {
    this.#timer?.cancel()
    this.#timer = this.#clock.after(lookEveryMs, () => this.#look())
  }

  #giveBack(): void {
    for (const go of [...this.#held.values()]) {
      this.#returned++
      go(false)
    }
  }
}

/** Ids are whole numbers in decimal. */
const isBelow = (id: string, other: string) => Number(id) < Number(other)

function lowest(ids: Iterable<string>): string | null {
  let first: string | null = null
  for (const id of ids) if (first === null || isBelow(id, first)) first = id
  return first
}
