// Queues with their policy layers and batches, as both SQL engines keep and show them.
import type { Patch } from '../engine/contract.js'
import { checkPolicy, effectivePolicy, type PolicyPatch, storedPolicy } from '../task/limits.js'
import type { BatchRecord, QueueRecord } from '../task/records.js'

export interface QueueRow {
  id: number
  name: string
  createdAt: number
  pausedAt: number | null
  code: string | null
  operator: string | null
}

/** The operator's layer with a patch laid over it; null clears it. */
export function mergeOperator(row: QueueRow, patch: Patch | null): string | null {
  if (patch === null) return null
  const checked = checkPolicy(patch)
  const old = storedPolicy(row.operator) ?? {}
  const merged: PolicyPatch = { ...old, ...checked }
  if (checked.backoff) merged.backoff = { ...old.backoff, ...checked.backoff }
  if (checked.perKey) merged.perKey = { ...old.perKey, ...checked.perKey }
  return JSON.stringify(merged)
}

/** The layer without these fields; null when none is left. */
export function without(text: string | null, fields: readonly string[]): string | null {
  const left = Object.entries(storedPolicy(text) ?? {}).filter(([field]) => !fields.includes(field))
  return left.length === 0 ? null : JSON.stringify(Object.fromEntries(left))
}

export function queueRecord(row: QueueRow, wallShift: number): QueueRecord {
  const code = storedPolicy(row.code) as QueueRecord['code']
  const operator = storedPolicy(row.operator) as QueueRecord['operator']
  const policy = effectivePolicy(code as PolicyPatch | null, operator as PolicyPatch | null)
  return { name: row.name, paused: row.pausedAt !== null, code, operator, policy, createdAt: row.createdAt + wallShift }
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
  info: string
}

export function batchRecord(row: BatchWhole, wallShift: number): BatchRecord {
  const { name, total, done, dead, cancelled, retries, returned } = row
  const finishedAt = row.finishedAt === null ? null : row.finishedAt + wallShift
  const createdAt = row.createdAt + wallShift
  const sealed = row.sealedAt !== null
  const info = JSON.parse(row.info) as Patch
  return { name, sealed, total, done, dead, cancelled, retries, returned, createdAt, finishedAt, info }
}
