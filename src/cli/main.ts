#!/usr/bin/env node
// The command line's entry: finds the command, runs it, and turns every refusal into one error and one exit code.
import { CommanderError } from 'commander'
import { PieceworkError } from '../ground/errors.js'
import { errorText, exitOf, warningText } from './print.js'
import { refusalOf, setWordsAfter } from './program.js'
import { programOf } from './tree.js'

/** What the parser would have printed; shown only when it is the help of a command called without a word. */
let parserText = ''

/** Takes what follows `--` from the commands whose last argument it is, and leaves it to the others. */
function split(words: string[]): string[] {
  const command = words.find((word, index) => !word.startsWith('-') && words[index - 1] !== '--url')
  const at = words.indexOf('--')
  if (at === -1 || (command !== 'run' && command !== 'work')) return words
  setWordsAfter(words.slice(at + 1))
  return words.slice(0, at)
}

const words = process.argv.slice(2)
const asksJson = words.slice(0, words.includes('--') ? words.indexOf('--') : undefined).includes('--json')

/** In a folder that is gone every relative name leads nowhere. */
function placed(error: unknown): unknown {
  if ((error as { syscall?: unknown } | null)?.syscall !== 'uv_cwd') return error
  return new PieceworkError('PW_STORE_MISSING', 'The current folder is gone: somebody removed it.')
}

async function main(): Promise<void> {
  const program = programOf((text) => {
    parserText += text
  })
  try {
    await program.parseAsync(split(words), { from: 'user' })
  } catch (error) {
    const refusal = error instanceof CommanderError ? refusalOf(error, program, words) : placed(error)
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
