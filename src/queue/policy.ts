// A queue's policy as programs and operators set it: declared once by the code, changed by configure and pause.
import { isDeepStrictEqual } from 'node:util'
import { PieceworkError } from '../ground/errors.js'
import { warn } from '../ground/warn.js'
import type { LimitSettings } from '../task/limiter.js'
import {
  checkLimit,
  checkName,
  checkPolicy,
  effectivePolicy,
  type Policy,
  type PolicyPatch,
  shown,
} from '../task/limits.js'
import type { LimitRecord, QueueRecord } from '../task/records.js'
import type { Acting, Connection } from './connection.js'

/** The stored queue, or null when nobody has used or configured it. */
export async function readQueue(connection: Acting, name: string): Promise<QueueRecord | null> {
  const page = await connection.engine().select('queue', { name }, null)
  return (page.items[0] as QueueRecord | undefined) ?? null
}

/** What is in force for a queue now; the defaults when nobody has used it. */
export async function policyInForce(connection: Acting, name: string): Promise<Policy> {
  return (await readQueue(connection, name))?.policy ?? effectivePolicy()
}

/** Declares the code's layer. Another build's: replaced with one warning, or PW_POLICY_CHANGED when strict. */
export async function declarePolicy(connection: Connection, name: string, patch: PolicyPatch): Promise<void> {
  const before = (await readQueue(connection, name))?.code ?? null
  if (before !== null && isDeepStrictEqual(before, patch)) return
  if (before !== null) {
    const changed = policyChanged(name, before, patch)
    if (connection.strict) throw changed
    warn(changed)
  }
  await connection.engine().configure('queue', name, { code: patch }, connection.actor)
}

/** Lays fields over the operator's layer, which wins over the code's; null drops it. Answers what is in force. */
export async function configureQueue(
  connection: Acting,
  name: string,
  given: Record<string, unknown> | null,
  { force = false }: { force?: boolean | undefined } = {},
): Promise<Policy> {
  if (given !== null && (typeof given !== 'object' || Array.isArray(given))) {
    throw new PieceworkError('PW_OPTION_INVALID', `The settings are ${shown(given)}; they must be an object, or null.`)
  }
  const operator = given === null ? null : checkPolicy(given)
  const record = await connection.engine().configure('queue', name, { operator, force }, connection.actor)
  return (record as unknown as QueueRecord).policy
}

/** Declares a limit in the code's layer, when settings are given; answers what is in force, null when there is none. */
export async function declareLimit(
  connection: Connection,
  given: string,
  settings: Partial<LimitSettings> | undefined,
): Promise<LimitRecord | null> {
  const name = checkName('limit', given)
  const engine = connection.engine()
  if (settings !== undefined) {
    if (settings === null || typeof settings !== 'object') {
      throw new PieceworkError('PW_OPTION_INVALID', `The settings of a limit are ${shown(settings)}.`)
    }
    const code = checkLimit({ ...settings })
    return (await engine.configure('limit', name, { code }, connection.actor)) as unknown as LimitRecord
  }
  return ((await engine.select('limit', { name }, null)).items[0] as LimitRecord | undefined) ?? null
}

/** Stops or lets go the claims of a queue; what is leased goes on. */
export async function pauseQueue(connection: Acting, name: string, paused: boolean): Promise<void> {
  await connection.engine().configure('queue', name, { paused }, connection.actor)
}

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
