// Checks bodies and queries against the schemas of the route table, and refuses in the words of the library.
import * as v from 'valibot'
import { closest } from '../ground/closest.js'
import { PieceworkError } from '../ground/errors.js'
import { shown } from '../task/limits.js'

export type Schema = v.GenericSchema
type Inner = Schema & { type: string; options?: readonly Inner[]; entries?: Record<string, unknown> }

/** Answers what the schema makes of the value; throws PW_OPTION_UNKNOWN or PW_OPTION_INVALID. */
export function checked(schema: Schema, value: unknown, what: string): unknown {
  const chosen = chosenOf(schema as Inner, value)
  const result = v.safeParse(chosen, value, { abortEarly: true })
  if (result.success) return result.output
  const [issue] = result.issues
  const path = issue.path?.map((step) => String(step.key)).join('.') ?? ''
  if (issue.type === 'strict_object' && issue.expected === 'never') {
    const known = Object.keys(chosen.entries ?? {})
    const near = closest(path, known)
    const hint = near ? `Did you mean "${near}"?` : known.length > 0 ? `It has: ${known.join(', ')}.` : 'It has none.'
    throw new PieceworkError('PW_OPTION_UNKNOWN', `${what} has no field ${shown(path)}. ${hint}`, { field: path })
  }
  const missing = issue.type === 'strict_object' && issue.received === 'undefined' && path !== ''
  const text = missing ? `${path} is missing` : `${path || what} is ${shown(issue.input)}: ${issue.message}`
  throw new PieceworkError('PW_OPTION_INVALID', `${text}.`, { field: path })
}

/** Of a choice between one and many the one that was meant, so that the refusal speaks of that. */
function chosenOf(schema: Inner, value: unknown): Inner {
  if (schema.type !== 'union' || !schema.options) return schema
  return schema.options.find((option) => (option.type === 'array') === Array.isArray(value)) ?? schema
}

const whole = (min: number, max: number) => v.pipe(v.number(), v.integer(), v.minValue(min), v.maxValue(max))

/** A whole number in a query, where everything is text. */
const queryWhole = (min: number, max: number) =>
  v.pipe(v.string(), v.regex(/^\d{1,15}$/), v.transform(Number), v.minValue(min), v.maxValue(max))

const queryNumber = v.pipe(v.string(), v.regex(/^\d{1,15}(\.\d{1,6})?$/), v.transform(Number))

const text = v.string()
const name = v.pipe(v.string(), v.minLength(1))
const instant = v.nullable(v.string())

export const s = { whole, queryWhole, queryNumber, text, name, instant }

/** Of routes that take no query. */
export const noQuery = v.strictObject({})
