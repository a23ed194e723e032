// Makes, changes and removes named things: queues with their policy layers, batches; each with its audit row.
import type { Kind, Patch } from '../../engine/contract.js'
import { PieceworkError } from '../../ground/errors.js'
import { checkPolicy } from '../../task/limits.js'
import type { BatchRecord, QueueRecord } from '../../task/records.js'
import { type BatchWhole, batchRecord, mergeOperator, queueRecord, without } from '../named.js'
import type { Session } from './session.js'

export function configure(s: Session, kind: Kind, name: string, patch: Patch | null, actor: string): Patch {
  if (kind === 'queue' && patch !== null) return { ...configureQueue(s, name, patch, actor) }
  if (kind === 'type' && patch !== null) return configureType(s, name, patch, actor)
  if (kind === 'batch')
    return patch === null ? forgetBatch(s, name, actor) : { ...configureBatch(s, name, patch, actor) }
  throw new PieceworkError('PW_OPTION_INVALID', `This engine cannot configure a ${kind} with ${JSON.stringify(patch)}.`)
}

export function audit(s: Session, actor: string, action: string, subject: string, details: Patch): void {
  s.q.addAudit.run(Math.round(s.clock.wallMs()), actor, action, subject, JSON.stringify(details))
}

/** `code` replaces the code layer, `operator` is merged into the operator's; `unset` names fields it gives up. */
function configureQueue(s: Session, name: string, patch: Patch, actor: string): QueueRecord {
  const row = { ...s.catalog.ensureQueue(name, s.now) }
  const before = { code: row.code, operator: row.operator, pausedAt: row.pausedAt }
  if (patch.code !== undefined) row.code = JSON.stringify(checkPolicy(patch.code as Patch))
  if (patch.operator !== undefined) row.operator = mergeOperator(row, patch.operator as Patch | null)
  if (patch.unset !== undefined) row.operator = without(row.operator, patch.unset as readonly string[])
  if (patch.paused !== undefined) row.pausedAt = patch.paused ? (row.pausedAt ?? s.now) : null
  const changed = (Object.keys(before) as (keyof typeof before)[]).filter((field) => before[field] !== row[field])
  if (changed.length > 0) {
    s.catalog.setQueue(row)
    const difference = Object.fromEntries(changed.map((field) => [field, { from: before[field], to: row[field] }]))
    audit(s, actor, 'configure queue', name, difference)
  }
  return queueRecord(row, s.wallShift)
}

/** Pauses or resumes one type; `name` is the queue, a NUL and the type. */
function configureType(s: Session, name: string, patch: Patch, actor: string): Patch {
  const [queueName = '', typeName = ''] = name.split('\0')
  const queue = s.catalog.queue(queueName)
  const type = queue && s.catalog.type(queue.id, typeName)
  if (!queue || !type) throw new PieceworkError('PW_QUEUE_UNKNOWN', `There is no type "${typeName}" in "${queueName}".`)
  const pausedAt = patch.paused ? (type.pausedAt ?? s.now) : null
  s.catalog.setType({ ...type, pausedAt })
  audit(s, actor, pausedAt === null ? 'resume type' : 'pause type', `${queueName}/${typeName}`, {})
  return { queue: queueName, type: typeName, paused: pausedAt !== null }
}

/** `info` is merged field by field; `sealed: true` lets it take no more tasks. */
function configureBatch(s: Session, name: string, patch: Patch, actor: string): BatchRecord {
  if (s.q.batchByName.get(name) === undefined) s.q.addBatch.run(name, s.now)
  const row = s.q.batchWhole.get(name) as BatchWhole
  const info = { ...(JSON.parse(row.info) as Patch), ...(patch.info as Patch | undefined) }
  const sealedAt = patch.sealed === undefined ? row.sealedAt : patch.sealed ? (row.sealedAt ?? s.now) : null
  s.q.setBatch.run(sealedAt, JSON.stringify(info), row.id)
  if (sealedAt !== row.sealedAt) audit(s, actor, 'seal batch', name, {})
  return batchRecord(s.q.batchWhole.get(name) as BatchWhole, s.wallShift)
}

function forgetBatch(s: Session, name: string, actor: string): Patch {
  const row = s.q.batchWhole.get(name) as BatchWhole | undefined
  if (!row) throw new PieceworkError('PW_BATCH_UNKNOWN', `There is no batch "${name}".`, { name })
  s.q.forgetMembers.run(row.id)
  s.q.leaveBatch.run(row.id)
  s.q.forgetBatch.run(row.id)
  s.catalog.changed = true
  audit(s, actor, 'forget batch', name, { total: row.total, done: row.done, dead: row.dead })
  return { ...batchRecord(row, s.wallShift) }
}
