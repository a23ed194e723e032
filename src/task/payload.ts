// Turns values into the JSON text that is stored, and refuses what JSON cannot hold, with the path or offset.
import { PieceworkError } from '../ground/errors.js'
import { jsonFault } from './json-fault.js'
import { payloadBytesMax, payloadDepthMax } from './limits.js'

/** JSON text of a value; throws PW_PAYLOAD_NOT_JSON, PW_PAYLOAD_TOO_DEEP or PW_PAYLOAD_TOO_LARGE. */
export function encodePayload(value: unknown): string {
  const text = stringified(value)
  if (text === undefined) throw notJson(value, '')
  return checkSize(text)
}

/** What the value's own code throws (a getter, a toJSON) is a refusal as well. */
function stringified(value: unknown): string | undefined {
  try {
    walk(value, '', 0, [])
    return JSON.stringify(value) as string | undefined
  } catch (error) {
    if (error instanceof PieceworkError) throw error
    const why = error instanceof Error ? error.message : 'it threw something'
    throw new PieceworkError('PW_PAYLOAD_NOT_JSON', `The payload cannot be read: ${why}`, {}, { cause: error })
  }
}

/** Checks text that is JSON already and answers it unchanged, so that big numbers and double keys stay as written. */
export function checkPayloadText(text: string): string {
  checkText(text)
  parseJson(text, payloadDepthMax)
  return text
}

/** Checks text that was read as JSON already; what checkPayloadText throws but for that. */
export function checkPayloadBounds(text: string): string {
  checkText(text)
  checkDepth(text, payloadDepthMax)
  return text
}

function checkText(text: string): void {
  checkSize(text)
  const lone = loneSurrogate(text)
  if (lone >= 0) {
    throw new PieceworkError('PW_JSON_INVALID', `There is a lone surrogate at offset ${lone}.`, { offset: lone })
  }
}

/** The value of JSON text that is not nested deeper than `depthMax`; throws PW_PAYLOAD_TOO_DEEP, PW_JSON_INVALID. */
export function parseJson(text: string, depthMax: number): unknown {
  checkDepth(text, depthMax)
  try {
    return JSON.parse(text)
  } catch (error) {
    const { offset, why } = jsonFault(text) ?? { offset: 0, why: (error as Error).message }
    throw new PieceworkError('PW_JSON_INVALID', `Not JSON at offset ${offset}: ${why}.`, { offset }, { cause: error })
  }
}

/** The offset of the first lone surrogate, or -1. */
export function loneSurrogate(text: string): number {
  if (text.isWellFormed()) return -1
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code < 0xd800 || code > 0xdfff) continue
    if (code <= 0xdbff && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00) i++
    else return i
  }
  return -1
}

function checkSize(text: string): string {
  // A UTF-16 unit is at most 3 bytes of UTF-8, so most texts need no count.
  if (text.length * 3 <= payloadBytesMax) return text
  const bytes = Buffer.byteLength(text)
  if (bytes <= payloadBytesMax) return text
  throw new PieceworkError(
    'PW_PAYLOAD_TOO_LARGE',
    `The payload has ${bytes} bytes as JSON; at most ${payloadBytesMax} are allowed.`,
    { bytes },
  )
}

function tooDeep(where: string): PieceworkError {
  return new PieceworkError(
    'PW_PAYLOAD_TOO_DEEP',
    `More than ${payloadDepthMax} arrays and objects stand inside each other at ${where}.`,
    { where },
  )
}

function checkDepth(text: string, depthMax: number): void {
  let depth = 0
  let quoted = false
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (quoted) {
      if (code === 0x5c) i++
      else if (code === 0x22) quoted = false
    } else if (code === 0x22) quoted = true
    else if (code === 0x5b || code === 0x7b) {
      if (++depth > depthMax) throw tooDeep(`offset ${i}`)
    } else if (code === 0x5d || code === 0x7d) depth--
  }
}

function notJson(value: unknown, path: string): PieceworkError {
  const kind =
    typeof value === 'object' && value !== null
      ? `a ${value.constructor?.name ?? 'value'}`
      : typeof value === 'number'
        ? String(value)
        : typeof value
  const where = path === '' ? 'The payload' : `The payload at ${path}`
  return new PieceworkError('PW_PAYLOAD_NOT_JSON', `${where} is ${kind}, which JSON cannot hold.`, { path })
}

const bytesOrSet = (value: object) =>
  value instanceof Map ||
  value instanceof Set ||
  value instanceof WeakMap ||
  value instanceof WeakSet ||
  value instanceof Promise ||
  value instanceof RegExp ||
  value instanceof Error ||
  value instanceof ArrayBuffer ||
  ArrayBuffer.isView(value)

/** Walks what JSON.stringify would write. `within` holds the objects around this one, to name a circle by its path. */
function walk(value: unknown, path: string, depth: number, within: object[], asked = false): void {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return
  if (typeof value === 'number') {
    if (Number.isFinite(value)) return
    throw notJson(value, path)
  }
  if (typeof value !== 'object') throw notJson(value, path)
  if (bytesOrSet(value)) throw notJson(value, path)
  // Asked once: what a toJSON answers is written as it is, whatever methods it has.
  if (!asked && typeof (value as { toJSON?: unknown }).toJSON === 'function') {
    if (value instanceof Date && Number.isNaN(value.getTime())) throw notJson(Number.NaN, path)
    return walk((value as { toJSON(key: string): unknown }).toJSON(path), path, depth, within, true)
  }
  if (within.includes(value)) {
    throw new PieceworkError('PW_PAYLOAD_NOT_JSON', `The payload refers to itself at ${path}.`, { path })
  }
  if (depth >= payloadDepthMax) throw tooDeep(path)
  within.push(value)
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) walk(value[i], `${path}[${i}]`, depth + 1, within)
  } else {
    for (const key of Object.keys(value)) {
      const inner = (value as Record<string, unknown>)[key]
      // A field that is undefined is left out, as JSON.stringify does and optional fields expect.
      if (inner !== undefined) walk(inner, path === '' ? key : `${path}.${key}`, depth + 1, within)
    }
  }
  within.pop()
}
