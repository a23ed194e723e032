// Reads what a handler threw, whatever it is: the verdict it asks for, and the text that is kept of it.
import { inspect } from 'node:util'
import type { ErrorText, Verdict } from '../engine/contract.js'
import { Bury, Overloaded, Release, Retry } from '../task/handler.js'
import { errorBytesMax } from '../task/limits.js'

/** A thrown code longer than this is no code. */
const codeLengthMax = 200
/** Causes followed below an error; deeper ones rarely fit into what is kept. */
const causesMax = 4
/** Delays beyond a year are a mistake in a unit. */
const delayMsMax = 365 * 86_400_000

type Decision = 'retry' | 'release' | 'overloaded' | 'bury'

const classes = [
  [Retry, 'Retry', 'retry'],
  [Overloaded, 'Overloaded', 'overloaded'],
  [Release, 'Release', 'release'],
  [Bury, 'Bury', 'bury'],
] as const

/** The verdict on a delivery whose handler threw; anything but the four decisions is a retry. */
export function verdictOf(receipt: string, thrown: unknown): Verdict {
  const decision = decisionOf(thrown)
  const delayMs = decision === null || decision === 'bury' ? undefined : delayOf(thrown)
  switch (decision) {
    case 'bury':
      return { receipt, do: 'bury', error: errorText(thrown) }
    case 'release':
    case 'overloaded':
      return {
        receipt,
        do: 'release',
        by: decision === 'release' ? 'handler' : 'overloaded',
        delayMs,
        error: errorText(thrown),
      }
    default:
      return { receipt, do: 'retry', delayMs, error: errorText(thrown) }
  }
}

/** True for a thrown bury or release: what a handler that was told to stop may still decide. */
export function isDefinite(thrown: unknown): boolean {
  const decision = decisionOf(thrown)
  return decision !== null && decision !== 'retry'
}

/** By class; for another copy of this package, by the name and the field that only our classes have together. */
function decisionOf(thrown: unknown): Decision | null {
  try {
    if (typeof thrown !== 'object' || thrown === null) return null
    for (const [kind, , decision] of classes) if (thrown instanceof kind) return decision
    if (!(thrown instanceof Error)) return null
    const { name } = thrown
    for (const [, known, decision] of classes) {
      if (name === known && (decision === 'bury' || 'delayMs' in thrown)) return decision
    }
  } catch {
    // A proxy or getter that throws is no decision.
  }
  return null
}

function delayOf(thrown: unknown): number | undefined {
  try {
    const { delayMs } = thrown as { delayMs?: unknown }
    if (typeof delayMs === 'number' && delayMs >= 0) return Math.min(delayMs, delayMsMax)
  } catch {
    // As if none had been given.
  }
  return undefined
}

/** Code and text of anything thrown: at most 4 KiB of well-formed UTF-8, cut between characters; never throws. */
export function errorText(thrown: unknown): ErrorText {
  const said: string[] = []
  let code: string | null = null
  let error = thrown
  for (let depth = 0; depth < causesMax; depth++) {
    code ??= codeOf(error)
    said.push(textOf(error))
    const cause = causeOf(error)
    if (cause === undefined || cause === error) break
    error = cause
  }
  return { code, text: cut(said.join('\ncaused by: ')) }
}

/** What a listener is told: the error itself, the abort's reason when nothing was thrown, or an error around it. */
export function asError(thrown: unknown, reason: Error | null): Error {
  try {
    if (thrown instanceof Error) return thrown
  } catch {
    // A proxy that lets nobody ask.
  }
  return thrown === undefined && reason ? reason : new Error(errorText(thrown).text)
}

function codeOf(thrown: unknown): string | null {
  try {
    const code: unknown = (thrown as { code?: unknown } | null | undefined)?.code
    if (typeof code === 'string' && code !== '' && code.length <= codeLengthMax) return code.toWellFormed()
  } catch {
    // It has none that can be read.
  }
  return null
}

function causeOf(thrown: unknown): unknown {
  try {
    return thrown instanceof Error ? thrown.cause : undefined
  } catch {
    return undefined
  }
}

function textOf(thrown: unknown): string {
  try {
    if ((typeof thrown !== 'object' || thrown === null) && typeof thrown !== 'function') return String(thrown)
    const { stack, message } = thrown as { stack?: unknown; message?: unknown }
    if (typeof stack === 'string' && stack !== '') return stack
    if (typeof message === 'string' && message !== '') return message
    return inspect(thrown, { depth: 3, maxStringLength: errorBytesMax })
  } catch {
    return `Something was thrown that cannot be shown (${typeof thrown}).`
  }
}

function cut(text: string): string {
  // A UTF-16 unit is at least one byte, so no more than this many can be kept.
  const near = text.slice(0, errorBytesMax).toWellFormed()
  const bytes = Buffer.from(near)
  if (bytes.length <= errorBytesMax && near.length === text.length) return near
  let end = Math.min(bytes.length, errorBytesMax)
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end)
}
