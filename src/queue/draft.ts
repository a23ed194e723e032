// A task that is made now and enqueued later: checked as an enqueue would be, and handed to whoever enqueues it.
import type { NewTask } from '../engine/contract.js'
import { PieceworkError } from '../ground/errors.js'
import { shown } from '../task/limits.js'
import type { Draft } from './face.js'

export class TaskDraft implements Draft {
  readonly queue: string
  readonly #task: Promise<NewTask>

  /** `make` is called at once, so that later changes of the payload change nothing; what it throws, `task` rejects. */
  constructor(queue: string, make: () => NewTask | Promise<NewTask>) {
    this.queue = queue
    this.#task = new Promise((resolve) => resolve(make()))
    // Whoever uses the draft hears it.
    this.#task.catch(() => {})
  }

  static taskOf(draft: TaskDraft): Promise<NewTask> {
    return draft.#task
  }
}

/** The task of a draft that is to follow a batch; throws PW_OPTION_INVALID for what is none, or could not follow. */
export async function followUpTask(given: unknown): Promise<NewTask> {
  if (!(given instanceof TaskDraft)) {
    throw new PieceworkError('PW_OPTION_INVALID', `onDone is ${shown(given)}; it must be what queue.draft() answered.`)
  }
  const task = await TaskDraft.taskOf(given)
  if (task.dedupKey === undefined) return task
  const text = 'The draft of onDone has a dedupKey; it is enqueued exactly once as it is, so leave the key out.'
  throw new PieceworkError('PW_OPTION_INVALID', text, { dedupKey: task.dedupKey })
}
