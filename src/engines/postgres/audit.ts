// The audit on PostgreSQL: a row in the commit of what was done; and the word to others that settings changed.
import type { Patch } from '../../engine/contract.js'
import { clean, type Session } from './session.js'

export function audit(s: Session, actor: string, action: string, subject: string, details: Patch): void {
  s.send(s.q.addAudit, s.now, clean(actor), action, clean(subject), JSON.stringify(details))
}

export async function settingsChanged(s: Session): Promise<void> {
  const [row] = await s.run<{ settings: number }>(s.q.bumpSettings)
  await s.catalog.load(s.link, row?.settings ?? -1)
}
