// Reads FIELD=VALUE for the policy of a queue: the library's names, or the same in kebab case with durations.
import { breakerDefaults, limitFields, policyDefaults } from '../task/limits.js'
import { msOf, pair } from './values.js'

type Patch = Record<string, unknown>

/** `leaseMs=30000`, `lease=30s`, `timeout=none`, `backoff.base=1s` as a patch; its fields are checked later. */
export function patchOf(settings: readonly string[]): Patch {
  const patch: Patch = {}
  for (const setting of settings) {
    const [name, text] = pair('A setting', setting)
    const path = name.split('.')
    const outer = fieldNamed(path[0] ?? '', policyDefaults)
    if (path.length === 1) patch[outer] = topLevel(outer, text)
    else {
      const fields = outer === 'breaker' ? breakerDefaults : (policyDefaults as unknown as Patch)[outer]
      const inner = fieldNamed(path.slice(1).join('.'), fields)
      patch[outer] = { ...(patch[outer] as Patch | undefined), [inner]: parsed(text) }
    }
  }
  return patch
}

/** `concurrency=20`, `per-second=200`, `adaptive=true` as the settings of a limit. */
export function limitPatchOf(settings: readonly string[]): Patch {
  const fields = Object.fromEntries(limitFields.map((field) => [field, null]))
  return Object.fromEntries(
    settings.map((setting) => {
      const [name, text] = pair('A setting', setting)
      return [fieldNamed(name, fields), parsed(text)]
    }),
  )
}

/** A queue's name is a name, also where it looks like a number or a duration. */
function topLevel(field: string, text: string): unknown {
  if (field === 'uses') return listed(text)
  return field === 'deadTo' && text !== 'none' ? text : parsed(text)
}

/** Names separated by commas; `none` is none. */
const listed = (text: string): string[] =>
  text === 'none' || text === '' ? [] : text.split(',').map((name) => name.trim())

/** The library's field for a name of either kind; the name itself when there is none, for the check to refuse. */
export function fieldNamed(name: string, fields: unknown = policyDefaults): string {
  const known = typeof fields === 'object' && fields !== null ? Object.keys(fields) : []
  const kebab = (field: string) =>
    field.replace(/(Ms|Max)$/, '').replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
  // `base` and `max` of a backoff are baseMs and maxMs.
  return known.find((field) => field === name || kebab(field) === name) ?? name
}

function parsed(text: string): unknown {
  if (text === 'none' || text === 'null') return null
  if (text === 'true' || text === 'false') return text === 'true'
  const ms = msOf(text)
  if (ms !== null) return ms
  return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text
}
