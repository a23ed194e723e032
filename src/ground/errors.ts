// Every error of the product: one class, one table of codes with meaning, why and cure.
import { brokerCodes, type Entry } from './broker-codes.js'
import { commandCodes } from './command-codes.js'
import { scheduleCodes } from './schedule-codes.js'
import { taskCodes } from './task-codes.js'
import { transactionCodes } from './transaction-codes.js'

export const errorTable = {
  ...brokerCodes,
  ...commandCodes,
  ...scheduleCodes,
  ...taskCodes,
  ...transactionCodes,
  PW_BUG: {
    meaning: 'A check inside piecework failed.',
    why: 'Our own code met a state that it holds to be impossible.',
    cure: 'Report it with the text of this error; the store is left as it was before the call.',
  },
  PW_BUSY: {
    meaning: 'The store could not be written in time.',
    why: 'Another program held the write lock of the file, without a break, for longer than this call waits.',
    cure: 'Look for a program with an open transaction on the file; then repeat the call.',
    retryable: true,
    exit: 3,
  },
  PW_CANCELLED: {
    meaning: 'The task was cancelled while it ran.',
    why: 'Somebody called cancel on it; an ack that arrives first still wins.',
    cure: 'Nothing to do: stop the work and return.',
  },
  PW_CLOSED: {
    meaning: 'The connection was closed.',
    why: 'close() was called on this object before this call.',
    cure: 'Call connect() again, or call close() later.',
  },
  PW_DISK_FULL: {
    meaning: 'There is no room for more tasks.',
    why: 'The disk that holds the store, or its quota, is full.',
    cure: 'Free space on that disk. Nothing accepted was lost.',
    retryable: true,
    exit: 3,
  },
  PW_DRAIN_STUCK: {
    meaning: 'The queue cannot drain.',
    why: 'Open tasks are left, none leased or due later, all of them paused, held or without a worker for their type.',
    cure: 'Resume the queue, or start a worker that handles the types named in the details.',
  },
  PW_DRAIN_TIMEOUT: {
    meaning: 'The queue was not drained in the time given.',
    why: 'Tasks were still open when waitMs had passed.',
    cure: 'Wait longer, add workers, or seal the batch that nobody has sealed; nothing was stopped.',
    retryable: true,
  },
  PW_ENGINE_UNKNOWN: {
    meaning: 'No engine knows this URL.',
    why: 'The part before the colon is none of sqlite, postgres, postgresql, http, https.',
    cure: 'Write sqlite:FILE, sqlite::memory:, postgres://… or http://…; without a URL it is sqlite:piecework.db.',
  },
  PW_FILTER_MISSING: {
    meaning: 'This call would touch every task and nobody said so.',
    why: 'A filter was empty, so that it matches everything.',
    cure: 'Name ids or a filter, or say that you mean all: --all on the command line, { all: true } in a program.',
  },
  PW_HANDLER_HUNG: {
    meaning: 'Every slot of this worker is held by a handler that ignored its signal.',
    why: 'The handlers ran past timeoutMs and did not end when their signal aborted.',
    cure: 'Make them listen to delivery.signal; restart the process, which has stopped claiming.',
  },
  PW_HANDLER_INVALID: {
    meaning: 'The handler cannot be used.',
    why: 'It is neither a function nor an object of functions by type.',
    cure: 'Pass async (payload, delivery) => …, or { typeName: async (payload, delivery) => … }.',
  },
  PW_JSON_INVALID: {
    meaning: 'A payload is not valid JSON text.',
    why: 'The text given could not be read as one JSON value.',
    cure: 'Correct it there. Plain texts are meant? `enqueue --text` takes them as arguments, --format lines as input.',
  },
  PW_LEASE_LOST: {
    meaning: 'This delivery no longer holds its task.',
    why: 'Its lease ended or its worker was declared dead, and the task went to somebody else or ended.',
    cure: 'Stop the work; the task is taken care of. Lengthen leaseMs if healthy work is cut off.',
  },
  PW_LOG_GROWTH: {
    meaning: 'The write-ahead log of the store keeps growing.',
    why: 'A process has had a read open for so long that the log cannot start over; it grows until the disk is full.',
    cure: 'End the long read of the process named: close its cursor or transaction, or stop it.',
  },
  PW_LIMIT_IN_USE: {
    meaning: 'The limit cannot be removed.',
    why: 'Queues draw on it; without it they would run without a ceiling.',
    cure: 'Take it out of their `uses` first: piecework queue set QUEUE uses=…, or in the code.',
  },
  PW_LIMIT_UNKNOWN: {
    meaning: 'There is no such limit.',
    why: 'The name is misspelled, or the limit was never set.',
    cure: '`piecework limit list` lists the limits; piecework limit set NAME concurrency=20 makes one.',
  },
  PW_NAME_INVALID: {
    meaning: 'A name cannot be used.',
    why: 'Names have 1 to 200 characters, any Unicode but control characters and lone surrogates.',
    cure: 'Choose another name; the offending place is in the message.',
  },
  PW_NOT_OURS: {
    meaning: 'The file is not a piecework store.',
    why: 'It is no SQLite database, or one that another program made.',
    cure: 'Name another file; this one was left untouched.',
    exit: 3,
  },
  PW_NETWORK_FS: {
    meaning: 'The store would be on a network file system.',
    why: 'Locks and syncs do not hold there what a SQLite file needs, so tasks could be lost.',
    cure: 'Put the file on a local disk.',
    exit: 3,
  },
  PW_NO_POSTGRES: {
    meaning: 'The PostgreSQL driver is not installed.',
    why: 'pg is an optional peer: only those who use PostgreSQL install it.',
    cure: 'Run: npm install pg',
    exit: 3,
  },
  PW_NO_SQLITE: {
    meaning: 'The SQLite driver is not installed.',
    why: 'better-sqlite3 is an optional dependency, and it was left out or could not be built here.',
    cure: 'Run: npm install better-sqlite3@12.11.1',
    exit: 3,
  },
  PW_OPTION_INVALID: {
    meaning: 'An option has a value it cannot have.',
    why: 'The value is of the wrong kind or out of its range.',
    cure: 'Change the value; the message says what is wrong with it.',
  },
  PW_OPTION_UNKNOWN: {
    meaning: 'There is no such option.',
    why: 'The name is misspelled or belongs to another call.',
    cure: 'Use a name from the message, or from --help.',
  },
  PW_PAYLOAD_CORRUPT: {
    meaning: 'A stored payload could not be read.',
    why: 'The text in the store is not JSON: it was changed by another program or the disk.',
    cure: 'Look at the dead letter, edit it or discard it.',
  },
  PW_PAYLOAD_INVALID: {
    meaning: 'A payload does not fit the schema of its queue.',
    why: 'The schema given to queue() refused the value.',
    cure: 'Correct the value as the issues in the details say.',
  },
  PW_PAYLOAD_NOT_JSON: {
    meaning: 'A value cannot be held in JSON.',
    why: 'JSON has no undefined, function, symbol, bigint, NaN, Infinity, Map, Set or bytes.',
    cure: 'Convert the value at the path named: bytes to base64, a bigint to a string, a Map to an array of pairs.',
  },
  PW_PAYLOAD_TOO_DEEP: {
    meaning: 'A payload is nested too deeply.',
    why: 'More than 64 arrays and objects stand inside each other.',
    cure: 'Flatten it, or store it elsewhere and enqueue a reference.',
  },
  PW_PAYLOAD_TOO_LARGE: {
    meaning: 'A payload is too large.',
    why: 'Its JSON text has more than 1 MiB (1 048 576 bytes).',
    cure: 'Store the data elsewhere and enqueue a reference to it.',
  },
  PW_POLICY_CHANGED: {
    meaning: 'Two builds disagree about the policy of a queue.',
    why: 'A process started later and declared other values in queue(); the later start wins.',
    cure: 'Deploy one build everywhere, or connect with { policy: "strict" } to refuse instead.',
  },
  PW_POLICY_FORCE: {
    meaning: 'The change would break a promise made to tasks that are there.',
    why: 'Tasks of one key were promised to run in order. With another width they would not, or the others would wait.',
    cure: 'Let them be worked off first, or mean it: configure(policy, { force: true }), piecework queue set --force.',
  },
  PW_PROCESS_ENDED: {
    meaning: 'A handler ended the process of its worker.',
    why: 'It called process.exit(), or threw where nobody can catch it: in a timer or an emitter.',
    cure: 'Let the handler return or throw instead. What the process held goes to other workers, as spent deliveries.',
  },
  PW_QUEUE_UNKNOWN: {
    meaning: 'There is no such queue.',
    why: 'No task was ever enqueued under this name and no policy was set for it.',
    cure: 'Check the spelling; `piecework status` lists the queues.',
  },
  PW_SCHEMA_NEW: {
    meaning: 'The store was written by a newer version.',
    why: 'Its format number is above the one this version knows.',
    cure: 'Update piecework to the version named, or use another file.',
    exit: 3,
  },
  PW_SCHEMA_OLD: {
    meaning: 'The store has an older format and may not be migrated here.',
    why: 'It cannot be written, or a command that only uses a store met it: those never migrate one.',
    cure: 'Stop the processes of the older version, then run `piecework migrate` where it can be written.',
    exit: 3,
  },
  PW_STOPPING: {
    meaning: 'The worker is stopping.',
    why: 'stop() was called or a signal arrived, and the grace time has passed.',
    cure: 'End the work; the task is released, uncounted, and goes to another worker.',
  },
  PW_STORE_DAMAGED: {
    meaning: 'The file of the store is damaged.',
    why: 'A page of it is not what SQLite wrote: the disk or another program changed it.',
    cure: 'Stop all processes, copy the file, restore a backup or run `sqlite3 FILE .recover`; then check the disk.',
    exit: 3,
  },
  PW_STORE_FAILED: {
    meaning: 'The store answered with an error.',
    why: 'The database or the disk below it failed; its own words are in the message.',
    cure: 'Mend what they name, then repeat the call; nothing of this call was kept.',
    retryable: true,
    exit: 3,
  },
  PW_STORE_MISSING: {
    meaning: 'There is no store at this place.',
    why: 'This command only uses a store that is there, or the folder for a new one is missing.',
    cure: 'Check --url or PIECEWORK_URL, and the folder; enqueue, run, work, serve and migrate make a store.',
    exit: 3,
  },
  PW_STORE_LINKED: {
    meaning: 'The file has a second name.',
    why: 'Its log stands beside the name it is opened by: with two, what one program accepts the other never sees.',
    cure: 'Leave the file one name: remove the hard links, or mount its whole folder into the container.',
    exit: 3,
  },
  PW_STORE_MOVED: {
    meaning: 'The file was replaced, moved or removed while it was open.',
    why: 'What is written now would go to a file that nobody finds again, so this process stopped using it.',
    cure: 'Stop all processes of the store, put the right file in place, start again. Stop them first next time.',
    exit: 3,
  },
  PW_STORE_READONLY: {
    meaning: 'The store cannot be written.',
    why: 'The file or its folder is read-only for this user.',
    cure: 'Change its permissions or name another file.',
    exit: 3,
  },
  PW_STRAY_ERROR: {
    meaning: 'Code of yours failed where no delivery could carry the error.',
    why: 'A listener of worker.on() threw, or a handler settled twice or failed after its delivery had been settled.',
    cure: 'Look at the cause of this error; the worker went on and no task was hurt.',
  },
  PW_STORE_UNREACHABLE: {
    meaning: 'The database cannot be reached.',
    why: 'It is down, restarting, only reads, or the network between is broken; a commit under way may have happened.',
    cure: 'Repeat the call later, with the same request or dedup key; nothing accepted is lost.',
    retryable: true,
    exit: 3,
  },
  PW_SYNC_FAILED: {
    meaning: 'The disk refused to make writes durable.',
    why: 'fdatasync failed, so nobody can know what the disk kept; this process stopped using the store.',
    cure: 'Check the disk and the system log, then start again. Calls that had returned success are safe.',
    exit: 3,
  },
  PW_TIMEOUT: {
    meaning: 'The handler ran longer than timeoutMs.',
    why: 'One delivery may run that long; the task is retried.',
    cure: 'Raise timeoutMs, split the task, or find out what it waits for.',
  },
} as const satisfies Record<string, Entry>

export type ErrorCode = keyof typeof errorTable

/** What an error carries beside its message: the offending values, for programs. */
export type ErrorDetails = Record<string, unknown>

/** The one error class of the product. `message` says what happened with the offending value, `cure` what to do. */
export class PieceworkError extends Error {
  override readonly name = 'PieceworkError'
  readonly code: ErrorCode
  readonly why: string
  readonly cure: string
  readonly retryable: boolean
  readonly details: ErrorDetails

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}, options?: { cause?: unknown }) {
    super(message, options)
    const entry: Entry = errorTable[code]
    this.code = code
    this.why = entry.why
    this.cure = entry.cure
    this.retryable = entry.retryable === true
    this.details = details
  }
}
