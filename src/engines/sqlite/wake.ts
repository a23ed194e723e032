// Wakes those who wait for work: at once for commits of this process, within milliseconds for those of others.
import { type FSWatcher, watch } from 'node:fs'
import type { Clock, Timer } from '../../ground/clock.js'

interface Waiter {
  queues: readonly string[]
  end: (woken: boolean) => void
}

/** How often a waiting process looks for foreign commits when no file event told it. */
const pollMs = 20

export class Wake {
  private readonly waiters = new Set<Waiter>()
  private watcher: FSWatcher | null = null
  private poll: Timer | null = null
  private seen: number

  /** `version` rises with every foreign commit; `hasWork` says whether one of the queues may have ready tasks. */
  constructor(
    private readonly file: string | null,
    private readonly clock: Clock,
    private readonly version: () => number,
    private readonly hasWork: (queues: readonly string[]) => boolean,
  ) {
    this.seen = version()
  }

  /** Resolves true when one of the queues may have work, false after `ms` or when the signal aborts. */
  wait(queues: readonly string[], ms: number, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false)
    return new Promise((resolve) => {
      const end = (woken: boolean) => {
        timer.cancel()
        signal.removeEventListener('abort', abort)
        this.waiters.delete(waiter)
        if (this.waiters.size === 0) this.rest()
        resolve(woken)
      }
      const abort = () => end(false)
      const timer = this.clock.after(ms, abort, true)
      const waiter = { queues, end }
      signal.addEventListener('abort', abort, { once: true })
      this.waiters.add(waiter)
      this.listen()
    })
  }

  /** Tells of ready tasks in these queues. */
  signal(queues: ReadonlySet<string>): void {
    for (const waiter of [...this.waiters]) if (waiter.queues.some((queue) => queues.has(queue))) waiter.end(true)
  }

  close(): void {
    for (const waiter of [...this.waiters]) waiter.end(false)
    this.watcher?.close()
    this.watcher = null
  }

  private listen(): void {
    if (this.file === null || this.poll) return
    this.look()
    try {
      this.watcher ??= watch(`${this.file}-wal`, { persistent: false }, () => this.look()).on('error', () => {})
    } catch {
      // No file events on this system: the poll alone finds everything.
    }
    const tick = () => {
      this.look()
      if (this.waiters.size > 0) this.poll = this.clock.after(pollMs, tick)
    }
    this.poll = this.clock.after(pollMs, tick)
  }

  private rest(): void {
    this.poll?.cancel()
    this.poll = null
  }

  private look(): void {
    if (this.waiters.size === 0) return
    try {
      const version = this.version()
      if (version === this.seen) return
      this.seen = version
      for (const waiter of [...this.waiters]) if (this.hasWork(waiter.queues)) waiter.end(true)
    } catch {
      // A store that cannot be read: whoever waits shall claim and hear why.
      for (const waiter of [...this.waiters]) waiter.end(true)
    }
  }
}
