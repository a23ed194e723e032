// CSV as RFC 4180 has it, a record at a time: quoted fields may hold commas, quotes and line breaks.

const quote = 0x22
const comma = 0x2c
const lineFeed = 0x0a
const carriageReturn = 0x0d

/** Finds where records end, over chunks of one input; remembers whether it stands inside a quoted field. */
export class RecordEnds {
  #state: 'start' | 'plain' | 'quoted' | 'closed' = 'start'

  /** The index of the line feed that ends the record, looking from `from` on; -1 when it is not in this buffer. */
  find(bytes: Buffer, from: number): number {
    let state = this.#state
    for (let at = from; at < bytes.length; at++) {
      const byte = bytes[at]
      if (state === 'quoted') {
        if (byte === quote) state = 'closed'
      } else if (byte === lineFeed) {
        this.#state = 'start'
        return at
      } else if (byte === comma) state = 'start'
      else if (byte === quote && state !== 'plain') state = 'quoted'
      else state = 'plain'
    }
    this.#state = state
    return -1
  }
}

/** The fields of one record, or what is wrong with it. */
export function fieldsOf(record: string): string[] | { wrong: string } {
  const fields: string[] = []
  let at = 0
  for (;;) {
    if (record.charCodeAt(at) === quote) {
      const field = quotedField(record, at)
      if (field === null) return { wrong: `field ${fields.length + 1} opens a quote that never closes` }
      fields.push(field.text)
      at = field.end
      if (at < record.length && record.charCodeAt(at) !== comma) {
        return { wrong: `text follows the closing quote of field ${fields.length}` }
      }
    } else {
      const next = record.indexOf(',', at)
      const end = next === -1 ? record.length : next
      const text = record.slice(at, end)
      if (text.includes('"')) return { wrong: `field ${fields.length + 1} has a quote inside but is not quoted` }
      fields.push(text)
      at = end
    }
    if (at >= record.length) return fields
    at++
  }
}

function quotedField(record: string, from: number): { text: string; end: number } | null {
  let end = from + 1
  for (;;) {
    end = record.indexOf('"', end)
    if (end === -1) return null
    if (record.charCodeAt(end + 1) !== quote) break
    end += 2
  }
  return { text: record.slice(from + 1, end).replaceAll('""', '"'), end: end + 1 }
}

/** Line breaks inside one record. */
export function breaksIn(bytes: Buffer): number {
  let count = 0
  for (let at = bytes.indexOf(lineFeed); at !== -1; at = bytes.indexOf(lineFeed, at + 1)) count++
  return count
}

/** The record without the carriage return of a CRLF. */
export const withoutReturn = (bytes: Buffer): Buffer =>
  bytes.length > 0 && bytes[bytes.length - 1] === carriageReturn ? bytes.subarray(0, -1) : bytes
