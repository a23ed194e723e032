// Turns every refusal into a problem (RFC 9457) with its code and cure, and a code into its HTTP status.
import type { Entry } from '../ground/broker-codes.js'
import { type ErrorCode, errorTable, PieceworkError } from '../ground/errors.js'

/** Statuses that are not 400 (what was asked makes no sense), or 503 for an engine that cannot be used now. */
const statuses: Partial<Record<ErrorCode, number>> = {
  PW_BATCH_BUSY: 409,
  PW_BATCH_FINISHED: 409,
  PW_BATCH_SEALED: 409,
  PW_BATCH_UNKNOWN: 404,
  PW_BODY_TOO_LARGE: 413,
  PW_BUG: 500,
  PW_CONTENT_TYPE: 415,
  PW_DUPLICATE_DIFFERS: 409,
  PW_FORBIDDEN: 403,
  PW_LEASE_LOST: 409,
  PW_LIMIT_IN_USE: 409,
  PW_LIMIT_UNKNOWN: 404,
  PW_METHOD_UNKNOWN: 405,
  PW_MOVE_CIRCLE: 409,
  PW_MOVE_UNKNOWN: 404,
  PW_NOT_SUPPORTED: 501,
  PW_ORIGIN_REFUSED: 403,
  PW_PAYLOAD_INVALID: 422,
  PW_PAYLOAD_TOO_LARGE: 413,
  PW_POLICY_CHANGED: 409,
  PW_POLICY_FORCE: 409,
  PW_QUEUE_UNKNOWN: 404,
  PW_REQUEST_CHANGED: 409,
  PW_ROUTE_UNKNOWN: 404,
  PW_SCHEDULE_UNKNOWN: 404,
  PW_TASK_GONE: 404,
  PW_TASK_NOT_DEAD: 409,
  PW_TOKEN_INVALID: 401,
  PW_TOKEN_THIRD: 409,
  PW_TOKEN_UNKNOWN: 404,
  PW_TOO_MANY: 429,
}

export interface Problem {
  type: string
  title: string
  status: number
  detail: string
  code: ErrorCode
  cure: string
  details: Record<string, unknown>
}

function statusOf(code: ErrorCode): number {
  const { exit }: Entry = errorTable[code]
  return statuses[code] ?? (exit === 3 ? 503 : 400)
}

/** What is not ours tells strangers nothing: its own words may hold anything. */
export function problemOf(error: unknown): Problem {
  const ours = error instanceof PieceworkError
  const known = ours ? error : new PieceworkError('PW_BUG', 'The broker met an error that it does not know.')
  const { code, cure, message, details } = known
  const status = typeof details.status === 'number' ? details.status : statusOf(code)
  const { retryAfter: _, status: _status, ...told } = details
  return {
    type: `urn:piecework:${code}`,
    title: errorTable[code].meaning,
    status,
    detail: message,
    code,
    cure,
    details: told,
  }
}

/** Headers that go with a refusal. */
export function headersOf(error: unknown, { status }: Problem): Record<string, string> {
  const { details = {} } = error instanceof PieceworkError ? error : {}
  const headers: Record<string, string> = {}
  if (status === 401) headers['www-authenticate'] = 'Bearer realm="piecework"'
  if (status === 429 || status === 503) headers['retry-after'] = String(details.retryAfter ?? 1)
  if (status === 405) headers.allow = (details.allow as string[]).join(', ')
  return headers
}
