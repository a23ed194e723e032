// Says in piecework's words what PostgreSQL or the way to it answered.
import { type ErrorCode, PieceworkError } from '../../ground/errors.js'

/** SQLSTATE classes and Node's codes after which the connection is of no use, and its last commit unknown. */
const unreachable =
  /^(08...|57P0[1-5]|53300|25006|ECONN\w+|EPIPE|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT)$/
const words = /terminated|timeout|Connection ended|not queryable|connection error|Client was closed/i

const codeOf = (error: unknown): string => String((error as { code?: unknown } | null)?.code ?? '')

/** True when the connection failed, not the statement. */
export function isLost(error: unknown): boolean {
  if (error instanceof PieceworkError) return error.code === 'PW_STORE_UNREACHABLE'
  const code = codeOf(error)
  if (unreachable.test(code)) return true
  // The driver's own errors have no code.
  return code === '' && error instanceof Error && words.test(error.message)
}

/**
 * True when the same transaction may go through in a moment: it met another one (serialization, deadlock, a row or an
 * answer that somebody else was just writing).
 */
export const isBusy = (error: unknown): boolean => ['40001', '40P01', '55P03', '23505'].includes(codeOf(error))

/** The PieceworkError for whatever a statement or a connection threw; ours pass through unchanged. */
export function translated(error: unknown, where: string): PieceworkError {
  if (error instanceof PieceworkError) return error
  const code = codeOf(error)
  const { message = String(error) } = error as { message?: string }
  const make = (pw: ErrorCode, text: string) =>
    new PieceworkError(pw, `${text} (${code || 'error'}: ${message})`, { store: where, code }, { cause: error })
  if (isLost(error)) return make('PW_STORE_UNREACHABLE', `${where} could not be reached.`)
  if (isBusy(error)) return make('PW_BUSY', `${where} stayed locked by another program.`)
  if (code === '53100') return make('PW_DISK_FULL', `The server of ${where} has no room.`)
  if (code === '42501') return make('PW_STORE_READONLY', `This user may not do that in ${where}.`)
  return make('PW_STORE_FAILED', `${where} could not be used.`)
}

/** Thrown inside a transaction that found a row taken: it runs again. */
export const taken = (): Error => Object.assign(new Error('somebody else holds a row'), { code: '55P03' })
