// Group commit without timers: what arrives while one flush is in flight goes into the next one.
import type { Clock } from './clock.js'

export interface Batcher<I, O> {
  /** Resolves with the answer to this item, in the order of the flush's answers. */
  add(item: I): Promise<O>
  /** Resolves when everything added so far has been answered, well or badly. */
  idle(): Promise<void>
}

interface Entry<I, O> {
  item: I
  resolve: (value: O) => void
  reject: (error: unknown) => void
}

/**
 * Collects items of one turn, hands at most `max` of them to `flush`, and keeps one flush in flight.
 * `flush` must answer with an array of equal length and order; when it throws, every item of that flush rejects.
 */
export function batcher<I, O>(clock: Clock, max: number, flush: (items: I[]) => Promise<readonly O[]>): Batcher<I, O> {
  let pending: Entry<I, O>[] = []
  let busy = false
  const idlers: (() => void)[] = []

  const send = async () => {
    const entries = pending.length <= max ? pending : pending.slice(0, max)
    pending = pending.length <= max ? [] : pending.slice(max)
    try {
      const answers = await flush(entries.map((entry) => entry.item))
      for (let i = 0; i < entries.length; i++) entries[i]?.resolve(answers[i] as O)
    } catch (error) {
      for (const entry of entries) entry.reject(error)
    }
    if (pending.length > 0) clock.soon(send)
    else {
      busy = false
      for (const done of idlers.splice(0)) done()
    }
  }

  return {
    add(item) {
      return new Promise<O>((resolve, reject) => {
        pending.push({ item, resolve, reject })
        if (busy) return
        busy = true
        clock.soon(send)
      })
    },
    idle: () => (busy ? new Promise((resolve) => idlers.push(resolve)) : Promise.resolve()),
  }
}
