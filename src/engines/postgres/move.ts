// Takes tasks to another queue on PostgreSQL; a leased one goes when its delivery has ended.
import { askMove, move } from '../acts.js'
import type { HeldRow } from '../ledger.js'
import { code, moveAsked } from '../receipt.js'
import type { Session } from './session.js'

/** Moves it to the type (id) now, or asks its delivery to when it ends. */
export async function moveOrAsk(s: Session, row: HeldRow, type: number): Promise<void> {
  if (row.state === code.leased) await ask(s, row, type)
  else await go(s, row, type)
}

/** Its dedup key holds in both queues from now on: whoever enqueues into either of them meets it. */
async function ask(s: Session, row: HeldRow, type: number): Promise<void> {
  const { dedupKey, moveTo } = row
  if (dedupKey !== null) {
    const [there, before] = [type, moveTo].map((id) => s.catalog.typeById(id ?? 0)?.queue ?? null)
    if (before !== null && before !== row.queue) s.add(s.q.dropDedups, before, dedupKey, row.id)
    await dedupFor(s, there as number, dedupKey, row.id)
  }
  askMove(s, row, type)
}

/** After the end of a delivery: where its task was asked to go meanwhile, it goes now. */
export async function moveOn(s: Session, row: HeldRow): Promise<void> {
  if (row.flags & moveAsked) await go(s, row, row.moveTo as number)
}

async function go(s: Session, row: HeldRow, type: number): Promise<void> {
  let { dedupKey } = row
  if (dedupKey !== null && row.state !== code.dead) {
    s.freeDedup(row, null)
    dedupKey = await dedupFor(s, s.catalog.typeById(type)?.queue as number, dedupKey, row.id)
  }
  move(s, row, type, dedupKey)
}

/** The dedup key, now held by this task; null when another one holds it. */
export async function dedupFor(s: Session, queue: number, dedupKey: string, task: number): Promise<string | null> {
  return (await s.run(s.q.takeDedups, [[queue], [dedupKey], [task], s.now])).length > 0 ? dedupKey : null
}
