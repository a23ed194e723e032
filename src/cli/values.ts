// Reads the values of options: durations, whole numbers, choices, name=value pairs, halting rules.

import { closest } from '../ground/closest.js'
import { PieceworkError } from '../ground/errors.js'
import { checkWhole, isoInstant, shown } from '../task/limits.js'

const unitsMs: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** `250ms 30s 5m 1h` as whole ms; null for anything else. */
export function msOf(text: string): number | null {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text)
  return match === null ? null : Math.round(Number(match[1]) * (unitsMs[match[2] ?? ''] ?? 1))
}

/** A duration in ms; throws PW_OPTION_INVALID. */
export function duration(option: string, text: string): number {
  const ms = msOf(text)
  if (ms !== null) return ms
  const hint = /^\d+$/.test(text) ? ` Did you mean "${text}s"?` : ''
  throw new PieceworkError(
    'PW_OPTION_INVALID',
    `${option} is ${shown(text)}; it must be a duration such as 250ms, 30s, 5m or 1h.${hint}`,
    { option },
  )
}

/** An instant with its zone, in ms; throws PW_OPTION_INVALID. */
export function instant(option: string, text: string): number {
  const at = isoInstant(text)
  if (at !== null) return at
  const message = `${option} is ${shown(text)}; it must be an instant such as 2030-01-31T08:00:00Z.`
  throw new PieceworkError('PW_OPTION_INVALID', message, { option })
}

/** A whole number from `min` to `max`; throws PW_OPTION_INVALID. */
export function whole(option: string, text: string, min: number, max: number): number {
  return checkWhole(option, /^[+-]?\d+$/.test(text) ? Number(text) : text, min, max)
}

/** One of `choices`; throws PW_OPTION_INVALID with the nearest. */
export function choice<const T extends string>(option: string, text: string, choices: readonly T[]): T {
  if ((choices as readonly string[]).includes(text)) return text as T
  const near = closest(text, choices)
  const hint = near ? `Did you mean "${near}"?` : `It must be one of ${choices.join(', ')}.`
  throw new PieceworkError('PW_OPTION_INVALID', `${option} is ${shown(text)}. ${hint}`, { option })
}

/** `k=v`, cut at the first =; throws PW_OPTION_INVALID. */
export function pair(option: string, text: string): [string, string] {
  const at = text.indexOf('=')
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)]
  throw new PieceworkError('PW_OPTION_INVALID', `${option} is ${shown(text)}; it must look like name=value.`, {
    option,
  })
}

/** For an option that may be repeated: all its values, in the order they were given. */
export const collected = (text: string, before: string[] | undefined): string[] => [...(before ?? []), text]
