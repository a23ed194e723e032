// When a failed task comes back: exponential backoff with full jitter.
import type { Random } from '../ground/clock.js'
import type { Backoff } from './limits.js'

/** Milliseconds until delivery `spent + 1`, after `spent` deliveries were spent (1 or more). */
export function backoffMs(backoff: Backoff, spent: number, random: Random): number {
  const grown = backoff.baseMs * backoff.factor ** Math.max(0, spent - 1)
  const ceiling = Math.min(grown, backoff.maxMs)
  return Math.round(backoff.jitter === 'full' ? ceiling * random() : ceiling)
}
