#!/usr/bin/env node
// The command line's entry: finds the command, runs it, and turns every refusal into one error and one exit code.
import { Command, CommanderError } from 'commander'
import { PieceworkError } from '../ground/errors.js'
import { auditCommand } from './commands/audit.js'
import { batchCommand } from './commands/batch.js'
import { deadCommand } from './commands/dead.js'
import { enqueueCommand } from './commands/enqueue.js'
import { explainCommand } from './commands/explain.js'
import { limitCommand } from './commands/limit.js'
import { migrateCommand } from './commands/migrate.js'
import { planCommand } from './commands/plan.js'
import { queueCommand } from './commands/queue.js'
import { runCommand } from './commands/run.js'
import { scheduleCommand } from './commands/schedule.js'
import { serveCommand } from './commands/serve.js'
import { statusCommand } from './commands/status.js'
import { taskCommand } from './commands/task.js'
import { tokenCommand } from './commands/token.js'
import { versionCommand, versionOf } from './commands/version.js'
import { workCommand } from './commands/work.js'
import { errorText, exitOf, warningText } from './print.js'
import { common, refusalOf, setWordsAfter } from './program.js'

/** In the order in which --help lists them. */
const commands = [
  runCommand,
  enqueueCommand,
  workCommand,
  statusCommand,
  queueCommand,
  taskCommand,
  deadCommand,
  batchCommand,
  scheduleCommand,
  auditCommand,
  limitCommand,
  migrateCommand,
  serveCommand,
  tokenCommand,
  planCommand,
  explainCommand,
  versionCommand,
]

/** What the parser would have printed; shown only when it is the help of a command called without a word. */
let parserText = ''

function programOf(): Command {
  const program = new Command('piecework')
    .description('A durable work queue: one command, one file, nothing lost.')
    .version(versionOf())
    .enablePositionalOptions()
  for (const command of commands) command(program)
  finish(program)
  return program
}

/** Every command has the common options; and the parser throws what it would print, so that all errors look alike. */
function finish(command: Command): void {
  common(command)
    .helpCommand(false)
    .showSuggestionAfterError(false)
    .exitOverride()
    .configureOutput({
      writeErr: (text) => {
        parserText += text
      },
    })
  for (const inner of command.commands) finish(inner)
}

/** Takes what follows `--` from the commands whose last argument it is, and leaves it to the others. */
function split(words: string[]): string[] {
  const command = words.find((word) => !word.startsWith('-'))
  const at = words.indexOf('--')
  if (at === -1 || (command !== 'run' && command !== 'work')) return words
  setWordsAfter(words.slice(at + 1))
  return words.slice(0, at)
}

const words = process.argv.slice(2)
const asksJson = words.slice(0, words.includes('--') ? words.indexOf('--') : undefined).includes('--json')

async function main(): Promise<void> {
  const program = programOf()
  try {
    await program.parseAsync(split(words), { from: 'user' })
  } catch (error) {
    const refusal = error instanceof CommanderError ? refusalOf(error, program, words) : error
    // `list | head` has what it wanted; a run or a worker says itself what its output's end means.
    if (refusal === null || (refusal instanceof PieceworkError && refusal.details.gone === true)) return
    const helped = error instanceof CommanderError && error.code === 'commander.help'
    process.exitCode = exitOf(refusal)
    process.stderr.write(helped && !asksJson ? parserText : `${errorText(refusal, asksJson)}\n`)
  }
}

/** Warnings of the library are for people, in our words. */
process.removeAllListeners('warning')
process.on('warning', (warning) => {
  const { code } = warning as { code?: string }
  if (code?.startsWith('PW_')) process.stderr.write(`${warningText(warning, asksJson)}\n`)
})
/** Somebody closed our stdout: the command hears of it from its own write. */
process.stdout.on('error', () => {})
process.stderr.on('error', () => {})

await main()
// A parent tells by this word who has ended from who was ended, whatever the code.
if (process.send) await new Promise((resolve) => process.send?.('over', resolve))
// Stdin may still be open, and nothing of it is wanted any more.
process.exit()
