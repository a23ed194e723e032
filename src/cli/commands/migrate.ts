// `piecework migrate`: brings a store to this version's format, or prints the statements that would.
import type { Command } from 'commander'
import { engineFor } from '../../engines/open.js'
import { acts } from '../program.js'

export function migrateCommand(program: Command): void {
  const command = program
    .command('migrate')
    .description("bring a store to this version's format; also beside the tables of another program")
    .option('-n, --dry-run', 'print the statements and change nothing')
  acts(command, async ({ url, output }, _args, options) => {
    const dryRun = options.dryRun === true
    const statements = await engineFor(url).migrate(dryRun)
    if (!dryRun) output.did(`the store is migrated in ${statements.length} steps`)
    if (output.json) await output.value(dryRun ? { statements, dryRun } : { statements })
    else if (dryRun) for (const statement of statements) await output.result(statement)
    else await output.result(statements.length === 0 ? 'nothing to migrate' : `migrated in ${statements.length} steps`)
    return 0
  })
}
