// Checks what a program gives to work(): handlers by type, the types to claim, the worker's options.
import { constants } from 'node:os'
import { closest } from '../ground/closest.js'
import { PieceworkError } from '../ground/errors.js'
import type { Handler } from '../task/handler.js'
import { checkName, checkWhole, shown } from '../task/limits.js'
import { checkOptions } from './options.js'
import type { WorkerOptions } from './seam.js'

export interface HandlerPlan {
  /** By type; '*' takes what has none of its own. */
  handlers: ReadonlyMap<string, Handler<unknown>>
  /** Types to claim; null for all. */
  types: readonly string[] | null
}

const invalid = (message: string, details: Record<string, unknown> = {}) =>
  new PieceworkError('PW_HANDLER_INVALID', message, details)

/** Throws PW_HANDLER_INVALID. `declared` are the types of the queue's definition, null when it takes any. */
export function planHandlers(given: unknown, declared: readonly string[] | null, asked: unknown): HandlerPlan {
  const wanted = asked === undefined ? null : checkTypes(asked)
  if (typeof given === 'function') {
    for (const type of wanted ?? []) checkDeclared(type, declared)
    return { handlers: new Map([['*', given as Handler<unknown>]]), types: wanted ?? declared }
  }
  const handlers = handlerMap(given)
  for (const type of handlers.keys()) if (type !== '*') checkDeclared(type, declared)
  const open = handlers.has('*')
  const own = [...handlers.keys()].filter((type) => type !== '*')
  const missing = open ? [] : (wanted ?? declared ?? []).filter((type) => !handlers.has(type))
  if (missing.length > 0) {
    const cure = wanted === null ? ' Handle them, add "*", or name the types to claim in { types: [...] }.' : ''
    throw invalid(`There is no handler for ${missing.map(shown).join(', ')}.${cure}`, { missing })
  }
  return { handlers, types: wanted ?? (open ? null : own) }
}

function handlerMap(given: unknown): Map<string, Handler<unknown>> {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw invalid(`The handler is ${shown(given)}.`)
  }
  const entries = Object.entries(given)
  if (entries.length === 0) throw invalid('The object of handlers is empty.')
  for (const [type, handler] of entries) {
    if (typeof handler !== 'function')
      throw invalid(`The handler for type ${shown(type)} is ${shown(handler)}.`, { type })
    checkName('type', type)
  }
  return new Map(entries as [string, Handler<unknown>][])
}

function checkDeclared(type: string, declared: readonly string[] | null): void {
  if (declared === null || declared.includes(type)) return
  const near = closest(type, declared)
  throw invalid(
    `The queue has no type ${shown(type)}. ${near ? `Did you mean "${near}"?` : `It has: ${declared.join(', ')}.`}`,
  )
}

function checkTypes(types: unknown): string[] {
  if (Array.isArray(types) && types.length > 0) return types.map((type) => checkName('type', type))
  throw new PieceworkError('PW_OPTION_INVALID', `types is ${shown(types)}; it must be a list of at least one type.`)
}

const isCatchable = (signal: unknown) =>
  typeof signal === 'string' && signal in constants.signals && signal !== 'SIGKILL' && signal !== 'SIGSTOP'

/** Throws PW_OPTION_UNKNOWN or PW_OPTION_INVALID. */
export function checkWorkerOptions(given: WorkerOptions): void {
  checkOptions('work', given)
  const { concurrency, graceMs, prefetch, stopOn } = given
  if (concurrency !== undefined) checkWhole('concurrency', concurrency, 1, 10_000)
  if (graceMs !== undefined) checkWhole('graceMs', graceMs, 0, 86_400_000)
  if (prefetch !== undefined && prefetch !== 'adaptive') checkWhole('prefetch', prefetch, 0, 10_000)
  if (stopOn === undefined) return
  if (Array.isArray(stopOn) && stopOn.every(isCatchable)) return
  throw new PieceworkError(
    'PW_OPTION_INVALID',
    `stopOn is ${shown(stopOn)}; it must be a list of signals as 'SIGTERM' that can be caught.`,
  )
}
