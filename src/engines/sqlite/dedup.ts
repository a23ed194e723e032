// Who holds a dedup key: a task that comes back to a queue, or into it, takes its key along if nobody holds it there.
import type { Session } from './session.js'

/** The dedup key, now held by this task; null when another one holds it. */
export function dedupFor(s: Session, queue: number, dedupKey: string, task: number): string | null {
  if (s.q.takeDedup.run(queue, dedupKey, task).changes > 0) return dedupKey
  const { endsAt } = s.q.dedupOf.get(queue, dedupKey) as { endsAt: number | null }
  if (endsAt === null || endsAt > s.now) return null
  s.q.retakeDedup.run(task, queue, dedupKey)
  return dedupKey
}
