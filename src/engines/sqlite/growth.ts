// Notices when the write-ahead log grows without end, and names the process whose read keeps it from starting over.
import { readFileSync, statSync } from 'node:fs'
import type { Clock } from '../../ground/clock.js'
import { PieceworkError } from '../../ground/errors.js'

/** Sixteen times what the log is at a checkpoint: far from anything a busy hour makes of it. */
const bytesMax = 64 * 1024 * 1024
const lookEveryMs = 5000
const repeatEveryMs = 600_000
/** The bytes of the -shm file that readers lock: one for each read mark (the file format of SQLite, section 2.2). */
const firstReadMark = 123
const lastReadMark = 127

/** Answers an error to warn of when the log has outgrown its bounds, at most once in ten minutes; else null. */
export function growthWatch(file: string, clock: Clock): () => PieceworkError | null {
  let nextAtMs = clock.monotonicMs() + lookEveryMs
  let before: ReadonlySet<number> = new Set()
  return () => {
    const now = clock.monotonicMs()
    if (now < nextAtMs) return null
    nextAtMs = now + lookEveryMs
    const bytes = statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0
    const readers = bytes > bytesMax ? readersOf(`${file}-shm`) : new Set<number>()
    // A reader that is there twice in a row is not one of the many that come and go.
    const blocking = [...readers].filter((pid) => before.has(pid))
    before = readers
    if (blocking.length === 0) return null
    nextAtMs = now + repeatEveryMs
    const size = Math.round(bytes / 1024 / 1024)
    const message = `The log of ${file} has ${size} MiB; process ${blocking.join(', ')} keeps it from starting over.`
    return new PieceworkError('PW_LOG_GROWTH', message, { file, bytes, pids: blocking })
  }
}

/** The processes that hold a read mark, by what Linux tells of locks; none where it tells nothing. */
function readersOf(shm: string): Set<number> {
  const pids = new Set<number>()
  try {
    const inode = String(statSync(shm).ino)
    for (const line of readFileSync('/proc/locks', 'utf8').split('\n')) {
      const [, , , kind, pid, where, first, last] = line.trim().split(/\s+/)
      if (kind !== 'READ' || where?.split(':')[2] !== inode) continue
      if (Number(last) >= firstReadMark && Number(first) <= lastReadMark) pids.add(Number(pid))
    }
  } catch {
    // No /proc, or the file is just being made: nothing to say.
  }
  return pids
}
