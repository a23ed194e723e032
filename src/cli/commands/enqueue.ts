// `piecework enqueue`: puts tasks into a queue, from arguments or from an input of any length.
import type { Command } from 'commander'
import type { NewTask } from '../../engine/contract.js'
import { systemClock } from '../../ground/clock.js'
import { PieceworkError } from '../../ground/errors.js'
import { enqueueAll } from '../../queue/bulk.js'
import { type TaskOptions, taskOf } from '../../queue/options.js'
import { checkName } from '../../task/limits.js'
import { checkPayloadText, encodePayload } from '../../task/payload.js'
import { openInput } from '../input.js'
import { type Format, formatNamed, formatOf, formats, type Item, linesHint } from '../items.js'
import { counted, type Output } from '../print.js'
import { type Act, acts } from '../program.js'
import { fileOf, type Store, withStore } from '../store.js'
import { collected, duration, pair, whole } from '../values.js'

interface Given {
  text?: boolean
  input?: string
  format?: string
  type?: string
  delay?: string
  priority?: string
  key?: string
  dedupKey?: string
  deadline?: string
  batch?: string
  header?: string[]
}

export function enqueueCommand(program: Command): void {
  const command = program
    .command('enqueue')
    .description('put tasks into a queue; prints one id a line, with --input only how many')
    .argument('<queue>', 'the queue')
    .argument('[json...]', 'payloads, each one JSON value')
    .option('--text', 'the arguments are plain texts, not JSON')
    .option('--input <file>', 'enqueue one task for each item of a file; - is stdin')
    .option('--format <format>', `${formats.join(', ')} (default: by the file's extension, else lines)`)
    .option('--type <type>', "the tasks' type (default: the queue's name)")
    .option('--delay <duration>', 'not before so long from now')
    .option('--priority <n>', '-100 to 100: n steps jump ahead of work that came up to n minutes earlier')
    .option('--key <key>', 'tasks of one key run one after the other, in order')
    .option('--dedup-key <key>', 'while a task with this key lives, no second one is made')
    .option('--deadline <duration>', 'dead when it was not started within so long')
    .option('--batch <name>', 'the batch that counts them')
    .option('--header <name=value>', 'a text beside the payload; may be repeated', collected)
  acts(command, act)
}

/** Ids that an error names one by one. */
const idsMax = 20

const act: Act = async (context, args, options) => {
  const given = options as Given
  const queue = checkName('queue name', args[0])
  const texts = args[1] as string[]
  if (given.input === undefined) {
    if (given.format !== undefined)
      throw new PieceworkError('PW_USAGE', '--format says what --input holds; there is none.')
    if (texts.length === 0) {
      throw new PieceworkError(
        'PW_USAGE',
        'There is nothing to enqueue: give JSON, or --input FILE (--input - for stdin).',
      )
    }
  } else if (texts.length > 0 || given.text === true) {
    const what = texts.length > 0 ? 'Payloads as arguments' : '--text'
    throw new PieceworkError('PW_USAGE', `${what} and --input exclude each other.`)
  }
  const taskOptions = optionsOf(given)
  const make = (payload: string) => taskOf(queue, payload, taskOptions)
  // Checked before a store is made for a mistyped option.
  make('null')
  if (given.input !== undefined) {
    const format = given.format === undefined ? formatOf(given.input) : formatNamed(given.format)
    const hint = given.format === undefined ? linesHint(given.input) : null
    if (hint !== null) context.output.say(hint)
    return fromInput(context.url, given.input, format, make, context.output)
  }
  const tasks = texts.map((text, index) => make(payloadOf(text, index, given.text === true)))
  return withStore(context.url, { create: true }, (store) => fromArguments(store, tasks, context.output))
}

function optionsOf(given: Given): TaskOptions {
  const { type, key, dedupKey, batch, delay, deadline, priority, header } = given
  const options: TaskOptions = { type, key, dedupKey, batch }
  if (delay !== undefined) options.delayMs = duration('--delay', delay)
  if (deadline !== undefined) options.deadlineMs = duration('--deadline', deadline)
  if (priority !== undefined) options.priority = whole('--priority', priority, -100, 100)
  if (header !== undefined) options.headers = Object.fromEntries(header.map((text) => pair('--header', text)))
  return options
}

function payloadOf(text: string, index: number, plain: boolean): string {
  try {
    return plain ? encodePayload(text) : checkPayloadText(text)
  } catch (error) {
    if (!(error instanceof PieceworkError)) throw error
    throw new PieceworkError(error.code, `Argument ${index + 1}: ${error.message}`, { ...error.details, index })
  }
}

async function fromArguments(store: Store, tasks: NewTask[], output: Output): Promise<number> {
  const answers = await store.connection.enqueueAll(tasks)
  const ids = answers.map(({ id }) => id)
  output.did(
    `${counted(ids.length, 'task')} stored, ${ids.length > idsMax ? `${ids[0]} … ${ids.at(-1)}` : ids.join(' ')}`,
  )
  for (const { id, duplicate } of answers) await (output.json ? output.value({ id, duplicate }) : output.result(id))
  return 0
}

async function fromInput(
  url: string,
  path: string,
  format: Format,
  make: (payload: string) => NewTask,
  output: Output,
): Promise<number> {
  // A file is looked through first, so that a bad line is met before anything was enqueued.
  const input = await openInput(path, { format, skipInvalid: false, store: fileOf(url), clock: systemClock })
  const sum = await withStore(url, { create: true }, (store) =>
    enqueueAll(store.connection, one(input.items()), (item) => ({ task: make(item.payload) })),
  )
  output.did(`${sum.enqueued} stored, ${sum.duplicates} duplicates`)
  await output.value(sum)
  return 0
}

async function* one(several: AsyncIterable<Item[]>): AsyncGenerator<Item> {
  for await (const items of several) yield* items
}
