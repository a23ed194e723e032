// Names a kind of failure, so that thousands of dead letters group into the few errors behind them.
import { createHash } from 'node:crypto'
import type { ErrorText } from '../engine/contract.js'

/** 12 hex digits of the code and the first line of the text without its numbers, ids, quoted values and paths. */
export function fingerprint(reason: string, error: ErrorText | null): string {
  const line = (error?.text ?? '').split('\n', 1)[0] ?? ''
  const shape = line
    .slice(0, 400)
    .replace(/(["'`]).*?\1/g, '?')
    .replace(/\S*[\\/]\S+/g, '?')
    .replace(/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/gi, '?')
    .replace(/0x[0-9a-f]+|\d+/gi, '#')
  return createHash('sha256')
    .update(`${error?.code ?? reason}\n${shape}`)
    .digest('hex')
    .slice(0, 12)
}
