// Takes tasks to another queue with all they have been through; a leased one goes when its delivery has ended.
import { askMove, move } from '../acts.js'
import type { HeldRow } from '../ledger.js'
import { code, moveAsked } from '../receipt.js'
import { dedupFor } from './dedup.js'
import type { Session } from './session.js'

/** Moves it to the queue (id) now, or asks its delivery to when it ends. */
export function moveOrAsk(s: Session, row: HeldRow, queue: number): void {
  const type = s.catalog.ensureType(queue, s.catalog.nameThere(row.type, s.catalog.queueById(queue).name)).id
  if (row.state === code.leased) ask(s, row, type)
  else go(s, row, type)
}

/** Its dedup key holds in both queues from now on: whoever enqueues into either of them meets it. */
function ask(s: Session, row: HeldRow, type: number): void {
  const { dedupKey, moveTo } = row
  if (dedupKey !== null) {
    const [there, before] = [type, moveTo].map((id) => s.catalog.typeById(id ?? 0)?.queue ?? null)
    if (before !== null && before !== row.queue) s.q.dropDedup.run(before, dedupKey, row.id)
    dedupFor(s, there as number, dedupKey, row.id)
  }
  askMove(s, row, type)
}

/** After the end of a delivery: where its task was asked to go meanwhile, it goes now. */
export function moveOn(s: Session, row: HeldRow): void {
  if (row.flags & moveAsked) go(s, row, row.moveTo as number)
}

function go(s: Session, row: HeldRow, type: number): void {
  let { dedupKey } = row
  if (dedupKey !== null && row.state !== code.dead) {
    s.freeDedup(row, null)
    dedupKey = dedupFor(s, s.catalog.typeById(type)?.queue as number, dedupKey, row.id)
  }
  move(s, row, type, dedupKey)
}
