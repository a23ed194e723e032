// Limits on PostgreSQL: a claim locks the rows it draws on, or takes nothing now; whatever else happens leaves a note.
import type { Patch } from '../../engine/contract.js'
import { charged, emptyNote, type LimitNote, type LimitState, noted } from '../../task/limiter.js'
import type { LimitRecord } from '../../task/records.js'
import {
  type Allowance,
  changeOf,
  holdsBack,
  type Limit,
  type LimitRow,
  limitRecord,
  limitSettings,
  limitState,
  limitToRemove,
  needsOwn,
  openedBy,
  patchedLimit,
  roomUnderAll,
} from '../limits.js'
import type { QueueRow } from '../named.js'
import { audit, settingsChanged } from './audit.js'
import { clean, type Session } from './session.js'

/** When others claim under the same limit at this moment: their transaction takes about so long. */
const busyMs = 5

/** What claims of this queue may take now; null when it draws on no limit. Locks the limits until the commit. */
export async function allowance(s: Session, queue: number): Promise<Allowance | null> {
  const limits = s.catalog.limitsOf(queue)
  if (limits.length === 0) return null
  const ids = limits.map(({ id }) => id)
  if (!(await lock(s, ids))) return { free: 0, by: 'limit', againMs: busyMs * (1 + s.random()), limited: true }
  await takeIn(s, limits)
  const leased = await leasedUnder(s, ids)
  const stateOf = (limit: number) => s.limitStates.get(limit) as LimitState
  const room = roomUnderAll(limits, stateOf, (limit) => leased.get(limit) ?? 0, s.now)
  return { ...room, limited: holdsBack(limits, stateOf) }
}

export function charge(s: Session, queue: number, count: number): void {
  for (const { id, settings } of s.catalog.limitsOf(queue)) {
    set(s, id, charged(settings, s.limitStates.get(id) as LimitState, count, s.now))
  }
}

/** Locks the rows of these limits and learns their states; false when somebody else has one: nobody waits here. */
async function lock(s: Session, ids: readonly number[]): Promise<boolean> {
  const missing = ids.filter((id) => !s.limitStates.has(id))
  if (missing.length === 0) return true
  const rows = await s.run<{ id: number; state: string }>(s.q.lockLimits, [missing])
  for (const { id, state } of rows) s.limitStates.set(id, limitState(state))
  return rows.length === missing.length
}

function set(s: Session, id: number, state: LimitState): void {
  if (s.limitStates.get(id) === state) return
  s.limitStates.set(id, state)
  s.send(s.q.setLimitState, JSON.stringify(state), id)
}

/** Takes in what settles have noted since the last claim. */
async function takeIn(s: Session, limits: readonly Limit[]): Promise<void> {
  const rows = await s.run<{ limitId: number; note: string }>(s.q.takeLimitNotes, [limits.map(({ id }) => id)])
  for (const { limitId, note } of rows) {
    const limit = limits.find(({ id }) => id === limitId) as Limit
    const told = { ...emptyNote(s.now), ...(JSON.parse(note) as LimitNote) }
    const { state, opened } = noted(limit, s.limitStates.get(limitId) as LimitState, told)
    set(s, limitId, state)
    // Only a queue's own limit has a breaker.
    if (opened && limit.queue !== null) {
      audit(s, 'piecework', 'open breaker', s.catalog.queueById(limit.queue).name, openedBy(told))
    }
  }
}

/** Deliveries under lease in all queues that draw on each of these limits, those of this transaction too. */
async function leasedUnder(s: Session, ids: readonly number[]): Promise<Map<number, number>> {
  const pairs = ids.flatMap((id) => s.catalog.typesUnder(id).map((type) => [id, type] as const))
  const columns = [pairs.map(([id]) => id), pairs.map(([, type]) => type)]
  const rows = await s.run<{ id: number; leased: number }>(s.q.leasedUnder, columns)
  const sums = new Map(rows.map(({ id, leased }) => [id, leased]))
  for (const [id, type] of pairs) sums.set(id, (sums.get(id) ?? 0) + s.added(type, 'leased'))
  return sums
}

/** A queue whose policy has ceilings of its own, or a breaker, gets a limit to remember things in. */
export async function ensureOwnLimit(s: Session, queue: QueueRow): Promise<void> {
  if (!needsOwn(s.catalog.policyOf(queue.id)) || s.catalog.limitFor(queue.id)) return
  await s.run(s.q.addOwnLimit, [queue.id])
  await settingsChanged(s)
}

export async function configureLimit(
  s: Session,
  name: string,
  patch: Patch | null,
  actor: string,
): Promise<LimitRecord> {
  const row = s.catalog.limitNamed(name)
  if (patch === null) return removeLimit(s, row, name, actor)
  const text = patchedLimit(row, patch)
  if (row) await s.run(s.q.setLimit, [text, row.id])
  else await s.run(s.q.addLimit, [clean(name), text])
  if (row?.settings !== text) audit(s, actor, 'set limit', name, changeOf(row, text))
  await settingsChanged(s)
  const now = s.catalog.limitNamed(name) as LimitRow
  // More room may be there for those who wait.
  s.wakeTypes(s.catalog.typesUnder(now.id))
  return recordOf(s, now)
}

async function removeLimit(s: Session, row: LimitRow | undefined, name: string, actor: string): Promise<LimitRecord> {
  const queues = row ? s.catalog.queueNamesUnder(row.id) : []
  const removed = limitToRemove(row, name, queues)
  const record = await recordOf(s, removed)
  await s.run(s.q.dropLimit, [removed.id])
  audit(s, actor, 'remove limit', name, {})
  await settingsChanged(s)
  return record
}

export async function limits(s: Session): Promise<LimitRecord[]> {
  const records: LimitRecord[] = []
  for (const row of s.catalog.allLimits) if (row.name !== null) records.push(await recordOf(s, row))
  return records
}

async function recordOf(s: Session, row: LimitRow): Promise<LimitRecord> {
  const queues = s.catalog.queueNamesUnder(row.id)
  const leased = (await leasedUnder(s, [row.id])).get(row.id) ?? 0
  const [stored] = await s.run<{ state: string }>(s.q.limitState, [row.id])
  return limitRecord(row.name as string, limitSettings(row), limitState(stored?.state), { leased, queues, now: s.now })
}
