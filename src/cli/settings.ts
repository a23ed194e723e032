// Reads FIELD=VALUE for the policy of a queue: the library's names, or the same in kebab case with durations.
import { closest } from '../ground/closest.js'
import { PieceworkError } from '../ground/errors.js'
import {
  breakerDefaults,
  checkLimit,
  checkPolicy,
  limitFields,
  noSetting,
  policyDefaults,
  shown,
} from '../task/limits.js'
import { msOf, pair } from './values.js'

type Patch = Record<string, unknown>

/** `leaseMs=30000`, `lease=30s`, `timeout=none`, `backoff.base=1s` as a patch. PW_OPTION_INVALID, PW_OPTION_UNKNOWN. */
export function patchOf(settings: readonly string[]): Patch {
  const patch: Patch = {}
  for (const setting of settings) {
    const [name, text] = pair('A setting', setting)
    const [outerName = '', innerName, ...deeper] = name.split('.')
    const outer = fieldNamed('A queue', outerName, policyDefaults)
    const parts = outer === 'breaker' ? breakerDefaults : policyDefaults[outer as keyof typeof policyDefaults]
    if (innerName === undefined) patch[outer] = topLevel(name, outer, text)
    else if (typeof parts !== 'object' || parts === null || Array.isArray(parts) || deeper.length > 0) {
      throw new PieceworkError('PW_OPTION_UNKNOWN', `${outer} has no part ${shown(name)}.`, { field: name })
    } else {
      const inner = fieldNamed(outer, innerName, parts)
      patch[outer] = { ...(patch[outer] as Patch | undefined), [inner]: readOf(name, inner, text) }
    }
  }
  // Refused before the store is touched.
  return checkPolicy(patch)
}

/** `concurrency=20`, `per-second=200`, `adaptive=true` as the settings of a limit. */
export function limitPatchOf(settings: readonly string[]): Patch {
  const fields = Object.fromEntries(limitFields.map((field) => [field, null]))
  const patch = settings.map((setting) => {
    const [name, text] = pair('A setting', setting)
    const field = fieldNamed('A limit', name, fields)
    return [field, readOf(name, field, text)]
  })
  return checkLimit(Object.fromEntries(patch))
}

/** A queue's name is a name, also where it looks like a number or a duration. */
function topLevel(name: string, field: string, text: string): unknown {
  if (field === 'uses') return listed(text)
  return field === 'deadTo' && text !== 'none' ? text : readOf(name, field, text)
}

/** Names separated by commas; `none` is none. */
const listed = (text: string): string[] =>
  text === 'none' || text === '' ? [] : text.split(',').map((name) => name.trim())

/** The settings that `unset` names, by the library's names; throws PW_OPTION_UNKNOWN. */
export const fieldsOf = (names: readonly string[]): string[] =>
  names.map((name) => {
    const [whole = '', part] = name.split('.')
    const field = fieldNamed('A queue', whole, policyDefaults)
    if (part === undefined) return field
    throw new PieceworkError('PW_OPTION_UNKNOWN', `Settings are unset whole: say ${field}, not ${shown(name)}.`, {
      field,
    })
  })

/** The library's field for a name of either kind. */
function fieldNamed(owner: string, name: string, fields: object): string {
  const known = Object.keys(fields)
  const kebab = (field: string) =>
    field.replace(/(Ms|Max)$/, '').replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
  // `base` and `max` of a backoff are baseMs and maxMs.
  const field = known.find((one) => one === name || kebab(one) === name)
  if (field !== undefined) return field
  throw noSetting(owner, name, closest(name, known) ? known : known.map(kebab))
}

/** The value of a setting; what is no number stays text, for the check to say what it should have been. */
function readOf(name: string, field: string, text: string): unknown {
  if (field === 'jitter' || field === 'onDead') return text
  if (text === 'none' || text === 'null') return null
  if (text === 'true' || text === 'false') return text === 'true'
  const ms = field.endsWith('Ms') ? msOf(text) : null
  if (ms !== null) return ms
  if (/^-?\d+(\.\d+)?$/.test(text)) return Number(text)
  if (!field.endsWith('Ms')) return text
  const none = field === 'timeoutMs' ? ', or none' : ''
  const wanted = `it must be a duration such as 250ms, 30s, 5m or 1h${none}`
  throw new PieceworkError('PW_OPTION_INVALID', `${name} is ${shown(text)}; ${wanted}.`, { field })
}
