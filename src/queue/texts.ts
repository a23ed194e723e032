// Enqueues payloads that are JSON text already, as written: the way in for the command line and other languages.
import type { NewTask } from '../engine/contract.js'
import { checkName } from '../task/limits.js'
import { checkPayloadText } from '../task/payload.js'
import { type EnqueuedMany, enqueueAll } from './bulk.js'
import type { Connection, EnqueuedTask } from './connection.js'
import { checkOptions, type TaskOptions, taskOf } from './options.js'

/** One payload as text. Big numbers, double keys and spelling stay as they are. */
export interface TextTask {
  text: string
  options?: TaskOptions | undefined
  /** Once per batch: an item that was ever added under it answers as a duplicate. */
  identity?: string | undefined
}

/** Throws PW_JSON_INVALID with the offset, PW_PAYLOAD_TOO_LARGE, PW_PAYLOAD_TOO_DEEP, or as enqueue() does. */
export function textTask(queue: string, { text, options, identity }: TextTask): NewTask {
  checkOptions('enqueue', options)
  const task = taskOf(queue, checkPayloadText(text), options)
  return identity === undefined ? task : { ...task, identity }
}

/** One task; shares its commit with the others of its turn. */
export async function enqueueText(connection: Connection, queue: string, task: TextTask): Promise<EnqueuedTask> {
  return connection.enqueue(textTask(checkName('queue name', queue), task))
}

/** Any stream of them in constant memory; an error names the index, and what came before it stays. */
export async function enqueueTexts(
  connection: Connection,
  queue: string,
  items: Iterable<TextTask> | AsyncIterable<TextTask>,
): Promise<EnqueuedMany> {
  checkName('queue name', queue)
  return enqueueAll(connection, items, (item) => ({ task: textTask(queue, item) }))
}
