// All commands of the command line, as the parser and the pages made from their help see them.
import { Command } from 'commander'
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
import { common } from './program.js'

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

/** The commands; `refuse` gets what the parser would print of a refusal. */
export function programOf(refuse: (text: string) => void): Command {
  const program = new Command('piecework')
    .description('A durable work queue: one command, one file, nothing lost.')
    .version(versionOf())
    .enablePositionalOptions()
  for (const command of commands) command(program)
  finish(program, refuse)
  return program
}

/** Every command has the common options; and the parser throws what it would print, so that all errors look alike. */
function finish(command: Command, refuse: (text: string) => void): void {
  common(command)
    .helpCommand(false)
    .showSuggestionAfterError(false)
    .exitOverride()
    .configureOutput({ writeErr: refuse })
  for (const inner of command.commands) finish(inner, refuse)
}
