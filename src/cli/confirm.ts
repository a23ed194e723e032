// Asks before many tasks change: on a terminal the count has to be typed, elsewhere --yes has to be said.
import { createInterface } from 'node:readline'
import { PieceworkError } from '../ground/errors.js'
import { counted } from './print.js'

/**
 * Resolves when it is meant; throws PW_UNCONFIRMED, PW_INTERRUPTED. `what` reads like "discard from queue mail".
 * `asked` people: a script's word is enough without --yes.
 */
export async function confirm(
  count: number,
  what: string,
  yes: boolean,
  asked: 'all' | 'people' = 'all',
): Promise<void> {
  if (yes || count === 0) return
  const tasks = counted(count, 'task')
  if (process.stdin.isTTY !== true || process.stderr.isTTY !== true) {
    if (asked === 'people') return
    throw new PieceworkError('PW_UNCONFIRMED', `This would ${what}: ${tasks}. Nobody said --yes.`, { count })
  }
  const typed = await answerTo(`This will ${what}: ${tasks}. Type the number to go on: `)
  if (typed?.replace(/\s/g, '') === String(count)) return
  const why = typed === null ? 'Nothing was typed' : `${JSON.stringify(typed)} is not ${count}`
  throw new PieceworkError('PW_UNCONFIRMED', `${why}; nothing was changed.`, { count })
}

/** What is typed on the terminal; null when it ended (Ctrl-D). Throws PW_INTERRUPTED (Ctrl-C). */
async function answerTo(question: string): Promise<string | null> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  const typed = await new Promise<string | null | undefined>((resolve) => {
    terminal.once('SIGINT', () => resolve(undefined))
    terminal.once('close', () => resolve(null))
    terminal.question(question, resolve)
  })
  terminal.close()
  // What comes next shall not stand in the question's row.
  if (typeof typed !== 'string') process.stderr.write('\n')
  if (typed !== undefined) return typed
  throw new PieceworkError('PW_INTERRUPTED', 'Interrupted; nothing was changed.')
}
