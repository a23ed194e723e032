// Reads FIELD=VALUE for the policy of a queue: the library's names, or the same in kebab case with durations.
import { policyDefaults } from '../task/limits.js'
import { msOf, pair } from './values.js'

type Patch = Record<string, unknown>

/** `leaseMs=30000`, `lease=30s`, `timeout=none`, `backoff.base=1s` as a patch; its fields are checked later. */
export function patchOf(settings: readonly string[]): Patch {
  const patch: Patch = {}
  for (const setting of settings) {
    const [name, text] = pair('A setting', setting)
    const path = name.split('.')
    const outer = fieldNamed(path[0] ?? '', policyDefaults)
    // A queue's name is a name, also where it looks like a number or a duration.
    if (path.length === 1) patch[outer] = outer === 'deadTo' && text !== 'none' ? text : parsed(text)
    else {
      const inner = fieldNamed(path.slice(1).join('.'), (policyDefaults as unknown as Patch)[outer])
      patch[outer] = { ...(patch[outer] as Patch | undefined), [inner]: parsed(text) }
    }
  }
  return patch
}

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
