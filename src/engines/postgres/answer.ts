// Stores the answers of named calls on PostgreSQL, where two handles may send the same one at once.
import { answerKeepMs } from '../../task/limits.js'
import { answerTo, requestPrint } from '../request.js'
import { taken } from './errors.js'
import { clean, type Session } from './session.js'

/** Names a call whose answer is kept; two that differ never have one name. */
export const requestName = (...parts: string[]): string => clean(JSON.stringify(parts))

export const keptText = (asked: unknown, answer: unknown): string =>
  JSON.stringify({ print: requestPrint(asked), answer })

/** The stored answer of an earlier call with this request name, or a new one that is stored with what was asked. */
export async function answered<T>(
  s: Session,
  request: string | null,
  asked: unknown,
  work: () => Promise<T>,
): Promise<T> {
  if (request === null) return work()
  const kept = await keptAnswer(s, request)
  if (kept !== null) return answerTo<T>(requestPrint(asked), kept)
  const answer = await work()
  await keep(s, request, keptText(asked, answer), null)
  return answer
}

export async function keptAnswer(s: Session, request: string): Promise<string | null> {
  const [kept] = await s.run<{ answer: string }>(s.q.answerOf, [request, s.now])
  return kept?.answer ?? null
}

/**
 * Stores an answer in place of `before`; runs the transaction again when the same request was just answered elsewhere.
 */
export async function keep(s: Session, request: string, answer: string, before: string | null): Promise<void> {
  const rows = await s.run(s.q.addAnswer, [request, answer, s.now + answerKeepMs, s.now, before])
  if (rows.length === 0) throw taken()
}
