// The only place that touches the machine's clocks, timers and randomness, so that tests can put their own in.
import { execFileSync } from 'node:child_process'
import { randomFillSync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { uptime } from 'node:os'

/** A pending timer; cancelling twice, or after it fired, does nothing. */
export interface Timer {
  cancel(): void
}

/** Clocks and timers of one machine. All instants and durations are milliseconds, fractions allowed. */
export interface Clock {
  /** Never steps back, stops while the machine sleeps, the same for every process since this boot. */
  monotonicMs(): number
  /** The wall clock; may jump. */
  wallMs(): number
  /** Time since boot including sleep; coarse (10 ms). */
  uptimeMs(): number
  /** Names this boot of this machine; differs after a restart. */
  readonly bootId: string
  /** Calls `fn` once after `ms`; `keepAlive` (default false) holds the process open until then. */
  after(ms: number, fn: () => void, keepAlive?: boolean): Timer
  /** Calls `fn` when this turn of the event loop has been worked off. */
  soon(fn: () => void): void
}

/** A source of numbers in [0, 1). */
export type Random = () => number

export const systemClock: Clock = {
  monotonicMs: () => Number(process.hrtime.bigint()) / 1e6,
  wallMs: () => Date.now(),
  uptimeMs: () => uptime() * 1000,
  bootId: readBootId(),
  after(ms, fn, keepAlive = false) {
    // A delay beyond 2^31-1 would fire at once; nothing here needs to wait longer than a day in one step.
    const timer = setTimeout(fn, Math.min(Math.max(ms, 0), 86_400_000))
    if (!keepAlive) timer.unref()
    return { cancel: () => clearTimeout(timer) }
  },
  soon: (fn) => void setImmediate(fn),
}

export const systemRandom: Random = randomFrom(Buffer.alloc(6 * 512))

/** Numbers nobody can foresee, since receipts are made of them; asked of the system by the bufferful. */
function randomFrom(pool: Buffer): Random {
  let next = pool.length
  return () => {
    if (next === pool.length) {
      randomFillSync(pool)
      next = 0
    }
    next += 6
    return pool.readUIntBE(next - 6, 6) / 2 ** 48
  }
}

/** Resolves after `ms` on the given clock, or at once when `signal` aborts; never rejects. */
export function pause(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const end = () => {
      timer.cancel()
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const timer = clock.after(ms, end, true)
    signal?.addEventListener('abort', end, { once: true })
  })
}

function readBootId(): string {
  try {
    if (process.platform === 'linux') return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    if (process.platform === 'darwin') {
      return execFileSync('/usr/sbin/sysctl', ['-n', 'kern.bootsessionuuid'], { encoding: 'utf8' }).trim()
    }
  } catch {
    // Fall through: a sandbox may hide it.
  }
  // The minute of the boot: as good as it gets where the system has no name for a boot.
  return `boot-${Math.round((Date.now() - uptime() * 1000) / 60_000)}`
}
