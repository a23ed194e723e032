// Memory shared with the heartbeat's thread: which deliveries this worker holds, written and cleared without messages.
import type { Lease } from './pulse.js'

/** One word a slot says whether it holds a delivery: odd is empty, even is held; each change counts it up. */
const wordBytes = 4
/** Set in the word by the thread when it ends a delivery itself; whoever sets or finds it first has the say. */
const taken = 1 << 30
const countMask = taken - 1
/** Numbers of a slot: lease length, lease end, phase, and the instant at which it is overdue. */
const numbers = 4
/** The receipt as ASCII text behind its length. */
const receiptBytes = 96
const receiptLengthMax = receiptBytes - 1

/** What the board says of one delivery. */
export interface Entry extends Lease {
  readonly slot: number
  readonly word: number
}

interface Views {
  readonly words: Int32Array
  readonly numbers: Float64Array
  readonly receipts: Buffer
}

function views(memory: SharedArrayBuffer): Views {
  const slots = memory.byteLength / (wordBytes + numbers * 8 + receiptBytes)
  return {
    numbers: new Float64Array(memory, 0, slots * numbers),
    words: new Int32Array(memory, slots * numbers * 8, slots),
    receipts: Buffer.from(memory, slots * (numbers * 8 + wordBytes), slots * receiptBytes),
  }
}

/** The main thread's side. */
export class Board {
  readonly memory: SharedArrayBuffer
  readonly #views: Views
  readonly #counts: Int32Array
  readonly #free: number[] = []

  constructor(slots: number) {
    this.memory = new SharedArrayBuffer(slots * (wordBytes + numbers * 8 + receiptBytes))
    this.#views = views(this.memory)
    this.#counts = new Int32Array(slots).fill(1)
    this.#views.words.fill(1)
    for (let slot = slots - 1; slot >= 0; slot--) this.#free.push(slot)
  }

  /** Answers the slot that now holds the delivery, or -1 when the receipt does not fit or the board is full. */
  hold({ receipt, leaseMs, endsAt, phase, overdueAt }: Lease): number {
    const { length } = receipt
    if (length > receiptLengthMax) return -1
    const slot = this.#free.pop()
    if (slot === undefined) return -1
    const { numbers: at, receipts } = this.#views
    // As UTF-8 every character takes one byte only if all are ASCII.
    if (receipts.write(receipt, slot * receiptBytes + 1, receiptLengthMax) !== length) {
      this.#free.push(slot)
      return -1
    }
    receipts[slot * receiptBytes] = length
    at[slot * numbers] = leaseMs
    at[slot * numbers + 1] = endsAt
    at[slot * numbers + 2] = phase
    at[slot * numbers + 3] = overdueAt
    this.#publish(slot)
    return slot
  }

  /** Notes another lease end, phase or overdue instant; false when the thread has taken the delivery. */
  change(slot: number, { endsAt, phase, overdueAt }: Lease): boolean {
    if (!this.#withdraw(slot)) {
      this.#free.push(slot)
      return false
    }
    const { numbers: at } = this.#views
    at[slot * numbers + 1] = endsAt
    at[slot * numbers + 2] = phase
    at[slot * numbers + 3] = overdueAt
    this.#publish(slot)
    return true
  }

  /** Empties the slot; false when the thread has taken the delivery, so that its end is the thread's to say. */
  clear(slot: number): boolean {
    this.#free.push(slot)
    return this.#withdraw(slot)
  }

  /** An exchange, not a store: nothing written later may be seen under the word of before. */
  #withdraw(slot: number): boolean {
    const count = ((this.#counts[slot] as number) + 1) & countMask
    this.#counts[slot] = count
    return (Atomics.exchange(this.#views.words, slot, count) & taken) === 0
  }

  #publish(slot: number): void {
    const count = ((this.#counts[slot] as number) + 1) & countMask
    this.#counts[slot] = count
    Atomics.store(this.#views.words, slot, count)
  }
}

/** The thread's side. */
export class BoardReader {
  readonly #views: Views

  constructor(memory: SharedArrayBuffer) {
    this.#views = views(memory)
  }

  /** Every delivery that is held and was not written to while it was read. */
  entries(): Entry[] {
    const found: Entry[] = []
    for (let slot = 0; slot < this.#views.words.length; slot++) {
      const entry = this.#read(slot)
      if (entry) found.push(entry)
    }
    return found
  }

  /** True when this thread may end the delivery: the main thread will find that it did, and leave it alone. */
  take(entry: Entry): boolean {
    return Atomics.compareExchange(this.#views.words, entry.slot, entry.word, entry.word | taken) === entry.word
  }

  #read(slot: number): Entry | null {
    const { words, numbers: at, receipts } = this.#views
    const word = Atomics.load(words, slot)
    if ((word & 1) === 1 || (word & taken) !== 0) return null
    const from = slot * receiptBytes
    const entry = {
      slot,
      word,
      receipt: receipts.toString('latin1', from + 1, from + 1 + (receipts[from] as number)),
      leaseMs: at[slot * numbers] as number,
      endsAt: at[slot * numbers + 1] as number,
      phase: at[slot * numbers + 2] as number,
      overdueAt: at[slot * numbers + 3] as number,
    }
    // Adding nothing is a write of its own, and no read above may be put off beyond it.
    return Atomics.add(words, slot, 0) === word ? entry : null
  }
}
