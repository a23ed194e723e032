// The error codes that only the command line has.
import type { Entry } from './broker-codes.js'

export const commandCodes = {
  PW_ARGUMENT_INVALID: {
    meaning: 'An item cannot be an argument of COMMAND.',
    why: 'It holds a NUL character, or it is longer than the system lets an argument be.',
    cure: 'Let COMMAND read the item from its standard input: piecework run --stdin.',
  },
  PW_BATCH_OTHER_COMMAND: {
    meaning: 'This input has unfinished work under another COMMAND.',
    why: 'A batch of the same file has open or dead items, and COMMAND has none of its own yet.',
    cure: 'Say --batch NAME (with --retry-dead for dead ones) or --new, or remove the other as the message says.',
  },
  PW_BATCH_UNORDERED: {
    meaning: 'The outputs of this batch cannot be kept in order.',
    why: 'Its items were enqueued by a run without --keep-order, and some of them are still there.',
    cure: 'Leave --keep-order out, or say --batch NAME for a batch of its own, or --new to begin this one anew.',
  },
  PW_COMMAND_MISSING: {
    meaning: 'COMMAND was not found.',
    why: 'There is no such file, or none of that name in the folders of PATH.',
    cure: 'Correct the name or PATH; nothing was counted, and the same run goes on afterwards.',
    exit: 127,
  },
  PW_COMMAND_REFUSED: {
    meaning: 'COMMAND cannot be executed.',
    why: 'The file is there, but it is a folder, lacks the permission to execute, or is no program.',
    cure: 'Make it executable (chmod +x); nothing was counted, and the same run goes on afterwards.',
    exit: 126,
  },
  PW_COMMAND_UNKNOWN: {
    meaning: 'piecework has no such command.',
    why: 'The first word is misspelled, or belongs to a newer version.',
    cure: '`piecework --help` lists the commands.',
  },
  PW_CSV_INVALID: {
    meaning: 'A row of CSV or TSV cannot be read.',
    why: 'A quote does not close or stands where none may, a row is longer than its header, or a column comes twice.',
    cure: 'Correct the line named, or let --skip-invalid put it into the dead letters.',
  },
  PW_FIELD_MISSING: {
    meaning: 'An item lacks a field that COMMAND names.',
    why: 'A word of COMMAND has {field}, and the item is no object or has no such field.',
    cure: 'Correct the name in COMMAND and redrive, or discard the dead letter.',
  },
  PW_HALTED: {
    meaning: 'The run stopped by itself.',
    why: 'So many deliveries failed that --halt (or its default) took all further ones for lost effort.',
    cure: 'Mend the cause; the same command goes on where this one stopped. --halt never goes on regardless.',
    exit: 4,
  },
  PW_HANDLER_UNREADABLE: {
    meaning: 'The handler file cannot be loaded.',
    why: 'It is missing, Node.js cannot read it as a module, or importing it threw.',
    cure: 'Check the path after --handler; `node FILE` shows where it fails. TypeScript has to be compiled first.',
  },
  PW_INPUT_UNREADABLE: {
    meaning: 'The input cannot be read.',
    why: 'The file is missing, is a folder, or may not be read by this user.',
    cure: 'Check the path after --input.',
  },
  PW_INTERRUPTED: {
    meaning: 'The command was interrupted before it changed anything.',
    why: 'Ctrl-C was typed where it asked whether this is meant.',
    cure: 'Nothing to do; --dry-run only counts.',
    exit: 130,
  },
  PW_ITEM_REFUSED: {
    meaning: 'A line of the input is no item.',
    why: 'It was refused when it was read, and --skip-invalid put it into the dead letters.',
    cure: 'Correct the input and run again; then discard this dead letter.',
  },
  PW_OUTPUT_CLOSED: {
    meaning: 'The results cannot be written.',
    why: 'Whoever read them has gone, or the disk they go to is full.',
    cure: 'Run the same command again: a task whose output was not written was not counted as done.',
    exit: 4,
  },
  PW_OWN_FILE: {
    meaning: 'The input is a file of the store itself.',
    why: 'Reading the store as items would enqueue it into itself.',
    cure: 'Name another input file.',
  },
  PW_QUEUE_PAUSED: {
    meaning: 'The queue of a run is paused.',
    why: 'Somebody said `piecework queue pause`; what runs goes on, nothing else starts.',
    cure: '`piecework queue resume NAME` lets it go on.',
  },
  PW_RESULTS_UNWRITTEN: {
    meaning: 'What a command answers could not be written.',
    why: 'The disk that its standard output goes to is full, or refused it.',
    cure: 'Make room there. Run it again only if the message does not say that its work is done.',
    exit: 4,
  },
  PW_SPAWN_FAILED: {
    meaning: 'COMMAND could not be started this time.',
    why: 'The system has no room for another process or another open file.',
    cure: 'Lower --concurrency; the task is given back and comes again.',
    retryable: true,
  },
  PW_UNCONFIRMED: {
    meaning: 'A change to many tasks was not confirmed.',
    why: 'On a terminal the number of tasks has to be typed; elsewhere --yes says it.',
    cure: 'Say --yes when you mean it; where there is --dry-run, look first.',
  },
  PW_USAGE: {
    meaning: 'The command was not called as it has to be.',
    why: 'An argument is missing or there is one too many, or two options exclude each other.',
    cure: 'Add --help to see how it is called.',
  },
  PW_UTF8_INVALID: {
    meaning: 'The input is not UTF-8.',
    why: 'A line holds bytes that are no UTF-8 text; which ones is in the message.',
    cure: 'Convert the input (iconv -t UTF-8), or let --skip-invalid put such lines into the dead letters.',
  },
} as const satisfies Record<string, Entry>
