// Limits on SQLite: a row of state each, read by the claims under it and written in the commit that changes it.
import type { Patch } from '../../engine/contract.js'
import { charged, type LimitNote, type LimitState, noted } from '../../task/limiter.js'
import type { LimitRecord } from '../../task/records.js'
import {
  type Allowance,
  changeOf,
  holdsBack,
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
import { audit } from './audit.js'
import type { Session } from './session.js'
import type { Statements } from './statements.js'

/** The states that one transaction has looked at and changed. */
export class LimitStates {
  private readonly states = new Map<number, LimitState>()
  private readonly changed = new Set<number>()

  constructor(private readonly q: Statements) {}

  of(limit: number): LimitState {
    let state = this.states.get(limit)
    if (!state) {
      state = limitState((this.q.limitState.get(limit) as { state: string } | undefined)?.state)
      this.states.set(limit, state)
    }
    return state
  }

  set(limit: number, state: LimitState): void {
    if (this.states.get(limit) === state) return
    this.states.set(limit, state)
    this.changed.add(limit)
  }

  write(): void {
    for (const limit of this.changed) this.q.setLimitState.run(JSON.stringify(this.of(limit)), limit)
    this.forget()
  }

  forget(): void {
    this.states.clear()
    this.changed.clear()
  }
}

/** What claims of this queue may take now; null when it draws on no limit. */
export function allowance(s: Session, queue: number): Allowance | null {
  const limits = s.catalog.limitsOf(queue)
  if (limits.length === 0) return null
  s.takeNotes()
  const stateOf = (limit: number) => s.limits.of(limit)
  const room = roomUnderAll(limits, stateOf, (limit) => leasedUnder(s, limit), s.now)
  return { ...room, limited: holdsBack(limits, stateOf) }
}

export function charge(s: Session, queue: number, count: number): void {
  for (const { id, settings } of s.catalog.limitsOf(queue)) {
    s.limits.set(id, charged(settings, s.limits.of(id), count, s.now))
  }
}

/** Takes in what happened under the limits in this transaction. */
export function takeIn(s: Session, notes: ReadonlyMap<number, LimitNote>): void {
  for (const [id, note] of notes) {
    const limit = s.catalog.limitById(id)
    if (!limit) continue
    const { state, opened } = noted(limit, s.limits.of(id), note)
    s.limits.set(id, state)
    // Only a queue's own limit has a breaker.
    if (opened && limit.queue !== null) {
      audit(s, 'piecework', 'open breaker', s.catalog.queueById(limit.queue).name, openedBy(note))
    }
  }
}

/** Deliveries under lease in all queues that draw on the limit, those of this transaction too. */
function leasedUnder(s: Session, limit: number): number {
  const types = s.catalog.typesUnder(limit)
  const { n } = s.q.leasedOf.get(JSON.stringify(types)) as { n: number }
  return types.reduce((sum, type) => sum + s.added(type, 'leased'), n)
}

/** A queue whose policy has ceilings of its own, or a breaker, gets a limit to remember things in. */
export function ensureOwnLimit(s: Session, queue: QueueRow): void {
  if (!needsOwn(s.catalog.policyOf(queue.id)) || s.catalog.limitFor(queue.id)) return
  s.q.addLimit.run(null, queue.id, '{}')
  s.catalog.reloadLimits()
}

export function configureLimit(s: Session, name: string, patch: Patch | null, actor: string): LimitRecord {
  const row = s.catalog.limitNamed(name)
  if (patch === null) return removeLimit(s, row, name, actor)
  const text = patchedLimit(row, patch)
  if (row) s.q.setLimit.run(text, row.id)
  else s.q.addLimit.run(name, null, text)
  if (row?.settings !== text) audit(s, actor, 'set limit', name, changeOf(row, text))
  s.catalog.reloadLimits()
  const now = s.catalog.limitNamed(name) as LimitRow
  // More room may be there for those who wait.
  s.wakeTypes(s.catalog.typesUnder(now.id))
  return recordOf(s, now)
}

function removeLimit(s: Session, row: LimitRow | undefined, name: string, actor: string): LimitRecord {
  const queues = row ? s.catalog.queueNamesUnder(row.id) : []
  const removed = limitToRemove(row, name, queues)
  const record = recordOf(s, removed)
  s.q.dropLimit.run(removed.id)
  s.catalog.reloadLimits()
  audit(s, actor, 'remove limit', name, {})
  return record
}

export const limits = (s: Session): LimitRecord[] =>
  s.catalog.allLimits.filter(({ name }) => name !== null).map((row) => recordOf(s, row))

function recordOf(s: Session, row: LimitRow): LimitRecord {
  const queues = s.catalog.queueNamesUnder(row.id)
  const leased = leasedUnder(s, row.id)
  return limitRecord(row.name as string, limitSettings(row), s.limits.of(row.id), { leased, queues, now: s.now })
}
