// Makes, changes and removes named things: queues with their policy layers, batches, tokens; each with its audit row.
import type { Kind, NewTask, Patch } from '../../engine/contract.js'
import type { BatchRecord, QueueRecord, RouteRecord, TokenRecord } from '../../task/records.js'
import { followUpOf, nextFollowUp, waitsForItself } from '../followup.js'
import { refuseUnknownLimits } from '../limits.js'
import {
  type BatchWhole,
  batchRecord,
  batchSealed,
  batchUnknown,
  cannotConfigure,
  changesOrder,
  deadToOf,
  patchedBatch,
  patchedQueue,
  queueRecord,
  refuseDeadTo,
  refuseReorder,
  refuseResealing,
  typeNamed,
} from '../named.js'
import type { TypeRow } from '../names.js'
import { refuseCircle, routeNamed, routeRecord, routeUnknown, targetOf } from '../routes.js'
import { newToken, type TokenPatch, type TokenRow, tokenRecord, tokenRevoked } from '../tokens.js'
import { audit } from './audit.js'
import { configureLimit, ensureOwnLimit } from './limits.js'
import { configureSchedule } from './schedules.js'
import type { Session } from './session.js'

export function configure(s: Session, kind: Kind, name: string, patch: Patch | null, actor: string): Patch {
  if (kind === 'queue' && patch !== null) return { ...configureQueue(s, name, patch, actor) }
  if (kind === 'type' && patch !== null) return configureType(s, name, patch, actor)
  if (kind === 'batch')
    return patch === null ? forgetBatch(s, name, actor) : { ...configureBatch(s, name, patch, actor) }
  if (kind === 'limit') return { ...configureLimit(s, name, patch, actor) }
  if (kind === 'token') return { ...configureToken(s, name, patch as TokenPatch | null, actor) }
  if (kind === 'route') return { ...configureRoute(s, name, patch, actor) }
  if (kind === 'schedule') return { ...configureSchedule(s, name, patch, actor) }
  throw cannotConfigure(kind, patch)
}

function configureQueue(s: Session, name: string, patch: Patch, actor: string): QueueRecord {
  const before = s.catalog.ensureQueue(name, s.now)
  const { row, difference } = patchedQueue(before, patch, s.now)
  refuseDeadTo(s.catalog, row)
  const target = deadToOf(patch)
  if (target !== null) s.catalog.ensureQueue(target, s.now)
  if (changesOrder(before, row)) refuseReorder(before, row, patch, s.q.keyedOf.get(row.id) !== undefined)
  if (difference !== null) {
    s.catalog.setQueue(row)
    refuseUnknownLimits(s.catalog.policyOf(row.id).uses, s.catalog.allLimits)
    ensureOwnLimit(s, row)
    s.wakeTypes([...s.catalog.typesOf(row.id)].map((type) => type.id))
    audit(s, actor, 'configure queue', name, difference)
  }
  return queueRecord(row, s.wallShift)
}

/** Pauses or resumes one type. */
function configureType(s: Session, name: string, patch: Patch, actor: string): Patch {
  const { queueName, ...type } = typeNamed(s.catalog, name)
  const pausedAt = patch.paused ? (type.pausedAt ?? s.now) : null
  s.catalog.setType({ ...type, pausedAt })
  audit(s, actor, pausedAt === null ? 'resume type' : 'pause type', `${queueName}/${type.name}`, {})
  return { queue: queueName, type: type.name, paused: pausedAt !== null }
}

/** Leads new tasks of a type to another queue or, with null, no longer. */
function configureRoute(s: Session, text: string, patch: Patch | null, actor: string): RouteRecord {
  const from = routeNamed(text)
  const subject = `${from.queue}/${from.type}`
  if (patch === null) {
    const own = s.catalog.type(s.catalog.queue(from.queue)?.id ?? 0, from.type)
    const led = own && s.catalog.routeFrom(own.id)
    if (!led) throw routeUnknown(from)
    const record = routeRecord(s.catalog, own, led)
    s.catalog.setRoute(own.id, null)
    audit(s, actor, 'end route', subject, { to: record.to })
    return record
  }
  const target = targetOf(from, patch)
  const [here, there] = [from, target].map(({ queue, type }) =>
    s.catalog.ensureType(s.catalog.ensureQueue(queue, s.now).id, type),
  ) as [TypeRow, TypeRow]
  refuseCircle(s.catalog, here, there)
  if (s.catalog.routeFrom(here.id)?.id !== there.id) {
    s.catalog.setRoute(here.id, there.id)
    audit(s, actor, 'set route', subject, { to: target.queue })
  }
  return routeRecord(s.catalog, here, there)
}

/** A sealed batch takes no more tasks; one that is sealed with nothing open finishes with that. */
function configureBatch(s: Session, name: string, patch: Patch, actor: string): BatchRecord {
  const row = batchNamed(s, name)
  refuseResealing(row, patch)
  if (patch.followUp !== undefined) setFollowUp(s, row, patch.followUp as NewTask, actor)
  const { info, sealedAt, sealed } = patchedBatch(row, patch, s.now)
  s.q.setBatch.run(sealedAt, info, row.id)
  if (sealed) audit(s, actor, 'seal batch', name, {})
  s.countBatch(row.id, 'total', 0)
  s.flushBatches()
  return batchRecord(s.q.batchWhole.get(name) as BatchWhole, s.wallShift)
}

/** The batch of this name, made if need be. */
function batchNamed(s: Session, name: string): BatchWhole {
  // What earlier calls of this transaction counted is to be seen in it.
  s.flushBatches()
  if (s.q.batchByName.get(name) === undefined) s.q.addBatch.run(name, s.now)
  return s.q.batchWhole.get(name) as BatchWhole
}

function setFollowUp(s: Session, row: BatchWhole, task: NewTask, actor: string): void {
  const before = followUpOf(row.followUp)?.place ?? null
  const outer = task.batch === undefined ? null : batchNamed(s, task.batch)
  const next = nextFollowUp(row, task, outer?.id ?? null)
  if (next === null) return
  if (outer !== null && outer.id !== before) {
    if (outer.sealedAt !== null) throw batchSealed(outer.name)
    for (let at: number | null = outer.id; at !== null; at = placeOf(s, at)) {
      if (at === row.id) throw waitsForItself(row.name, outer.name)
    }
    s.countBatch(outer.id, 'total')
  }
  if (before !== null && before !== next.place) s.countBatch(before, 'cancelled')
  s.q.setFollowUp.run(JSON.stringify(next), row.id)
  audit(s, actor, 'follow batch', row.name, { queue: task.queue, type: task.type ?? task.queue })
}

/** The batch in which what follows this one has its place. */
const placeOf = (s: Session, batch: number): number | null =>
  followUpOf((s.q.batchById.get(batch) as { followUp: string | null } | undefined)?.followUp)?.place ?? null

function forgetBatch(s: Session, name: string, actor: string): Patch {
  const row = s.q.batchWhole.get(name) as BatchWhole | undefined
  if (!row) throw batchUnknown(name)
  // What would have followed never comes: its place is free.
  const place = row.finishedAt === null ? followUpOf(row.followUp)?.place : null
  if (place != null) s.countBatch(place, 'cancelled')
  s.q.forgetMembers.run(row.id)
  s.q.leaveBatch.run(row.id)
  s.q.forgetBatch.run(row.id)
  s.catalog.changed = true
  audit(s, actor, 'forget batch', name, { total: row.total, done: row.done, dead: row.dead })
  return { ...batchRecord(row, s.wallShift) }
}

export const tokens = (s: Session): TokenRecord[] => (s.q.tokens.all() as TokenRow[]).map(tokenRecord)

/** Makes a token or, with null, revokes it. */
function configureToken(s: Session, id: string, patch: TokenPatch | null, actor: string): TokenRecord {
  if (patch === null) {
    const old = tokenRevoked(tokens(s), id)
    s.q.dropToken.run(id)
    audit(s, actor, 'revoke token', old.name, { id })
    return old
  }
  const token = newToken(tokens(s), id, patch, Math.round(s.clock.wallMs()))
  const { name, hash, scopes, queues, createdAt, expiresAt } = token
  s.q.addToken.run(id, name, hash, JSON.stringify(scopes), JSON.stringify(queues), createdAt, expiresAt)
  audit(s, actor, 'create token', name, { id, scopes, queues, expiresAt })
  return token
}
