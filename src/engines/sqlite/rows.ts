// The shapes of rows as the statements answer them, and receipts as text.

/** What every settling statement answers of a task. */
export interface HeldRow {
  id: number
  queue: number
  type: number
  state: number
  key: string | null
  slot: number
  batch: number | null
  dedupKey: string | null
  number: number
  spent: number
  releases: number
  deaths: number
  flags: number
  fence: number
  worker: number | null
  claimedAt: number | null
  priority: number
}

/** What the claim statement answers of a task. */
export interface ClaimedRow {
  id: number
  type: number
  number: number
  spent: number
  fence: number
  nonce: number
  key: string | null
  batch: number | null
  deaths: number
  enqueuedAt: number
  dueAt: number
  place: number
  payload: string
  headers: string | null
}

export const cancelAsked = 1
export const dropsAtDeadline = 2

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
  const parts = text.split('.')
  if (parts.length !== 4) return null
  const [id, fence, nonce, type] = parts.map(wholeNumber)
  if (id === undefined || fence === undefined || nonce === undefined || type === undefined) return null
  return { id, fence, nonce, type }
}

function wholeNumber(text: string): number | undefined {
  if (text.length === 0 || text.length > 16) return undefined
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code < 48 || code > 57) return undefined
  }
  return Number(text)
}

/** A task id as a number; null when the text is no id. */
export const parseId = (text: string): number | null => wholeNumber(text) ?? null
