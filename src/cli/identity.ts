// Names each item of an input by its bytes and by how often they came before, so that a second run knows it again.
import { createHash } from 'node:crypto'

/** Words of one entry: 64 bits of the hash, and how often it was met. */
const entryWords = 3
const entriesAtFirst = 1 << 12

/** Counts how often each item came, in 24 bytes an item or less: a table of hashes with open addressing. */
export class Identities {
  #table = new Uint32Array(entriesAtFirst * entryWords)
  #entries = 0

  /** The identity of the next item of the input; the same item in the same input gets another one each time. */
  of(payload: string): string {
    const hash = createHash('sha256').update(payload).digest()
    // Two items that share these 64 bits only count together; their identities differ by the rest of the hash.
    const before = this.#countUp(hash.readUInt32LE(0), hash.readUInt32LE(4))
    const name = hash.toString('base64url', 8, 26)
    return before === 0 ? name : `${name}.${before}`
  }

  #countUp(high: number, low: number): number {
    if (this.#entries * 2 >= this.#table.length / entryWords) this.#grow()
    const at = slotOf(this.#table, high, low)
    const before = this.#table[at + 2] as number
    if (before === 0) this.#entries++
    this.#table[at] = high
    this.#table[at + 1] = low
    this.#table[at + 2] = before + 1
    return before
  }

  #grow(): void {
    const old = this.#table
    this.#table = new Uint32Array(old.length * 2)
    for (let from = 0; from < old.length; from += entryWords) {
      if (old[from + 2] === 0) continue
      this.#table.set(
        old.subarray(from, from + entryWords),
        slotOf(this.#table, old[from] as number, old[from + 1] as number),
      )
    }
  }
}

/** Where the hash stands, or the free place where it belongs. */
function slotOf(table: Uint32Array, high: number, low: number): number {
  const entries = table.length / entryWords
  for (let slot = high % entries; ; slot = (slot + 1) % entries) {
    const at = slot * entryWords
    if (table[at + 2] === 0 || (table[at] === high && table[at + 1] === low)) return at
  }
}
