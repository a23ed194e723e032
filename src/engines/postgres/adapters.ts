// `piecework/postgres`: transactions of other libraries, each over one executor that takes a text and its parameters.
import type { AdaptedTransaction } from '../../task/transaction.js'

type Row = Record<string, unknown>

/** The `sql` that postgres.js hands to the function of `sql.begin()`. */
export const fromPostgresJs = (sql: {
  unsafe(text: string, values: never[]): PromiseLike<readonly unknown[]>
}): AdaptedTransaction => ({
  adapts: sql,
  query: async (text, values) => [...(await sql.unsafe(text, values as never[]))] as Row[],
})

/** What Drizzle (over pg or postgres.js) hands to the function of `db.transaction()`, and the `sql` of drizzle-orm. */
export const fromDrizzle = <Query>(
  tx: { execute(query: Query): PromiseLike<unknown> },
  sql: { raw(text: string): unknown } & ((strings: TemplateStringsArray, ...values: unknown[]) => Query),
): AdaptedTransaction => ({
  adapts: tx,
  query: async (text, values) => {
    const { parts, order } = atParameters(text)
    const strings = Object.assign([...parts], { raw: parts }) as unknown as TemplateStringsArray
    return rowsOf(await tx.execute(sql(strings, ...order.map((n) => values[n - 1]))))
  },
})

/** What Kysely hands to the function of `db.transaction().execute()`. */
export const fromKysely = (trx: {
  executeQuery<R>(query: KyselyQuery<R>): Promise<{ rows: R[] }>
}): AdaptedTransaction => ({
  adapts: trx,
  query: async (text, values) => {
    const query = { kind: 'RawNode', sqlFragments: [text], parameters: [] } as const
    return (await trx.executeQuery<Row>({ query, sql: text, parameters: values, queryId: { queryId: text } })).rows
  },
})

/** A compiled query of Kysely's. */
interface KyselyQuery<R> {
  // biome-ignore lint/suspicious/noExplicitAny: a node of Kysely's own making
  readonly query: any
  readonly sql: string
  readonly parameters: readonly unknown[]
  readonly queryId: { readonly queryId: string }
  readonly __result?: R
}

/** What Knex hands to the function of `knex.transaction()`. */
export const fromKnex = (trx: { raw(text: string, values: never[]): PromiseLike<unknown> }): AdaptedTransaction => ({
  adapts: trx,
  query: async (text, values) => {
    const { parts, order } = atParameters(text)
    // Knex counts question marks, and an escaped one is none.
    const marked = parts.map((part) => part.replaceAll('?', '\\?')).join('?')
    return rowsOf(await trx.raw(marked, order.map((n) => values[n - 1]) as never[]))
  },
})

/** The EntityManager of TypeORM's `transaction()`, or a QueryRunner in a transaction. */
export const fromTypeorm = (manager: {
  query(text: string, values?: unknown[]): Promise<unknown>
}): AdaptedTransaction => ({
  adapts: manager,
  query: async (text, values) => rowsOf(await manager.query(text, values)),
})

/** What Prisma hands to the function of `prisma.$transaction()`. */
export const fromPrisma = (tx: {
  $queryRawUnsafe<T>(text: string, ...values: unknown[]): PromiseLike<T>
}): AdaptedTransaction => ({
  adapts: tx,
  query: async (text, values) => rowsOf(await tx.$queryRawUnsafe<Row[]>(text, ...values)),
})

/** A text cut at its parameters, and their numbers in the order in which they stand. */
function atParameters(text: string): { parts: string[]; order: number[] } {
  const pieces = text.split(/\$(\d+)/)
  const parts = pieces.filter((_, i) => i % 2 === 0)
  return { parts, order: pieces.filter((_, i) => i % 2 === 1).map(Number) }
}

/** Rows as the libraries answer them: a list, an object with a list, or (TypeORM) rows beside their number. */
function rowsOf(answer: unknown): Row[] {
  if (!Array.isArray(answer)) return (answer as { rows?: Row[] } | null)?.rows ?? []
  const [rows, count] = answer as unknown[]
  return answer.length === 2 && Array.isArray(rows) && typeof count === 'number' ? (rows as Row[]) : [...answer]
}
