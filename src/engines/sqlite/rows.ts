// The shapes of rows that the hottest statements answer.
import type { HeldRow } from '../ledger.js'

/** What the ack statement answers: no more than ending a task needs, since each column costs. */
export type AckedRow = Pick<
  HeldRow,
  'type' | 'state' | 'number' | 'key' | 'batch' | 'dedupKey' | 'claimedAt' | 'moveTo' | 'flags'
>

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
  flags: number,
  headers: string | null,
  payload: string,
]
