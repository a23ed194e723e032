// Errors that a handler leaves behind where nobody waits for them: told apart from the program's own, and reported.
import { AsyncLocalStorage } from 'node:async_hooks'

type Report = (error: unknown) => void

interface Strays {
  /** Who hears of what goes wrong in this asynchronous context. */
  readonly context: AsyncLocalStorage<Report>
}

const name = Symbol.for('piecework.strays')

/** One for all copies of this module: each would take the others' rejections for the program's own. */
function strays(): Strays {
  const global = globalThis as { [name]?: Strays }
  if (!global[name]) {
    const context = new AsyncLocalStorage<Report>()
    global[name] = { context }
    // Never taken away: a handler that ignored its stop may fail long after its worker has gone.
    process.on('unhandledRejection', (reason) => {
      const report = context.getStore()
      // Outside of the context: what a listener leaves behind is the program's own.
      if (report) context.exit(report, reason)
      // The program's own, and nobody else looks after it: it ends as it would have without us.
      else if (process.listenerCount('unhandledRejection') === 1) throw reason
    })
  }
  return global[name]
}

/** Calls `fn`; rejections that it or what it started leaves behind go to `report` instead of ending the process. */
export function withStrays<A extends unknown[], R>(report: Report, fn: (...args: A) => R, ...args: A): R {
  return strays().context.run(report, fn, ...args)
}

type Add = AbortSignal['addEventListener']
type Remove = AbortSignal['removeEventListener']
type Listener = Parameters<Add>[1]

/** The signal; a listener on it that throws, or whose promise rejects, is reported instead of ending the process. */
export function contained(signal: AbortSignal, report: Report): AbortSignal {
  const safe = new WeakMap<object, Listener>()
  const safely = (listener: Listener): Listener => {
    // What is no listener is refused as ever, by the signal itself.
    if (typeof listener !== 'function' && typeof listener?.handleEvent !== 'function') return listener
    const made = safe.get(listener) ?? guarded(listener, report)
    safe.set(listener, made)
    return made
  }
  const add: Add = signal.addEventListener.bind(signal)
  const remove: Remove = signal.removeEventListener.bind(signal)
  return Object.assign(signal, {
    addEventListener: (type: Parameters<Add>[0], listener: Listener, options: Parameters<Add>[2]) =>
      add(type, safely(listener), options),
    removeEventListener: (type: Parameters<Remove>[0], listener: Listener, options: Parameters<Remove>[2]) =>
      remove(type, safely(listener), options),
  })
}

function guarded(listener: Listener, report: Report): Listener {
  return function (this: AbortSignal, event: Event) {
    try {
      const answer: unknown = typeof listener === 'function' ? listener.call(this, event) : listener.handleEvent(event)
      if (answer instanceof Promise) answer.catch(report)
    } catch (error) {
      report(error)
    }
  }
}
