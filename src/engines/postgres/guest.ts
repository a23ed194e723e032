// What a caller gave as `tx`: a client of pg, or another library's transaction behind an adapter of ours.
import { PieceworkError } from '../../ground/errors.js'
import { shown } from '../../task/limits.js'
import type { AdaptedTransaction } from '../../task/transaction.js'
import type { Executor } from './link.js'

export interface Guest {
  executor: Executor
  /** What is the same in every call of one transaction. */
  identity: object
  /** A transaction is known to be open on it. */
  open: boolean
}

/** Throws PW_TX_NONE where none can be open, PW_TX_OTHER_DATABASE for what is of no PostgreSQL at all. */
export function guestOf(tx: unknown): Guest {
  if (tx === undefined) throw noneOpen('`tx` is missing')
  const given = (typeof tx === 'object' && tx !== null ? tx : {}) as Partial<AdaptedTransaction & TellingClient>
  if (typeof given.query !== 'function') {
    const text = `The store is on PostgreSQL, but \`tx\` is ${shown(tx)}: no client of pg, nor what an adapter answers.`
    throw new PieceworkError('PW_TX_OTHER_DATABASE', text)
  }
  if (typeof given.adapts === 'object' || typeof given.adapts === 'function') {
    return { executor: adapted(given as AdaptedTransaction), identity: given.adapts, open: false }
  }
  if (typeof given.totalCount === 'number') throw noneOpen('`tx` is a pool, whose statements run on any connection')
  // Older versions of the driver do not tell, and a `begin` that is under way has not been answered yet.
  return { executor: tx as Executor, identity: tx as object, open: given.getTransactionStatus?.() === 'T' }
}

interface TellingClient {
  totalCount?: number
  /** I: idle, T: in a transaction, E: in one that failed. */
  getTransactionStatus?(): string | null
}

export const noneOpen = (what: string): PieceworkError =>
  new PieceworkError('PW_TX_NONE', `${what}: no transaction is open.`)

/** Text, the one type that all libraries pass alike, into parameters that say their own; and numbers back. */
function adapted(tx: AdaptedTransaction): Executor {
  return {
    async query(config) {
      const { text, values = [] } = config as { text: string; values?: readonly unknown[] }
      const rows = await tx.query(asText(text), values.map(parameterOf))
      return { rows: rows.map(numbered) }
    },
  }
}

/** `$1::bigint[]` as `$1::text::bigint[]`. */
const asText = (text: string) => text.replace(/\$(\d+)::(?!text\b(?!\[))/g, '$$$1::text::')

function parameterOf(value: unknown): string | null {
  if (value === null || value === undefined) return null
  return Array.isArray(value) ? `{${value.map(elementOf).join(',')}}` : String(value)
}

const elementOf = (value: unknown): string =>
  value === null || value === undefined ? 'null' : `"${String(value).replace(/[\\"]/g, '\\$&')}"`

/** The columns of our answers that hold text; all others are whole numbers, which some libraries answer otherwise. */
const texts: ReadonlySet<string> = new Set([
  ...['name', 'key', 'dedupKey', 'identity', 'progress', 'followUp', 'storeId', 'database', 'xid', 'mark'],
])

function numbered(row: Record<string, unknown>): Record<string, unknown> {
  const entries = Object.entries(row).map(([column, value]) => {
    const whole = !texts.has(column) && (typeof value === 'string' || typeof value === 'bigint')
    return [column, whole ? Number(value) : value] as const
  })
  return Object.fromEntries(entries)
}
