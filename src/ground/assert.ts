// Checks that state what must hold inside our own code; a failure is our bug, never the user's typo.
import { PieceworkError } from './errors.js'

/** Throws PW_BUG when `condition` does not hold; `what` says what should have been true. */
export function assert(condition: unknown, what: string): asserts condition {
  if (!condition) throw new PieceworkError('PW_BUG', `This should never happen: ${what}.`)
}
