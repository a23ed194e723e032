// What follows a batch: the task that is kept with it, and the place that this has in another batch from the start.
import type { NewTask } from '../engine/contract.js'
import { PieceworkError } from '../ground/errors.js'

export interface FollowUp {
  /** Without its batch: that has the place. */
  task: NewTask
  /** The batch (number) that counts it as open long before it is a task, so that this one cannot finish without it. */
  place: number | null
  /** The task, once the batch has finished. */
  id: string | null
}

export const followUpOf = (text: string | null | undefined): FollowUp | null =>
  text == null ? null : (JSON.parse(text) as FollowUp)

/** What a reader is told of it. */
export function shownFollowUp(text: string | null): { queue: string; type: string; id: string | null } | null {
  const followUp = followUpOf(text)
  if (followUp === null) return null
  const { task, id } = followUp
  return { queue: task.queue, type: task.type ?? task.queue, id }
}

/** The follow-up to keep instead of the one that is there; null when they are the same. PW_BATCH_FINISHED. */
export function nextFollowUp(
  row: { name: string; finishedAt: number | null; followUp: string | null },
  { batch: _, ...task }: NewTask,
  place: number | null,
): FollowUp | null {
  const before = followUpOf(row.followUp)
  const words = (one: Omit<FollowUp, 'id'>) => JSON.stringify([one.place, Object.entries(one.task).sort()])
  if (before !== null && words(before) === words({ task, place })) return null
  if (row.finishedAt === null) return { task, place, id: null }
  const text = `The batch "${row.name}" has finished: what follows it can no longer be said.`
  throw new PieceworkError('PW_BATCH_FINISHED', text, { name: row.name })
}

export const waitsForItself = (name: string, other: string) =>
  new PieceworkError(
    'PW_OPTION_INVALID',
    `What follows batch "${name}" cannot be in batch "${other}": that could only finish after itself.`,
    { name, batch: other },
  )
