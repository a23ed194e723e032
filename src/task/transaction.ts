// What a transaction of the caller is on each engine, as its types see it: only what piecework itself uses of it.

/** The engines that connect() opens. */
export type EngineName = 'sqlite' | 'postgres' | 'remote'

/** The engine of a literal URL; for a plain string any of them. */
export type EngineOf<Url> = Url extends `sqlite:${string}`
  ? 'sqlite'
  : Url extends `postgres://${string}` | `postgresql://${string}`
    ? 'postgres'
    : Url extends `http://${string}` | `https://${string}`
      ? 'remote'
      : EngineName

/** A client of pg. A pool is none: each of its statements may run on another connection. */
export interface PostgresClient {
  // biome-ignore lint/suspicious/noExplicitAny: rows are what the caller's statement makes them
  query(text: string, values?: unknown[]): Promise<{ rows: any[] }>
  readonly totalCount?: undefined
}

/** A transaction of another library, as one of the adapters of piecework/postgres answers it. */
export interface AdaptedTransaction {
  readonly adapts: object
  query(text: string, values: unknown[]): Promise<Record<string, unknown>[]>
}

/** A database of better-sqlite3. */
export interface SqliteDatabase {
  readonly name: string
  readonly inTransaction: boolean
  exec(source: string): unknown
  prepare(source: string): {
    run(...values: unknown[]): { changes: number; lastInsertRowid: number | bigint }
    // biome-ignore lint/suspicious/noExplicitAny: rows are what the caller's statement makes them
    get(...values: unknown[]): any
    // biome-ignore lint/suspicious/noExplicitAny: rows are what the caller's statement makes them
    all(...values: unknown[]): any[]
  }
}

/** What `tx` is where a call answers later. */
export type AsyncTx<E extends EngineName> = E extends 'postgres' ? PostgresClient | AdaptedTransaction : never
/** What `tx` is where a call answers at once. */
export type SyncTx<E extends EngineName> = E extends 'sqlite' ? SqliteDatabase : never
/** What the function of `transaction()` is given. */
export type OwnTx<E extends EngineName> = EngineName extends E
  ? // biome-ignore lint/suspicious/noExplicitAny: which engine it is, only the program knows
    any
  : E extends 'postgres'
    ? PostgresClient
    : E extends 'sqlite'
      ? SqliteDatabase
      : never
