// Makes the schema of a store, refuses one that is newer, and brings an older one up to date under a lock.
import { createHash } from 'node:crypto'
import { PieceworkError } from '../../ground/errors.js'
import type { Link } from './link.js'
import { format, inSchema, migrations, quoted } from './schema.js'

/** How long a start waits for another process that is just making or migrating the store. */
const migratingMs = 30_000

/** Names the advisory locks of the store with this schema: a whole number of 31 bits. */
export const lockClassOf = (schema: string): number =>
  createHash('sha256').update(`piecework ${schema}`).digest().readUInt32BE() >>> 1

export interface MigrateOptions {
  schema: string
  /** Named in errors. */
  name: string
  dryRun: boolean
  /** Make a store where there is none. */
  create: boolean
}

/** The statements that bring the store to the present format; runs them in one transaction unless `dryRun`. */
export async function migrateStore(link: Link, options: MigrateOptions): Promise<string[]> {
  const { schema, name, dryRun, create } = options
  const found = await formatOf(link, schema)
  if (found === null && !create) {
    throw new PieceworkError('PW_STORE_MISSING', `There is no schema ${schema} of piecework in ${name}.`, { schema })
  }
  if (found !== null && found > format) {
    throw new PieceworkError('PW_SCHEMA_NEW', `${name} has format ${found}; this version knows up to ${format}.`, {
      format: found,
    })
  }
  const missing = stepsAfter(found, schema)
  if (dryRun || missing.length === 0) return missing
  // Whoever only uses a store that is there leaves its format alone: processes of the older version go on with it.
  if (!create) {
    throw new PieceworkError('PW_SCHEMA_OLD', `${name} has format ${found}; this version works with ${format}.`, {
      format: found,
    })
  }
  await link.begin()
  await link.say(`set local lock_timeout = ${migratingMs}`)
  await link.run({ name: '', text: 'select pg_advisory_xact_lock($1::int, 1)' }, [lockClassOf(schema)])
  // Whoever had the lock before us may have done it.
  const steps = stepsAfter(await formatOf(link, schema), schema)
  try {
    for (const step of steps) await link.say(step)
    await link.say('commit')
  } catch (error) {
    if ((error as { code?: string }).code !== '42501') throw error
    throw new PieceworkError(
      'PW_SCHEMA_OLD',
      `${name} has format ${found ?? 'none'}, and this user may not migrate it.`,
      { format: found },
      { cause: error },
    )
  }
  return steps
}

function stepsAfter(found: number | null, schema: string): string[] {
  const steps = migrations.filter((step) => step.to > (found ?? 0)).map((step) => inSchema(step.sql, schema))
  if (steps.length === 0) return steps
  const row = `insert into ${quoted(schema)}.store (one, format, storeId, createdAt, startedAt, settings)
  values (1, ${format}, gen_random_uuid(), ${quoted(schema)}.now_us() / 1000, 0, 1)`
  if (found !== null) return [...steps, `update ${quoted(schema)}.store set format = ${format}`]
  return [`create schema if not exists ${quoted(schema)}`, ...steps, row]
}

async function formatOf(link: Link, schema: string): Promise<number | null> {
  // From the tables of the catalog, not by to_regclass: that remembers within a transaction what was not there.
  const text = `select from pg_class join pg_namespace on pg_namespace.oid = relnamespace
    where nspname = $1 and relname = 'store'`
  if ((await link.run({ name: '', text }, [schema])).length === 0) return null
  const [row] = await link.run<{ format: number }>({ name: '', text: `select format from ${quoted(schema)}.store` })
  return row?.format ?? null
}
