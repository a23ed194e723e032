// Receipts, task ids, states and flags of a task as every SQL engine writes them.
import type { NewTask } from '../engine/contract.js'
import { type State, states } from '../task/lifecycle.js'

/** State numbers as stored; index + 1 in `states`. */
export const code = { scheduled: 1, waiting: 2, ready: 3, leased: 4, dead: 5 } as const

export const stateOf = (row: { state: number }): State => states[row.state - 1] as State

/** Bits of a task's `flags`. */
export const cancelAsked = 1
export const dropsAtDeadline = 2
export const moveAsked = 4
export const keepsResult = 8

export const flagsOf = ({ onDeadline, keepsResult: keeps }: NewTask): number =>
  (onDeadline === 'drop' ? dropsAtDeadline : 0) | (keeps ? keepsResult : 0)

/** One receipt: the task, the fence and nonce of one delivery, and the task's type at that time. */
export interface Receipt {
  id: number
  fence: number
  nonce: number
  type: number
}

export const receiptText = (row: Receipt): string => `${row.id}.${row.fence}.${row.nonce}.${row.type}`

/** The parts of a receipt; null for text that never was one. */
export function parseReceipt(text: string): Receipt | null {
  const parts = [0, 0, 0, 0]
  let part = 0
  let digits = 0
  for (let i = 0; i < text.length; i++) {
    const digit = text.charCodeAt(i) - 48
    if (digit >= 0 && digit <= 9 && ++digits <= 16) parts[part] = (parts[part] as number) * 10 + digit
    else if (text.charCodeAt(i) === 46 && digits > 0 && part < 3) {
      part++
      digits = 0
    } else return null
  }
  if (part < 3 || digits === 0) return null
  return { id: parts[0] as number, fence: parts[1] as number, nonce: parts[2] as number, type: parts[3] as number }
}

/** A task id as a number; null when the text is no id. */
export const parseId = (text: string): number | null => (/^\d{1,16}$/.test(text) ? Number(text) : null)
