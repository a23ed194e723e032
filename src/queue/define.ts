// What a queue's payloads are: the types a program states, and the schemas that check them at enqueue and at claim.
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { closest } from '../ground/closest.js'
import { PieceworkError } from '../ground/errors.js'
import { shown } from '../task/limits.js'
import { encodePayload } from '../task/payload.js'

type NotInJson = bigint | symbol | undefined | ((...args: never[]) => unknown)
type Optional<T> = { [K in keyof T]-?: undefined extends T[K] ? K : never }[keyof T]

/** What T is after a trip through JSON, as a handler without a schema receives it: a Date is a string. */
export type Json<T> = 0 extends 1 & T
  ? T
  : unknown extends T
    ? T
    : T extends { toJSON(...args: never[]): infer R }
      ? Json<R>
      : T extends string | number | boolean | null
        ? T
        : T extends NotInJson
          ? never
          : T extends readonly unknown[]
            ? { [K in keyof T]: Json<T[K]> }
            : T extends object
              ? JsonObject<T>
              : never
type JsonObject<T> = Flat<
  { [K in keyof T as K extends symbol | Optional<T> ? never : K]: Json<T[K]> } & {
    [K in keyof T as K extends symbol ? never : K extends Optional<T> ? K : never]?: Json<Exclude<T[K], undefined>>
  }
>
type Flat<T> = { [K in keyof T]: T[K] }

/** Schemas of one queue by task type. */
export type SchemasByType = Record<string, StandardSchemaV1>

/** A type without validation, where a schema is expected: nothing is checked at run time. */
export function type<T>(): StandardSchemaV1<T, Json<T>> {
  return phantom as unknown as StandardSchemaV1<T, Json<T>>
}
const phantom: StandardSchemaV1 = {
  '~standard': { version: 1, vendor: 'piecework', validate: (value) => ({ value }) },
}

/** How one queue turns values into stored text and stored text into what a handler gets. */
export class Definition {
  readonly #schema: StandardSchemaV1 | null
  readonly #types: ReadonlyMap<string, StandardSchemaV1> | null

  /** Throws PW_OPTION_INVALID unless `schema` is a Standard Schema, or `types` an object of them; not both. */
  constructor(schema: unknown, types: unknown) {
    if (schema !== undefined && types !== undefined) {
      throw new PieceworkError('PW_OPTION_INVALID', 'A queue has either schema or types, not both.')
    }
    this.#schema = schema === undefined || schema === phantom ? null : checkSchema('schema', schema)
    this.#types = types === undefined ? null : checkTypes(types)
  }

  /** The declared types; null when a queue takes any. */
  get types(): readonly string[] | null {
    return this.#types === null ? null : [...this.#types.keys()]
  }

  /** Answers the type; throws PW_OPTION_INVALID when the queue declares its types and this is none of them. */
  checkType(type: string | undefined): void {
    if (this.#types === null || (type !== undefined && this.#types.has(type))) return
    const known = [...this.#types.keys()]
    const near = type === undefined ? null : closest(type, known)
    const hint = near ? `Did you mean "${near}"?` : `It has: ${known.join(', ')}.`
    const what = type === undefined ? 'This queue needs a type' : `This queue has no type ${shown(type)}`
    throw new PieceworkError('PW_OPTION_INVALID', `${what}. ${hint}`, { type })
  }

  /**
   * The JSON text of a payload that fits: the value as given, not what a schema makes of it.
   * Throws PW_PAYLOAD_INVALID with the issues, or what encodePayload throws; a promise when the schema is asynchronous.
   */
  encode(type: string | undefined, payload: unknown): string | Promise<string> {
    const text = encodePayload(payload)
    const schema = this.#schemaOf(type)
    if (schema === null) return text
    // Checked is what the claim will check: a Date under a schema that wants one is refused here, not buried later.
    const checked = validate(schema, JSON.parse(text))
    return checked instanceof Promise ? checked.then(() => text) : text
  }

  /** What the handler gets of stored text; throws PW_PAYLOAD_CORRUPT or PW_PAYLOAD_INVALID, which buries the task. */
  decode(type: string, text: string): unknown {
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause)
      throw new PieceworkError('PW_PAYLOAD_CORRUPT', `The stored payload is not JSON: ${why}`, {}, { cause })
    }
    const schema = this.#schemaOf(type)
    return schema === null ? value : validate(schema, value)
  }

  #schemaOf(type: string | undefined): StandardSchemaV1 | null {
    if (this.#types === null) return this.#schema
    const schema = type === undefined ? undefined : this.#types.get(type)
    return schema === undefined || schema === phantom ? null : schema
  }
}

function checkSchema(what: string, schema: unknown): StandardSchemaV1 {
  const standard = (schema as Partial<StandardSchemaV1> | null | undefined)?.['~standard']
  if (typeof standard?.validate === 'function') return schema as StandardSchemaV1
  throw new PieceworkError(
    'PW_OPTION_INVALID',
    `${what} is ${shown(schema)}, which is no Standard Schema: it has no "~standard".validate.`,
    { what },
  )
}

function checkTypes(types: unknown): ReadonlyMap<string, StandardSchemaV1> {
  const entries = typeof types === 'object' && types !== null ? Object.entries(types) : []
  if (entries.length === 0 || '~standard' in (types as object)) {
    throw new PieceworkError('PW_OPTION_INVALID', `types is ${shown(types)}; it must be an object of schemas by type.`)
  }
  return new Map(entries.map(([name, schema]) => [name, checkSchema(`types.${name}`, schema)]))
}

/** What the schema makes of the value; throws PW_PAYLOAD_INVALID. Synchronous as long as the schema is. */
function validate(schema: StandardSchemaV1, value: unknown): unknown {
  let result: ReturnType<StandardSchemaV1['~standard']['validate']>
  try {
    result = schema['~standard'].validate(value)
  } catch (cause) {
    throw threw(cause)
  }
  if (result instanceof Promise) {
    return result.then(outcome, (cause) => {
      throw threw(cause)
    })
  }
  return outcome(result)
}

function outcome(result: StandardSchemaV1.Result<unknown>): unknown {
  let issues: { path: string; message: string }[]
  try {
    if (result.issues === undefined) return result.value
    issues = result.issues.map((issue) => ({ path: pathOf(issue), message: issue.message }))
  } catch (cause) {
    // What it answered is not of the shape that Standard Schema has.
    throw threw(cause)
  }
  const texts = issues.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`))
  throw new PieceworkError('PW_PAYLOAD_INVALID', `The payload does not fit its schema: ${texts.join('; ')}`, { issues })
}

const pathOf = (issue: StandardSchemaV1.Issue) =>
  (issue.path ?? []).map((step) => String(typeof step === 'object' ? step.key : step)).join('.')

const threw = (cause: unknown) =>
  new PieceworkError('PW_PAYLOAD_INVALID', `The schema itself threw: ${shown(cause)}`, { issues: [] }, { cause })
