// The shape that all commands share: their options, how a refusal of the parser reads, and how a command is run.
import type { Command, CommanderError } from 'commander'
import { closest } from '../ground/closest.js'
import { PieceworkError } from '../ground/errors.js'
import { type Output, outputTo } from './print.js'
import { urlOf } from './store.js'

/** What every command gets beside its own arguments and options. */
export interface Context {
  readonly url: string
  /** True when the user named the store, so that pasteable commands have to name it, too. */
  readonly urlGiven: boolean
  readonly output: Output
  /** The words after `--`; null when there was none. */
  readonly after: readonly string[] | null
}

type Options = Record<string, unknown>
/** Answers the exit code. */
export type Act = (context: Context, args: (string | string[] | undefined)[], options: Options) => Promise<number>

/** Words after `--`, taken away before the parser sees them: it would mix them with a command's own arguments. */
let wordsAfter: readonly string[] | null = null
export const setWordsAfter = (words: readonly string[] | null): void => {
  wordsAfter = words
}

/** The options that stand before or after the name of any command. */
export const common = (command: Command): Command =>
  command
    .option('--url <url>', 'sqlite:FILE, postgres://… or http://… (default: PIECEWORK_URL, else sqlite:piecework.db)')
    .option('--json', 'one JSON object, or one a line for lists')

/** Gives the command an action that leaves its exit code in process.exitCode. */
export function acts(command: Command, act: Act): Command {
  return command.action(async (...given: unknown[]) => {
    const options = command.optsWithGlobals<Options>()
    const url = options.url as string | undefined
    const context: Context = {
      url: urlOf(url),
      urlGiven: url !== undefined,
      output: outputTo(options.json === true),
      after: wordsAfter,
    }
    process.exitCode = await act(context, given.slice(0, -2) as (string | string[] | undefined)[], options)
  })
}

/** Options that users of xargs and GNU parallel reach for, with what says the same here. */
const foreign: Record<string, string> = {
  '--jobs': 'Say -j N or --concurrency N.',
  '--retries': 'Say --deliveries N: it counts the first run, too, so --retries 2 is --deliveries 3.',
  '--resume': 'There is no need: run the same command again and it goes on where it stopped.',
  '--eta': 'There is no need: the time left is part of the progress line.',
  '--max-args': 'Every item gets a COMMAND of its own; to hand over several, make them one item.',
}

/** The parser's refusal as one of our errors; null for help and version, which are none. */
export function refusalOf(error: CommanderError, program: Command, words: readonly string[]): PieceworkError | null {
  const text = error.message.replace(/^error: /, '').replace(/\n/g, ' ')
  switch (error.code) {
    case 'commander.helpDisplayed':
    case 'commander.version':
      return null
    case 'commander.help':
      return new PieceworkError('PW_USAGE', 'The name of a command is missing.')
    case 'commander.unknownOption':
      return unknownOption(text, program, words)
    case 'commander.unknownCommand':
      return unknownCommand(text, program)
    case 'commander.invalidArgument':
      return new PieceworkError('PW_OPTION_INVALID', sentence(text))
    default:
      return new PieceworkError('PW_USAGE', sentence(text))
  }
}

const sentence = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1).replace(/\.?$/, '.')}`

function unknownOption(text: string, program: Command, words: readonly string[]): PieceworkError {
  const option = /'([^'=]+)/.exec(text)?.[1] ?? ''
  const command = words.map((word) => program.commands.find((one) => one.name() === word)).find((one) => one) ?? program
  const group = command.commands.find((one) => words.includes(one.name())) ?? command
  const known = [...group.options, ...program.options].flatMap((one) => (one.hidden || !one.long ? [] : [one.long]))
  const near = closest(option, known)
  const hint = foreign[option] ?? (near ? `Did you mean ${near}?` : '')
  return new PieceworkError('PW_OPTION_UNKNOWN', `There is no option ${option}. ${hint}`.trim(), { option })
}

function unknownCommand(text: string, program: Command): PieceworkError {
  const name = /'([^']+)'/.exec(text)?.[1] ?? ''
  const near = closest(
    name,
    program.commands.flatMap((one) => [one.name(), ...one.commands.map((inner) => inner.name())]),
  )
  const hint = near ? ` Did you mean ${near}?` : ''
  return new PieceworkError('PW_COMMAND_UNKNOWN', `There is no command ${JSON.stringify(name)}.${hint}`, {
    command: name,
  })
}
