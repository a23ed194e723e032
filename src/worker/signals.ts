// Listens to the process's signals for the workers that asked for it, with one listener a signal.

/** Who wants to hear of a signal; one listener for all, so that a dozen workers do not look like a leak. */
const wanted = new Map<NodeJS.Signals, { hear: () => void; listeners: Set<() => void> }>()

/** Calls `listener` at each of these signals until the function that is answered is called. */
export function onSignals(names: readonly NodeJS.Signals[], listener: () => void): () => void {
  for (const name of names) {
    let entry = wanted.get(name)
    if (!entry) {
      const listeners = new Set<() => void>()
      const hear = () => {
        for (const each of [...listeners]) each()
      }
      entry = { hear, listeners }
      wanted.set(name, entry)
      process.on(name, hear)
    }
    entry.listeners.add(listener)
  }
  return () => {
    for (const name of names) {
      const entry = wanted.get(name)
      entry?.listeners.delete(listener)
      if (!entry || entry.listeners.size > 0) continue
      wanted.delete(name)
      process.off(name, entry.hear)
    }
  }
}
