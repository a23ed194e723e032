// Finds what a command names, or says clearly that it is not there.
import { closest } from '../ground/closest.js'
import { PieceworkError } from '../ground/errors.js'
import { checkName } from '../task/limits.js'
import type { HistoryRecord, QueueRecord, TaskRecord } from '../task/records.js'
import { isoOf } from './print.js'
import type { Store } from './store.js'

/** The queue; throws PW_NAME_INVALID, or PW_QUEUE_UNKNOWN with the nearest name. */
export async function queueNamed(store: Store, name: unknown): Promise<QueueRecord> {
  const wanted = checkName('queue name', name)
  const all = (await store.engine.select('queue', {}, null)).items as unknown as QueueRecord[]
  const found = all.find((queue) => queue.name === wanted)
  if (found !== undefined) return found
  const near = closest(
    wanted,
    all.map((queue) => queue.name),
  )
  const hint = near === null ? '' : ` Did you mean ${JSON.stringify(near)}?`
  throw new PieceworkError('PW_QUEUE_UNKNOWN', `There is no queue ${JSON.stringify(wanted)}.${hint}`, { queue: wanted })
}

/** The names of all queues. */
export const queueNames = async ({ engine }: Store): Promise<string[]> =>
  (await engine.select('queue', {}, null)).items.map((row) => row.name as string)

/** The task with this id, in this queue if one is given; throws PW_TASK_GONE. */
export async function taskNamed(store: Store, id: string, queue: string | null): Promise<TaskRecord> {
  const page = await store.engine.select('task', { ids: [checkName('task id', id)] }, null)
  const row = page.items[0] as TaskRecord | undefined
  if (row !== undefined && (queue === null || row.queue === queue)) return row
  const where = queue === null ? '' : ` in queue ${JSON.stringify(queue)}`
  throw new PieceworkError('PW_TASK_GONE', `There is no task ${id}${where}.`, { id })
}

/** The deliveries of a task that did not finish it, the oldest first, with instants as text. */
export async function historyOf(store: Store, id: string): Promise<Record<string, unknown>[]> {
  const rows = (await store.engine.select('history', { ids: [id] }, null)).items as unknown as HistoryRecord[]
  return rows.map(({ task: _, ...row }) => ({ ...row, startedAt: isoOf(row.startedAt), endedAt: isoOf(row.endedAt) }))
}

/** All tasks that a filter matches, page by page. */
export async function* tasksOf(
  store: Store,
  filter: Parameters<Store['engine']['select']>[1],
  limit: number,
): AsyncGenerator<TaskRecord> {
  let left = limit
  for (let cursor: string | null = null; left > 0; ) {
    const page = await store.engine.select('task', { ...filter, limit: Math.min(left, 500) }, cursor)
    yield* page.items as unknown as TaskRecord[]
    left -= page.items.length
    if (page.next === null) return
    cursor = page.next
  }
}
