// Writes down what an operator did, or what the engine did for them, in the commit that did it.
import type { Patch } from '../../engine/contract.js'
import type { Session } from './session.js'

export function audit(s: Session, actor: string, action: string, subject: string, details: Patch): void {
  s.q.addAudit.run(Math.round(s.clock.wallMs()), actor, action, subject, JSON.stringify(details))
}
