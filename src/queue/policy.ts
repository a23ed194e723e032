// A queue's policy as programs and operators set it: declared once by the code, changed by configure and pause.
import { isDeepStrictEqual } from 'node:util'
import { PieceworkError } from '../ground/errors.js'
import { checkPolicy, effectivePolicy, type Policy, type PolicyPatch, shown } from '../task/limits.js'
import type { QueueRecord } from '../task/records.js'
import { type Connection, warn } from './connection.js'

/** The stored queue, or null when nobody has used or configured it. */
export async function readQueue(connection: Connection, name: string): Promise<QueueRecord | null> {
  const page = await connection.reading().select('queue', { name }, null)
  return (page.items[0] as QueueRecord | undefined) ?? null
}

/**
 * Declares the code's layer and answers what is in force. Another build's layer: the later start wins with one
 * warning, or PW_POLICY_CHANGED under a strict connection. A null patch declares nothing.
 */
export async function declarePolicy(connection: Connection, name: string, patch: PolicyPatch | null): Promise<Policy> {
  const stored = await readQueue(connection, name)
  if (patch === null) return stored?.policy ?? effectivePolicy()
  const before = stored?.code ?? null
  if (stored !== null && before !== null && isDeepStrictEqual(before, patch)) return stored.policy
  if (before !== null) {
    const changed = policyChanged(name, before, patch)
    if (connection.strict) throw changed
    warn(changed)
  }
  return policyIn(await connection.working().configure('queue', name, { code: patch }, connection.actor))
}

/** Lays fields over the operator's layer, which wins over the code's; null drops that layer. Answers what is in force. */
export async function configureQueue(
  connection: Connection,
  name: string,
  given: Record<string, unknown> | null,
): Promise<Policy> {
  if (given !== null && (typeof given !== 'object' || Array.isArray(given))) {
    throw new PieceworkError('PW_OPTION_INVALID', `The settings are ${shown(given)}; they must be an object, or null.`)
  }
  const operator = given === null ? null : checkPolicy(given)
  return policyIn(await connection.working().configure('queue', name, { operator }, connection.actor))
}

/** Stops or lets go the claims of a queue; what is leased goes on. */
export async function pauseQueue(connection: Connection, name: string, paused: boolean): Promise<void> {
  await connection.working().configure('queue', name, { paused }, connection.actor)
}

const policyIn = (answer: Record<string, unknown>): Policy => (answer as unknown as QueueRecord).policy

function policyChanged(name: string, before: PolicyPatch, after: PolicyPatch): PieceworkError {
  const fields = [...new Set([...Object.keys(before), ...Object.keys(after)])] as (keyof PolicyPatch)[]
  const differing = fields.filter((field) => !isDeepStrictEqual(before[field], after[field]))
  const texts = differing.map((field) => `${field} ${word(before[field])} -> ${word(after[field])}`)
  return new PieceworkError('PW_POLICY_CHANGED', `The code's policy of queue "${name}" changes: ${texts.join(', ')}.`, {
    queue: name,
    before,
    after,
  })
}

const word = (value: unknown) => (value === undefined ? 'default' : JSON.stringify(value))
