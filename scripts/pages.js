// Writes the pages that are made from the product: docs/commands.md from every --help, docs/errors.md from the table of
// codes; with --check it only compares.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { programOf } from '../dist/cli/tree.js'
import { errorTable } from '../dist/ground/errors.js'

const folder =
  process.argv.slice(2).find((word) => !word.startsWith('--')) ?? fileURLToPath(new URL('../docs', import.meta.url))

/** What --help prints, at one width wherever this runs. */
function helpOf(command) {
  let text = ''
  command.configureHelp({ helpWidth: 100 }).configureOutput({
    writeOut: (part) => {
      text += part
    },
  })
  command.outputHelp()
  return text.trimEnd()
}

/** Every command that does something, groups before their members. */
const all = (command) => command.commands.flatMap((inner) => [inner, ...all(inner)])

const nameOf = (command) => (command.parent ? `${nameOf(command.parent)} ${command.name()}` : command.name())

function commandsPage() {
  const program = programOf(() => {})
  const sections = all(program).map((command) => `\n## ${nameOf(command)}\n\`\`\`text\n${helpOf(command)}\n\`\`\``)
  return [
    '# Every command',
    '<!-- made by npm run pages -->',
    'What `--help` says, on one page. A result goes to standard output, everything for people to standard error; with',
    '`--json` a result is one object, or one a line for lists.',
    '',
    `\`\`\`text\n${helpOf(program)}\n\`\`\``,
    ...sections,
    '',
  ].join('\n')
}

function errorsPage() {
  /** @type {[string, import('../dist/ground/broker-codes.js').Entry][]} */
  const table = Object.entries(errorTable)
  const codes = table.sort(([a], [b]) => (a < b ? -1 : 1))
  const sections = codes.map(([code, { meaning, why, cure, retryable, exit = 2 }]) =>
    [
      `\n## ${code}`,
      `**${meaning}** ${why}`,
      '',
      `${cure} ${retryable ? 'The same call may succeed later. ' : ''}The command line ends with ${exit}.`,
    ].join('\n'),
  )
  return [
    '# Every error',
    '<!-- made by npm run pages -->',
    'Each error is a `PieceworkError` with `code`, `why`, `cure`, `retryable` and `details`; its message has the value',
    'at fault. `piecework explain CODE` prints what is here.',
    ...sections,
    '',
  ].join('\n')
}

const pages = { 'commands.md': commandsPage(), 'errors.md': errorsPage() }
for (const [name, text] of Object.entries(pages)) {
  const path = join(folder, name)
  if (!process.argv.includes('--check')) writeFileSync(path, text)
  else if (!existsSync(path) || readFileSync(path, 'utf8') !== text) {
    console.error(`${name} differs from what the product says: run npm run pages`)
    process.exitCode = 1
  }
}
