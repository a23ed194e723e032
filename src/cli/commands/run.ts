// `piecework run`: COMMAND once for each item of an input, durably.
import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { systemClock } from '../../ground/clock.js'
import { PieceworkError } from '../../ground/errors.js'
import type { PolicyPatch } from '../../task/limits.js'
import type { Manner } from '../call.js'
import { lookUp } from '../child.js'
import { itemText } from '../fields.js'
import { haltOf } from '../halt.js'
import { type Input, openInput } from '../input.js'
import { type Format, formatNamed, formatOf, formats, linesHint } from '../items.js'
import { quoted, template } from '../placeholders.js'
import { type Act, acts, type Context } from '../program.js'
import type { Again } from '../report.js'
import { makePlaces } from '../results.js'
import { type RunPlan, runBatch } from '../run.js'
import { fileOf, withStore } from '../store.js'
import { duration, whole } from '../values.js'

/** The options as the parser leaves them: text, or true. */
interface Given {
  [option: string]: string | boolean | undefined
  input?: string
  format?: string
  batch?: string
  replace?: string
}

/**
 * With --keep-order so many items at least, the first included, may be under way or wait with their output for earlier
 * ones: enough that a slow one does not stop the others at once, few enough to be done again after a crash.
 */
const aheadMin = 64

export function runCommand(program: Command): void {
  const run = program
    .command('run')
    .description('run COMMAND once for each item of an input: the durable xargs')
    .usage('[options] -- COMMAND [ARG...]')
    .argument('[command...]', 'COMMAND and its arguments, with {} for the item')
    .passThroughOptions()
    .option('-a, --input <file>', 'where the items are (default: stdin)')
    .option('--format <format>', `${formats.join(', ')} (default: by the file's extension, else lines)`)
    .option('-0, --null', 'items end with NUL, as find -print0 writes them')
    .option('--skip-invalid', 'put items that cannot be read into the dead letters instead of refusing the input')
    .option('-I, --replace <text>', 'what stands for the item in COMMAND instead of {}')
    .option('--stdin', 'write the item to COMMAND on its standard input')
    .option('--arg', 'append the item as the last argument')
    .option('-j, --concurrency <n>', 'COMMANDs at once (default: one for each CPU)')
    .addOption(new Option('-P <n>', 'the same as -j').hideHelp())
    .option('--deliveries <n>', 'how often an item may be tried before it is dead', '3')
    .option('--lease <duration>', 'how long a crash that nobody sees may hold an item', '30s')
    .option('-t, --timeout <duration>', 'the longest run of one COMMAND (default: none)')
    .option('--per-second <n>', 'start so many a second at most')
    .option('--halt <when>', 'never | soon,fail=N | now,fail=N | soon,fail=P% (default: the first 20 all failed alike)')
    .option('-k, --keep-order', 'write outputs in the order of the items')
    .option('--tag', "begin each line of output with the item's text and a tab")
    .option('--results <folder>', "keep each item's output in FOLDER/NUMBER/stdout and stderr")
    .option('--joblog <file>', "append a line for each delivery, with GNU parallel's columns")
    .option('-q, --quiet', 'no progress, no report, no stderr of COMMAND')
    .option('-n, --dry-run', 'print the commands, run nothing')
    .option('--batch <name>', 'the name of the batch (default: from COMMAND and input)')
    .option('--new', "forget this COMMAND's own batch and start it anew; those of other COMMANDs stay")
    .option('--retry-dead', 'send its dead letters on their way again first')
    .addHelpText('after', more)
  acts(run, act)
}

const more = `
In the words of COMMAND, anywhere inside a word:
  {}  the item             {.}  without its extension   {#}  its number
  {/}  its base name       {//}  its folder             {/.}  base name without extension
  {field} {a.b}  a field of an item of ndjson, csv or tsv
  Without any of them, lines and NUL-separated items become the last argument; others go to COMMAND's standard input.

How COMMAND's end counts:
  0  done                  65  bad data: dead at once   75  not now: again later, not counted
  any other, or a signal   again after a while, --deliveries times in all, then dead

Exit codes:
  0  all done              1  dead letters are left     2  refused: usage or input
  3  no store, or broken   4  halted, or output closed  126, 127  COMMAND not executable, not found
  130, 143  interrupted by Ctrl-C, SIGTERM: the same command goes on

Examples:
  find . -name '*.png' -print0 | piecework run -0 -j 4 -- convert {} {.}.webp
  piecework run -a people.csv -k -- echo 'Dear {name},'
  piecework run -a list --retry-dead -- wc -l {}`

const act: Act = async (context, args, options) => {
  const given = options as Given
  const before = (args[0] ?? []) as string[]
  const words = [...before, ...(context.after ?? [])]
  if (words.length === 0)
    throw new PieceworkError('PW_USAGE', 'COMMAND is missing: piecework run [options] -- COMMAND.')
  if (given.stdin === true && given.arg === true)
    throw new PieceworkError('PW_USAGE', '--stdin and --arg exclude each other.')
  const format = formatFor(given)
  const manner = mannerOf(words, given, format)
  const plan = planOf(context, words, given, format, manner)
  const store = fileOf(context.url)
  const skipInvalid = given.skipInvalid === true
  const input = await openInput(given.input ?? null, { format, skipInvalid, store, clock: systemClock })
  refuseFields(manner, input)
  if (given.quiet !== true) hint(context, words, given, format)
  if (given.dryRun === true) return dryRun(context, manner, input)
  plan.run.input = input.name
  makePlaces(plan.results)
  return withStore(context.url, { create: true }, (opened) => runBatch(opened, plan, input, context.output))
}

/** A column that is missing is missing from every record: throws PW_FIELD_MISSING before anything runs. */
function refuseFields({ template, format }: Manner, { first }: Input): void {
  if ((format !== 'csv' && format !== 'tsv') || first === null || first.refused !== null) return
  template.fill({ text: itemText(first.payload), json: first.payload, number: 1 })
}

/** Says what is legal and rarely meant. */
function hint({ output }: Context, words: readonly string[], given: Given, format: Format): void {
  if (format !== 'lines' && format !== 'null') return
  const lines = given.format === undefined && given.input !== undefined ? linesHint(given.input) : null
  if (lines !== null) output.say(lines)
  const field = words.map((word) => /\{[A-Za-z_][\w.]*\}/.exec(word)?.[0]).find((found) => found !== undefined)
  if (field === undefined || field === given.replace) return
  output.say(`piecework: ${field} stays as it is: items of ${format} have no fields, those of ndjson, csv and tsv do`)
}

function formatFor(given: Given): Format {
  if (given.null === true) {
    if (given.format !== undefined && given.format !== 'null') {
      throw new PieceworkError('PW_USAGE', `-0 and --format ${given.format} exclude each other.`)
    }
    return 'null'
  }
  if (given.format !== undefined) return formatNamed(given.format)
  return given.input === undefined ? 'lines' : formatOf(given.input)
}

/** Throws PW_COMMAND_MISSING or PW_COMMAND_REFUSED before anything is made. */
function mannerOf(words: readonly string[], given: Given, format: Format): Manner {
  const structured = format !== 'lines' && format !== 'null'
  if (given.replace === '') throw new PieceworkError('PW_OPTION_INVALID', '-I is empty; it must be a text to replace.')
  const made = template(words, { replace: given.replace, fields: structured })
  const by = given.stdin ? 'stdin' : given.arg ? 'arg' : made.placed ? 'place' : structured ? 'stdin' : 'arg'
  const file = made.variable || given.dryRun === true ? null : lookUp(words[0] ?? '')
  const timeoutMs = typeof given.timeout === 'string' ? duration('--timeout', given.timeout) : null
  return { template: made, format, by, file, timeoutMs }
}

function planOf(context: Context, words: string[], given: Given, format: Format, manner: Manner): RunPlan {
  const text = (option: string) => given[option] as string | undefined
  const count = text('concurrency') ?? text('P')
  const perSecond = text('perSecond')
  const concurrency = count === undefined ? availableParallelism() : whole('--concurrency', count, 1, 10_000)
  return {
    run: {
      words,
      input: '-',
      format,
      name: given.batch ?? null,
      anew: given.new === true,
      keepOrder: given.keepOrder === true,
      ahead: Math.max(aheadMin, 4 * concurrency),
      policy: policyOf(text),
    },
    manner,
    concurrency,
    perSecond: perSecond === undefined ? null : whole('--per-second', perSecond, 1, 1_000_000),
    halt: haltOf(text('halt')),
    haltRule: text('halt'),
    results: {
      tag: given.tag === true,
      folder: text('results') === undefined ? null : resolve(text('results') ?? ''),
      log: text('joblog') ?? null,
      quiet: given.quiet === true,
    },
    retryDead: given.retryDead === true,
    again: againOf(context, process.argv.slice(2), words.length),
  }
}

/** COMMAND is the end of what was typed. */
function againOf({ after, url, urlGiven }: Context, typed: readonly string[], commandWords: number): Again {
  const at = typed.length - commandWords - (after === null ? 0 : 1)
  return { options: typed.slice(0, at), command: typed.slice(at), url: urlGiven ? ['--url', url] : [] }
}

/** A run's queue: few deliveries, soon again, no ceiling of time unless asked for. */
function policyOf(text: (option: string) => string | undefined): PolicyPatch {
  return {
    leaseMs: duration('--lease', text('lease') ?? '30s'),
    // The run itself ends a COMMAND that takes too long: the runtime would count the wait for a turn as well.
    timeoutMs: null,
    deliveriesMax: whole('--deliveries', text('deliveries') ?? '3', 1, 1_000_000),
    backoff: { baseMs: 500 },
  }
}

async function dryRun({ output }: Context, { template, by, format }: Manner, input: Input): Promise<number> {
  const structured = format !== 'lines' && format !== 'null'
  let number = 0
  for await (const items of input.items()) {
    for (const { payload, refused } of items) {
      number++
      if (refused !== null) {
        output.say(`piecework: ${refused}`)
        continue
      }
      const item = itemText(payload)
      const words = template.fill({ text: item, json: structured ? payload : null, number })
      if (by === 'arg') words.push(item)
      const line =
        by === 'stdin' ? `printf '%s\\n' ${quoted([structured ? payload : item])} | ${quoted(words)}` : quoted(words)
      await (output.json
        ? output.value({ number, words, stdin: by === 'stdin' ? payload : null })
        : output.result(line))
    }
  }
  return 0
}
