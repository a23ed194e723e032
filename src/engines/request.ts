// The print of a call that has a name, by which an engine knows whether the same call came again or another one.
import { createHash } from 'node:crypto'
import { PieceworkError } from '../ground/errors.js'

export const requestPrint = (asked: unknown): string =>
  createHash('sha256').update(JSON.stringify(asked)).digest('base64url').slice(0, 22)

/** What the first call was answered, as it is kept; throws PW_REQUEST_CHANGED when that was not the same call. */
export function answerTo<T>(print: string, kept: string): T {
  const first = JSON.parse(kept) as { print: string; answer: T }
  if (first.print === print) return first.answer
  throw new PieceworkError('PW_REQUEST_CHANGED', 'This request id was used for another call less than 10 min ago.')
}
