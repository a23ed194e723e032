// Queues with their policy layers and batches, as both SQL engines keep and show them.
import type { Patch } from '../engine/contract.js'
import { PieceworkError } from '../ground/errors.js'
import { checkPolicy, effectivePolicy, type PolicyPatch, storedPolicy } from '../task/limits.js'
import type { BatchRecord, QueueRecord } from '../task/records.js'
import { shownFollowUp } from './followup.js'
import type { Names, TypeRow } from './names.js'

export interface QueueRow {
  id: number
  name: string
  createdAt: number
  pausedAt: number | null
  code: string | null
  operator: string | null
}

/**
 * The queue's row as a patch leaves it, and what that changed, null when nothing. `code` replaces the code layer,
 * `operator` is merged into the operator's; `unset` names fields it gives up.
 */
export function patchedQueue(row: QueueRow, patch: Patch, now: number): { row: QueueRow; difference: Patch | null } {
  const next = { ...row }
  if (patch.code !== undefined) next.code = JSON.stringify(checkPolicy(patch.code as Patch))
  if (patch.operator !== undefined) next.operator = mergeOperator(row, patch.operator as Patch | null)
  if (patch.unset !== undefined) next.operator = without(next.operator, patch.unset as readonly string[])
  if (patch.paused !== undefined) next.pausedAt = patch.paused ? (row.pausedAt ?? now) : null
  const changed = (['code', 'operator', 'pausedAt'] as const).filter((field) => row[field] !== next[field])
  const difference = Object.fromEntries(changed.map((field) => [field, { from: row[field], to: next[field] }]))
  return { row: next, difference: changed.length > 0 ? difference : null }
}

/** Throws PW_POLICY_FORCE where a patch would end, or begin, an order within keys that tasks are there for. */
export function refuseReorder(before: QueueRow, after: QueueRow, patch: Patch, keyed: boolean): void {
  if (!keyed || patch.force === true || !changesOrder(before, after)) return
  const message = `Queue "${before.name}" has tasks with keys; perKey.width would change between 1 and more.`
  throw new PieceworkError('PW_POLICY_FORCE', message, { queue: before.name })
}

/** Throws PW_OPTION_INVALID where dead tasks would come back to their queue, or a key waits for what has left it. */
export function refuseDeadTo(catalog: Names, row: QueueRow): void {
  const { deadTo, perKey } = effectivePolicy(storedPolicy(row.code), storedPolicy(row.operator))
  if (deadTo === null) return
  const path = [row.name]
  for (let at: string | null = deadTo; at !== null; ) {
    path.push(at)
    if (at === row.name) {
      const text = `deadTo of queue "${row.name}" would be a loop: ${path.map((name) => `"${name}"`).join(' -> ')}.`
      throw new PieceworkError('PW_OPTION_INVALID', text, { queue: row.name, path })
    }
    const next = catalog.queue(at)
    at = next ? catalog.policyOf(next.id).deadTo : null
  }
  if (perKey.onDead !== 'hold') return
  const text = `Queue "${row.name}" cannot hold keys at their dead tasks (perKey.onDead) and send those away (deadTo).`
  throw new PieceworkError('PW_OPTION_INVALID', text, { queue: row.name })
}

/** The queue that takes the dead, as one of the layers of a patch names it. */
export function deadToOf({ code, operator }: Patch): string | null {
  const named = [code, operator].map((layer) => (layer as PolicyPatch | null | undefined)?.deadTo)
  return named.find((name) => typeof name === 'string') ?? null
}

/** True when keys are worked off strictly in order under one of them, and not under the other. */
export const changesOrder = (before: QueueRow, after: QueueRow) => isOrdered(before) !== isOrdered(after)

const isOrdered = ({ code, operator }: QueueRow) =>
  effectivePolicy(storedPolicy(code), storedPolicy(operator)).perKey.width === 1

/** The operator's layer with a patch laid over it; null clears it. */
function mergeOperator(row: QueueRow, patch: Patch | null): string | null {
  if (patch === null) return null
  const checked = checkPolicy(patch)
  const old = storedPolicy(row.operator) ?? {}
  const merged: PolicyPatch = { ...old, ...checked }
  if (checked.backoff) merged.backoff = { ...old.backoff, ...checked.backoff }
  if (checked.perKey) merged.perKey = { ...old.perKey, ...checked.perKey }
  return JSON.stringify(merged)
}

/** The layer without these fields; null when none is left. */
function without(text: string | null, fields: readonly string[]): string | null {
  const left = Object.entries(storedPolicy(text) ?? {}).filter(([field]) => !fields.includes(field))
  return left.length === 0 ? null : JSON.stringify(Object.fromEntries(left))
}

export function queueRecord(row: QueueRow, wallShift: number): QueueRecord {
  const code = storedPolicy(row.code) as QueueRecord['code']
  const operator = storedPolicy(row.operator) as QueueRecord['operator']
  const policy = effectivePolicy(code as PolicyPatch | null, operator as PolicyPatch | null)
  return { name: row.name, paused: row.pausedAt !== null, code, operator, policy, createdAt: row.createdAt + wallShift }
}

/** The type that `configure('type', …)` names: the queue, a NUL and the type; throws PW_QUEUE_UNKNOWN. */
export function typeNamed(catalog: Names, name: string): TypeRow & { queueName: string } {
  const [queueName = '', typeName = ''] = name.split('\0')
  const queue = catalog.queue(queueName)
  const type = queue && catalog.type(queue.id, typeName)
  if (!type) throw new PieceworkError('PW_QUEUE_UNKNOWN', `There is no type "${typeName}" in "${queueName}".`)
  return { ...type, queueName }
}

export const batchSealed = (name: string) =>
  new PieceworkError('PW_BATCH_SEALED', `The batch "${name}" is sealed; nothing can be added to it.`, { name })

/** Throws PW_BATCH_SEALED for a seal upon a seal: whoever sealed first may have counted on other tasks. */
export function refuseResealing(row: { name: string; sealedAt: number | null }, patch: Patch): void {
  if (patch.sealed !== true || row.sealedAt === null) return
  throw new PieceworkError('PW_BATCH_SEALED', `The batch "${row.name}" is sealed already.`, { name: row.name })
}

export const batchUnknown = (name: string) =>
  new PieceworkError('PW_BATCH_UNKNOWN', `There is no batch "${name}".`, { name })

export const cannotConfigure = (kind: string, patch: Patch | null) =>
  new PieceworkError('PW_OPTION_INVALID', `This engine cannot configure a ${kind} with ${JSON.stringify(patch)}.`)

export const noListOf = (kind: string) =>
  new PieceworkError('PW_OPTION_INVALID', `This engine keeps no list of ${kind}.`, { kind })

/** Seal and notes of a batch as a patch leaves them: `info` is merged field by field. `sealed`: the seal changed. */
export function patchedBatch(row: { info: string; sealedAt: number | null }, patch: Patch, now: number) {
  const info = { ...(JSON.parse(row.info) as Patch), ...(patch.info as Patch | undefined) }
  const sealedAt = patch.sealed === true ? (row.sealedAt ?? now) : row.sealedAt
  return { info: JSON.stringify(info), sealedAt, sealed: sealedAt !== row.sealedAt }
}

export interface BatchWhole {
  id: number
  name: string
  createdAt: number
  sealedAt: number | null
  finishedAt: number | null
  total: number
  done: number
  dead: number
  cancelled: number
  retries: number
  returned: number
  /** Of the dead, those that became tasks of another queue. */
  forwarded: number
  info: string
  followUp: string | null
}

export function batchRecord(row: BatchWhole, wallShift: number): BatchRecord {
  const { name, total, done, dead, cancelled, retries, returned } = row
  const finishedAt = row.finishedAt === null ? null : row.finishedAt + wallShift
  const createdAt = row.createdAt + wallShift
  const sealed = row.sealedAt !== null
  const info = JSON.parse(row.info) as Patch
  const followUp = shownFollowUp(row.followUp)
  return { name, sealed, total, done, dead, cancelled, retries, returned, createdAt, finishedAt, followUp, info }
}
