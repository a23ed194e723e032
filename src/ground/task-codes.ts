// The codes that speak of single tasks and of batches: what became of them, and what can no longer be done to them.
import type { Entry } from './broker-codes.js'

export const taskCodes = {
  PW_BATCH_BUSY: {
    meaning: 'The batch cannot start anew or be forgotten while somebody is at work on it.',
    why: 'A run or a worker has it open, and would lose count of what it does.',
    cure: 'Stop that run first, or give the new one a name of its own with --batch.',
    retryable: true,
  },
  PW_BATCH_FINISHED: {
    meaning: 'The batch has finished, and what follows it cannot be changed any more.',
    why: 'It was sealed and nothing of it was open: at that moment its follow-up was enqueued, or there was none.',
    cure: 'Use another batch name, or enqueue the task yourself.',
  },
  PW_BATCH_SEALED: {
    meaning: 'The batch takes no more tasks, and is sealed once.',
    why: 'seal() or cancel() was called on it, so that it can end.',
    cure: 'Use another batch name.',
  },
  PW_BATCH_UNKNOWN: {
    meaning: 'There is no such batch.',
    why: 'No task was ever enqueued into it, or it was forgotten.',
    cure: 'Check the name; `piecework batch list` lists the batches.',
  },
  PW_DUPLICATE_DIFFERS: {
    meaning: 'A task cannot replace another one of its dedup key that has another type or key.',
    why: 'onDuplicate "replace" gives the task that is there a new payload and options, but its type and key stay.',
    cure: 'Use one type and one key for a dedup key, or another dedup key; or cancel the task that is there first.',
  },
  PW_RESULT_LOST: {
    meaning: 'The task is done, but what its handler returned was not kept.',
    why: 'JSON cannot hold it, or it has more than 1 MiB; the work itself is done and is not repeated.',
    cure: 'Return plain data, and large data as a reference to where it lies.',
  },
  PW_TASK_DEAD: {
    meaning: 'The task that was waited for is a dead letter.',
    why: 'It failed for good; details.error has the last error, details.reason why it was not tried again.',
    cure: 'See its history with queue.dead.get(id); redrive it when its cause has gone.',
  },
  PW_TASK_GONE: {
    meaning: 'There is no such task.',
    why: 'It is done, cancelled or discarded, which leaves nothing behind, or the id was never given out.',
    cure: 'Check the id; to ask for tasks that are done, give the queue a resultKeepMs.',
  },
  PW_TASK_NOT_DEAD: {
    meaning: 'The task is no dead letter.',
    why: 'It waits or is being worked on, perhaps since somebody redrove it; only the dead are redriven or edited.',
    cure: 'Look at its state: `piecework task show`, or queue.get(id).',
  },
  PW_WAIT_TIMEOUT: {
    meaning: 'The task had not ended when the time to wait for it was over.',
    why: 'It waits for a worker, or its handler takes longer. The task itself goes on.',
    cure: 'Wait longer, or ask for it later: queue.get(details.id).',
    retryable: true,
  },
} as const satisfies Record<string, Entry>
