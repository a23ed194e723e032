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

/** What the ack statement answers: no more than ending a task needs, since each column costs. */
export type AckedRow = Pick<HeldRow, 'type' | 'state' | 'number' | 'key' | 'batch' | 'dedupKey'>

/** What a claim reads of a task before it leases it: `claimedColumns` in their order. */
export type ClaimedRow = [
  id: number,
  type: number,
  number: number,
  spent: number,
  fence: number,
  key: string | null,
  batch: number | null,
  deaths: number,
  enqueuedAt: number,
  dueAt: number,
  headers: string | null,
  payload: string,
]
