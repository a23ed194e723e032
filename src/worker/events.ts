// Tells a worker's listeners what happened, and survives whatever they do.
import { PieceworkError } from '../ground/errors.js'
import { warn } from '../ground/warn.js'
import type { WorkerEvents } from '../queue/seam.js'

type Listener<E extends keyof WorkerEvents> = (value: WorkerEvents[E]) => unknown

/** The listeners of one worker. A listener that throws, or whose promise rejects, becomes an 'error' event. */
export class Events {
  /** Replaced, never changed, when a listener comes or goes: an event reaches those who listened when it began. */
  readonly #listeners = new Map<keyof WorkerEvents, readonly Listener<never>[]>()

  on<E extends keyof WorkerEvents>(event: E, listener: Listener<E>): void {
    this.#listeners.set(event, [...(this.#listeners.get(event) ?? []), listener as Listener<never>])
  }

  off<E extends keyof WorkerEvents>(event: E, listener: Listener<E>): void {
    const left = (this.#listeners.get(event) ?? []).filter((other) => other !== listener)
    if (left.length > 0) this.#listeners.set(event, left)
    else this.#listeners.delete(event)
  }

  /** True when somebody listens; lets callers skip making an event that nobody hears. */
  heard(event: keyof WorkerEvents): boolean {
    return this.#listeners.has(event)
  }

  /** Never throws. */
  emit<E extends keyof WorkerEvents>(event: E, value: WorkerEvents[E]): void {
    for (const listener of this.#listeners.get(event) ?? []) {
      try {
        const answer = (listener as Listener<E>)(value)
        if (typeof answer === 'object' && answer !== null) {
          Promise.resolve(answer).then(undefined, (error: unknown) => this.#listenerFailed(event, error))
        }
      } catch (error) {
        this.#listenerFailed(event, error)
      }
    }
  }

  /** An 'error' event; nobody listening is no reason to throw, but a process warning says it. */
  trouble(error: unknown): void {
    const said = error instanceof Error ? error : new PieceworkError('PW_BUG', `Thrown: ${String(error)}`)
    if (this.heard('error')) this.emit('error', said)
    else warn(said)
  }

  #listenerFailed(event: keyof WorkerEvents, cause: unknown): void {
    const error = new PieceworkError('PW_STRAY_ERROR', `A listener of '${event}' failed.`, { event }, { cause })
    // An 'error' listener that fails would only be told of its own failure, again and again.
    if (event === 'error') warn(error)
    else this.trouble(error)
  }
}
