// Makes commits durable off the thread: one shared fdatasync of the log for everything committed before it started.
import { closeSync, fdatasync, fdatasyncSync, fsyncSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Clock } from '../../ground/clock.js'
import { PieceworkError } from '../../ground/errors.js'
import type { Durability } from './store.js'

/** The durability port of the engine. A failed sync is final: every later call rejects too. */
export interface Syncer {
  /** Resolves after a sync that started after this call. */
  after(): Promise<void>
  /** Has what is committed now synced within 50 ms, without anybody waiting. */
  soon(): void
  /** Syncs here and now; blocks. */
  now(): void
  close(): void
}

/** A syncer for stores that keep nothing (`:memory:`). */
const noSync: Syncer = { after: () => Promise.resolve(), soon() {}, now() {}, close() {} }

/** No call waits for a sync (`relaxed`), or needs one more (`full`); numbers are reserved on the disk all the same. */
export const unawaited = (syncer: Syncer): Syncer => ({ ...syncer, after: noSync.after, soon: noSync.soon })

/** What makes the commits of a store durable, by the durability asked for; default `group`. */
export function syncerOf(file: string, durability: Durability | undefined, clock: Clock): Syncer {
  if (file === ':memory:') return noSync
  const syncer = walSyncer(file, clock)
  return durability === 'relaxed' ? unawaited(syncer) : syncer
}

/**
 * Syncs the write-ahead log of `file` through a descriptor of its own. The caller keeps a connection to the file open
 * until `close()`: while one is open SQLite neither removes the log nor makes another.
 */
export function walSyncer(file: string, clock: Clock): Syncer {
  const fd = openSync(`${file}-wal`, 'r')
  // The log's name must survive too: one sync of the folder after the log exists.
  const folder = openSync(dirname(file), 'r')
  fsyncSync(folder)
  closeSync(folder)
  return syncer(clock, (done) => fdatasync(fd, done), {
    now: () => fdatasyncSync(fd),
    close: () => closeSync(fd),
  })
}

/** The sharing logic over any sync; exported so that tests can fail, delay and count it. */
export function syncer(
  clock: Clock,
  sync: (done: (error: Error | null) => void) => void,
  port: { now(): void; close(): void },
): Syncer {
  let waiting: { resolve: () => void; reject: (error: Error) => void }[] = []
  let running = false
  let planned = false
  let failed: PieceworkError | null = null
  let closing = false

  const fail = (error: Error) => {
    failed = new PieceworkError('PW_SYNC_FAILED', `The disk refused a sync: ${error.message}`, {}, { cause: error })
  }
  const start = () => {
    running = true
    const served = waiting
    waiting = []
    sync((error) => {
      running = false
      if (error) fail(error)
      // A later sync would say nothing of what this one lost: whoever waits for it is refused, too.
      const ended = failed ? [...served, ...waiting.splice(0)] : served
      for (const waiter of ended) failed ? waiter.reject(failed) : waiter.resolve()
      if (waiting.length > 0) start()
      else if (closing) port.close()
    })
  }
  return {
    after() {
      if (failed) return Promise.reject(failed)
      return new Promise((resolve, reject) => {
        waiting.push({ resolve, reject })
        if (!running) start()
      })
    },
    soon() {
      if (planned || running || failed) return
      planned = true
      clock.after(40, () => {
        planned = false
        if (!running && !failed && !closing) start()
      })
    },
    now() {
      if (failed) throw failed
      try {
        port.now()
      } catch (error) {
        fail(error as Error)
        throw failed
      }
    },
    close() {
      closing = true
      if (!running) port.close()
    },
  }
}
