// Asks before many tasks change: on a terminal the count has to be typed, elsewhere --yes has to be said.
import { createInterface } from 'node:readline/promises'
import { PieceworkError } from '../ground/errors.js'
import { grouped } from './print.js'

/** Resolves when it is meant; throws PW_UNCONFIRMED. `what` reads like "discard from queue mail". */
export async function confirm(count: number, what: string, yes: boolean): Promise<void> {
  if (yes || count === 0) return
  const tasks = count === 1 ? '1 task' : `${grouped(count)} tasks`
  if (process.stdin.isTTY !== true || process.stderr.isTTY !== true) {
    throw new PieceworkError('PW_UNCONFIRMED', `This would ${what}: ${tasks}. Nobody said --yes.`, { count })
  }
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  const typed = await terminal.question(`This will ${what}: ${tasks}. Type the number to go on: `)
  terminal.close()
  if (typed.replace(/\s/g, '') === String(count)) return
  throw new PieceworkError('PW_UNCONFIRMED', `${JSON.stringify(typed)} is not ${count}; nothing was changed.`, {
    count,
  })
}
