// Tokens of a broker, as both SQL engines keep them: instants are of the wall clock, as people mean the day they name.
import { PieceworkError } from '../ground/errors.js'
import type { TokenRecord } from '../task/records.js'

export type TokenPatch = Omit<TokenRecord, 'id' | 'createdAt'>
export type TokenRow = Omit<TokenRecord, 'scopes' | 'queues'> & { scopes: string; queues: string }

export const tokenRecord = (row: TokenRow): TokenRecord => ({
  ...row,
  scopes: JSON.parse(row.scopes),
  queues: JSON.parse(row.queues),
})

/** The token to be made. Two of one name may live, so that one can take over from the other; throws PW_TOKEN_THIRD. */
export function newToken(all: readonly TokenRecord[], id: string, patch: TokenPatch, now: number): TokenRecord {
  const live = all.filter(({ name, expiresAt }) => name === patch.name && (expiresAt === null || expiresAt > now))
  if (live.length >= 2) {
    const ids = live.map((token) => token.id)
    throw new PieceworkError('PW_TOKEN_THIRD', `"${patch.name}" has two live tokens: ${ids.join(', ')}.`, { ids })
  }
  const { name, hash, scopes, queues, expiresAt } = patch
  return { id, name, hash, scopes, queues, createdAt: now, expiresAt }
}

/** The token to be revoked; throws PW_TOKEN_UNKNOWN. */
export function tokenRevoked(all: readonly TokenRecord[], id: string): TokenRecord {
  const old = all.find((token) => token.id === id)
  if (old) return old
  throw new PieceworkError('PW_TOKEN_UNKNOWN', `There is no token ${id} to revoke.`, { id })
}
