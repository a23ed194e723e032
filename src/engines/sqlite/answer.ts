// Keeps the answers of calls that have a name, for those that are sent again.
import { answerKeepMs } from '../../task/limits.js'
import { answerTo, requestPrint } from '../request.js'
import type { Session } from './session.js'

/** The stored answer of an earlier call with this request name, or a new one that is stored with what was asked. */
export function answered<T>(s: Session, request: string | null, asked: unknown, work: () => T): T {
  if (request === null) return work()
  const print = requestPrint(asked)
  const kept = s.q.answerOf.get(request, s.now) as { answer: string } | undefined
  if (kept) return answerTo<T>(print, kept.answer)
  const answer = work()
  s.q.addAnswer.run(request, JSON.stringify({ print, answer }), s.now + answerKeepMs)
  return answer
}
