// Says in piecework's words what SQLite answered.
import { PieceworkError } from '../../ground/errors.js'
import { hasRoom } from './room.js'

const writes = new Set(['SQLITE_IOERR_WRITE', 'SQLITE_IOERR_SHMSIZE', 'SQLITE_IOERR_TRUNCATE', 'SQLITE_IOERR_FSYNC'])

/** The PieceworkError for whatever a statement threw; ours pass through unchanged. */
export function translated(error: unknown, file: string): PieceworkError {
  if (error instanceof PieceworkError) return error
  const { code = '', message = String(error) } = error as { code?: string; message?: string }
  const make = (pw: ConstructorParameters<typeof PieceworkError>[0], text: string) =>
    new PieceworkError(pw, `${text} (${code || 'error'}: ${message})`, { file, code }, { cause: error })
  if (code === 'SQLITE_FULL' || code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG')
    return make('PW_DISK_FULL', `No room for ${file}.`)
  // SQLite tells a full disk from a broken one only where a page is written, and never a quota.
  if (writes.has(code) && !hasRoom(file)) return make('PW_DISK_FULL', `No room for ${file}.`)
  if (code.startsWith('SQLITE_READONLY') || code === 'EACCES' || code === 'EROFS' || code === 'EPERM') {
    return make('PW_STORE_READONLY', `${file} cannot be written.`)
  }
  if (code.startsWith('SQLITE_CORRUPT')) return make('PW_STORE_DAMAGED', `${file} is damaged.`)
  if (code === 'SQLITE_NOTADB') return make('PW_NOT_OURS', `${file} is not a SQLite database.`)
  if (isBusy(error)) return make('PW_BUSY', `${file} stayed locked by another program.`)
  return make('PW_STORE_FAILED', `${file} could not be used.`)
}

/**
 * True when another connection holds a lock and the same statement may go through in a moment.
 * SQLITE_PROTOCOL is what a reader gives up with that found the log's index unfinished for too long.
 */
export const isBusy = (error: unknown): boolean =>
  /^SQLITE_(BUSY|PROTOCOL)/.test(String((error as { code?: unknown } | null)?.code))
