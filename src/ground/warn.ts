// Says what no call can answer, as a warning of the process: never thrown, silenced like any other warning.
import { PieceworkError } from './errors.js'

/** Emits a PieceworkWarning with the error's code and cure; PW_BUG for what is not ours. */
export function warn(error: unknown): void {
  const known = error instanceof PieceworkError
  process.emitWarning(error instanceof Error ? error.message : String(error), {
    type: 'PieceworkWarning',
    code: known ? error.code : 'PW_BUG',
    detail: known ? error.cure : '',
  })
}
