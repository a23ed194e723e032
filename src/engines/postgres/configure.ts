// Named things on PostgreSQL: queues with their policy layers, types, batches, tokens; each change is audited.
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
  type QueueRow,
  queueRecord,
  refuseDeadTo,
  refuseReorder,
  refuseResealing,
  typeNamed,
} from '../named.js'
import type { TypeRow } from '../names.js'
import { refuseCircle, routeNamed, routeRecord, routeUnknown, targetOf } from '../routes.js'
import { newToken, type TokenPatch, type TokenRow, tokenRecord, tokenRevoked } from '../tokens.js'
import { audit, settingsChanged } from './audit.js'
import { unprepared } from './enqueue.js'
import { configureLimit, ensureOwnLimit } from './limits.js'
import { configureSchedule, type Unnamed } from './schedules.js'
import type { Session } from './session.js'
import { again } from './turn.js'

export async function configure(
  s: Session,
  kind: Kind,
  name: string,
  patch: Patch | null,
  by: { actor: string; unnamed: Unnamed },
): Promise<Patch | typeof again> {
  const { actor } = by
  if (kind === 'queue' && patch !== null) return { ...(await configureQueue(s, name, patch, actor)) }
  if (kind === 'type' && patch !== null) return configureType(s, name, patch, actor)
  if (kind === 'batch') {
    return patch === null ? forgetBatch(s, name, actor) : { ...(await configureBatch(s, name, patch, actor)) }
  }
  if (kind === 'limit') return { ...(await configureLimit(s, name, patch, actor)) }
  if (kind === 'token') return { ...(await configureToken(s, name, patch as TokenPatch | null, actor)) }
  if (kind === 'route') {
    const answer = await configureRoute(s, name, patch, by)
    return answer === again ? again : { ...answer }
  }
  if (kind === 'schedule') {
    const answer = await configureSchedule(s, name, patch, by)
    return answer === again ? again : { ...answer }
  }
  throw cannotConfigure(kind, patch)
}

async function configureQueue(s: Session, name: string, patch: Patch, actor: string): Promise<QueueRecord> {
  if (!s.catalog.queue(name)) {
    await s.run(s.q.addQueues, [[name], s.now])
    await settingsChanged(s)
  }
  // One after the other: two that are fine alone could be a loop together.
  if (deadToOf(patch) !== null) await settingsChanged(s)
  const before = s.catalog.queue(name) as QueueRow
  const { row, difference } = patchedQueue(before, patch, s.now)
  refuseDeadTo(s.catalog, row)
  if (changesOrder(before, row)) {
    refuseReorder(before, row, patch, (await s.run(s.q.keyedOf, [row.id])).length > 0)
  }
  if (difference !== null) {
    if (row.code !== before.code) s.send(s.q.setCode, row.id, row.code)
    if (row.pausedAt !== before.pausedAt || row.operator !== before.operator) {
      s.send(s.q.setOperator, row.id, row.pausedAt, row.operator)
    }
    audit(s, actor, 'configure queue', name, difference)
    await settingsChanged(s)
    refuseUnknownLimits(s.catalog.policyOf(row.id).uses, s.catalog.allLimits)
    await ensureOwnLimit(s, row)
    s.wakeTypes([...s.catalog.typesOf(row.id)].map((type) => type.id))
  }
  return queueRecord(row, 0)
}

/** Pauses or resumes one type. */
async function configureType(s: Session, name: string, patch: Patch, actor: string): Promise<Patch> {
  const type = typeNamed(s.catalog, name)
  const pausedAt = patch.paused ? (type.pausedAt ?? s.now) : null
  await s.run(s.q.setType, [pausedAt, type.id])
  audit(s, actor, pausedAt === null ? 'resume type' : 'pause type', `${type.queueName}/${type.name}`, {})
  await settingsChanged(s)
  return { queue: type.queueName, type: type.name, paused: pausedAt !== null }
}

/** Leads new tasks of a type to another queue or, with null, no longer. */
async function configureRoute(
  s: Session,
  text: string,
  patch: Patch | null,
  { actor, unnamed }: { actor: string; unnamed: Unnamed },
): Promise<RouteRecord | typeof again> {
  const from = routeNamed(text)
  const subject = `${from.queue}/${from.type}`
  // Two routes set at once must see each other, or they may make a circle.
  await settingsChanged(s)
  if (patch === null) {
    const own = s.catalog.type(s.catalog.queue(from.queue)?.id ?? 0, from.type)
    const led = own && s.catalog.routeFrom(own.id)
    if (!led) throw routeUnknown(from)
    const record = routeRecord(s.catalog, own, led)
    await s.run(s.q.dropRoute, [own.id])
    audit(s, actor, 'end route', subject, { to: record.to })
    await settingsChanged(s)
    return record
  }
  const target = targetOf(from, patch)
  unnamed.push(
    ...unprepared(
      s.catalog,
      [from, target].map((named) => ({ ...named, payload: '' })),
    ),
  )
  if (unnamed.length > 0) return again
  const [here, there] = [from, target].map(({ queue, type }) =>
    s.catalog.type(s.catalog.queue(queue)?.id ?? 0, type),
  ) as [TypeRow, TypeRow]
  refuseCircle(s.catalog, here, there)
  if (s.catalog.routeFrom(here.id)?.id !== there.id) {
    await s.run(s.q.putRoute, [here.id, there.id])
    audit(s, actor, 'set route', subject, { to: target.queue })
    await settingsChanged(s)
  }
  return routeRecord(s.catalog, here, there)
}

export const batchOf = (row: BatchWhole): BatchRecord => batchRecord(row, 0)

const wholeBatch = async (s: Session, name: string) =>
  (await s.run<BatchWhole>(s.q.batches, [name, 0, 1]))[0] as BatchWhole | undefined

/** A sealed batch takes no more tasks; one with nothing open and nothing to follow finishes with that. */
async function configureBatch(s: Session, name: string, patch: Patch, actor: string): Promise<BatchRecord> {
  const { batch: outer } = (patch.followUp ?? {}) as Partial<NewTask>
  await s.flush()
  await s.run(s.q.addBatches, [outer === undefined ? [name] : [name, outer], s.now])
  // Without a change of the seal there is no need to wait for those who are just adding tasks.
  const statement = patch.sealed !== undefined ? s.q.lockBatch : patch.followUp !== undefined ? s.q.holdBatch : null
  const [lock] = statement ? await s.run<Pick<BatchWhole, 'info' | 'sealedAt'>>(statement, [name]) : []
  const row = { ...((await wholeBatch(s, name)) as BatchWhole), ...lock }
  refuseResealing(row, patch)
  if (patch.followUp !== undefined) await setFollowUp(s, row, patch.followUp as NewTask, actor)
  const { info, sealedAt, sealed } = patchedBatch(row, patch, s.now)
  await s.run(s.q.setBatch, [sealedAt, info, row.id])
  if (sealed) {
    audit(s, actor, 'seal batch', name, {})
    await s.flush()
    const { id, followUp, total, done, dead, cancelled } = (await wholeBatch(s, name)) as BatchWhole
    // What follows it is left to a sweep: who may seal may not always enqueue.
    if (followUp === null && total === done + dead + cancelled) await s.run(s.q.finishBatch, [id])
  }
  return batchOf((await wholeBatch(s, name)) as BatchWhole)
}

async function setFollowUp(s: Session, row: BatchWhole, task: NewTask, actor: string): Promise<void> {
  const before = followUpOf(row.followUp)?.place ?? null
  const outer = task.batch === undefined ? undefined : await wholeBatch(s, task.batch)
  const next = nextFollowUp(row, task, outer?.id ?? null)
  if (next === null) return
  if (outer !== undefined && outer.id !== before) {
    if ((await s.run(s.q.keepBatches, [[outer.id]])).length === 0) throw batchSealed(outer.name)
    for (let at: number | null = outer.id; at !== null; at = await placeOf(s, at)) {
      if (at === row.id) throw waitsForItself(row.name, outer.name)
    }
    s.countBatch(outer.id, 'total')
  }
  if (before !== null && before !== next.place) s.countBatch(before, 'cancelled')
  await s.run(s.q.setFollowUp, [JSON.stringify(next), row.id])
  audit(s, actor, 'follow batch', row.name, { queue: task.queue, type: task.type ?? task.queue })
}

/** The batch in which what follows this one has its place. */
async function placeOf(s: Session, batch: number): Promise<number | null> {
  const [row] = await s.run<{ followUp: string | null }>(s.q.batchById, [batch])
  return followUpOf(row?.followUp)?.place ?? null
}

/** Its tasks stay and keep a number that means nothing any more: numbers are never given twice. */
async function forgetBatch(s: Session, name: string, actor: string): Promise<Patch> {
  await s.flush()
  await s.run(s.q.lockBatch, [name])
  const row = await wholeBatch(s, name)
  if (!row) throw batchUnknown(name)
  // What would have followed never comes: its place is free.
  const place = row.finishedAt === null ? followUpOf(row.followUp)?.place : null
  if (place != null) s.countBatch(place, 'cancelled')
  await s.run(s.q.forgetBatch, [row.id])
  audit(s, actor, 'forget batch', name, { total: row.total, done: row.done, dead: row.dead })
  await settingsChanged(s)
  return { ...batchOf(row) }
}

export const tokens = async (s: Session): Promise<TokenRecord[]> => (await s.run<TokenRow>(s.q.tokens)).map(tokenRecord)

/** Makes a token or, with null, revokes it. */
async function configureToken(s: Session, id: string, patch: TokenPatch | null, actor: string): Promise<TokenRecord> {
  // Whoever makes or revokes one at the same time waits here, so that each sees the tokens of the others.
  await s.run(s.q.bumpSettings)
  if (patch === null) {
    const old = tokenRevoked(await tokens(s), id)
    s.send(s.q.dropToken, id)
    audit(s, actor, 'revoke token', old.name, { id })
    return old
  }
  const token = newToken(await tokens(s), id, patch, s.now)
  const { name, hash, scopes, queues, createdAt, expiresAt } = token
  s.send(s.q.addToken, id, name, hash, JSON.stringify(scopes), JSON.stringify(queues), createdAt, expiresAt)
  audit(s, actor, 'create token', name, { id, scopes, queues, expiresAt })
  return token
}
