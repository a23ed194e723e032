// Reads items from any stream of bytes in constant memory: lines, NUL-separated, NDJSON, CSV and TSV.
import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import { extname } from 'node:path'
import { type ErrorCode, PieceworkError } from '../ground/errors.js'
import { payloadBytesMax } from '../task/limits.js'
import { checkPayloadText, encodePayload } from '../task/payload.js'
import { breaksIn, fieldsOf, RecordEnds, withoutReturn } from './csv.js'
import { choice } from './values.js'

export const formats = ['lines', 'null', 'ndjson', 'csv', 'tsv'] as const
export type Format = (typeof formats)[number]

/** One item: JSON text, valid and within the limits. */
export interface Item {
  payload: string
  /** Why it cannot run; null for a good one. Only with `skipInvalid`, and then `payload` holds its bytes in base64. */
  refused: string | null
}

const byExtension: Record<string, Format> = {
  '.ndjson': 'ndjson',
  '.jsonl': 'ndjson',
  '.csv': 'csv',
  '.tsv': 'tsv',
  '.tab': 'tsv',
}

/** The format that a file's name says; lines for everything else and for stdin. */
export const formatOf = (file: string): Format => byExtension[extname(file).toLowerCase()] ?? 'lines'

/** What to say of a file whose name promises JSON while its lines are read; null for any other. */
export const linesHint = (file: string): string | null =>
  extname(file).toLowerCase() === '.json'
    ? `piecework: ${file} is read as lines; --format ndjson reads one JSON value from each`
    : null

/** The format of --format; throws PW_OPTION_INVALID. */
export const formatNamed = (text: string): Format => (text === 'jsonl' ? 'ndjson' : choice('--format', text, formats))

/** The byte order mark as UTF-8. */
const mark = Buffer.from([0xef, 0xbb, 0xbf])

/** Bytes of a refused item that are kept: in base64 they have to fit into a payload. */
const keptBytesMax = 3 * 255 * 1024

/** What is kept of a refused item: its bytes, or the first of them and what tells it from every other. */
function bytesOf(record: Buffer): Record<string, string | number> {
  if (record.length <= keptBytesMax) return { base64: record.toString('base64') }
  const sha256 = createHash('sha256').update(record).digest('hex')
  return { base64: record.toString('base64', 0, keptBytesMax), bytes: record.length, sha256 }
}

/** Takes one input apart. Empty lines are no items, except between NULs, where nothing is said by accident. */
export class ItemReader {
  readonly #format: Format
  readonly #skipInvalid: boolean
  readonly #ends: { find(bytes: Buffer, from: number): number }
  #rest: Buffer = Buffer.alloc(0)
  /** Line (or item, between NULs) and byte offset at which #rest begins. */
  #line = 1
  #offset = 0
  /** The first bytes, as long as they may be the beginning of a byte order mark; null once that is settled. */
  #head: Buffer | null = Buffer.alloc(0)
  /** JSON text of the column names; null until the first record of a CSV or TSV was read. */
  #columns: string[] | null = null

  constructor(format: Format, options: { skipInvalid?: boolean | undefined } = {}) {
    this.#format = format
    this.#skipInvalid = options.skipInvalid === true
    const separator = format === 'null' ? 0 : 0x0a
    this.#ends = format === 'csv' ? new RecordEnds() : { find: (bytes, from) => bytes.indexOf(separator, from) }
  }

  /** Adds the items that this chunk completes to `out`; throws with line and offset, after adding those before it. */
  push(chunk: Buffer, out: Item[]): void {
    const fresh = this.#withoutMark(chunk, false)
    const scanned = this.#rest.length
    const bytes = scanned === 0 ? fresh : Buffer.concat([this.#rest, fresh])
    let from = 0
    for (let end = this.#ends.find(bytes, scanned); end !== -1; end = this.#ends.find(bytes, from)) {
      this.#take(bytes.subarray(from, end), out)
      from = end + 1
      this.#offset++
    }
    this.#rest = bytes.subarray(from)
    if (this.#rest.length > payloadBytesMax) throw this.#tooLarge(this.#rest.length)
  }

  /** Adds the last item when the input did not end with a separator. */
  end(out: Item[]): void {
    const rest = this.#head === null ? this.#rest : this.#withoutMark(Buffer.alloc(0), true)
    this.#rest = Buffer.alloc(0)
    if (rest.length > 0) this.#take(rest, out)
  }

  /** What there is to read of the first chunks, once it is known whether they begin with a byte order mark. */
  #withoutMark(chunk: Buffer, ended: boolean): Buffer {
    if (this.#head === null) return chunk
    const bytes = Buffer.concat([this.#head, chunk])
    const text = this.#format !== 'null'
    if (text && !ended && bytes.length < mark.length && mark.subarray(0, bytes.length).equals(bytes)) {
      this.#head = bytes
      return Buffer.alloc(0)
    }
    this.#head = null
    if (!text || !bytes.subarray(0, mark.length).equals(mark)) return bytes
    this.#offset += mark.length
    return bytes.subarray(mark.length)
  }

  /** `whole` stands between two separators. */
  #take(whole: Buffer, out: Item[]): void {
    const record = this.#format === 'null' ? whole : withoutReturn(whole)
    if (record.length > payloadBytesMax) throw this.#tooLarge(record.length)
    try {
      const payload = this.#payload(record)
      if (payload !== null) out.push({ payload, refused: null })
    } catch (error) {
      if (!this.#skipInvalid || !(error instanceof PieceworkError) || error.details.header === true) throw error
      out.push({ payload: encodePayload(bytesOf(record)), refused: error.message })
    }
    this.#line += 1 + (this.#format === 'csv' ? breaksIn(whole) : 0)
    this.#offset += whole.length
  }

  /** The JSON text of one record; null when it is no item. */
  #payload(record: Buffer): string | null {
    if (record.length === 0 && this.#format !== 'null') return null
    if (!isUtf8(record)) throw this.#notUtf8(record)
    const text = record.toString('utf8')
    switch (this.#format) {
      case 'lines':
      case 'null':
        return this.#checked(() => encodePayload(text))
      case 'ndjson': {
        const trimmed = text.trim()
        return trimmed === '' ? null : this.#checked(() => checkPayloadText(trimmed))
      }
      case 'csv': {
        const fields = fieldsOf(text)
        if (Array.isArray(fields)) return this.#row(fields)
        throw this.#refusal('PW_CSV_INVALID', `${fields.wrong}.`)
      }
      case 'tsv':
        return this.#row(text.split('\t'))
    }
  }

  /** A row as an object by column; the first row names the columns. Fields that are missing at its end are left out. */
  #row(fields: readonly string[]): string | null {
    if (this.#columns === null) {
      const twice = fields.find((name, index) => fields.indexOf(name) !== index)
      if (twice !== undefined) {
        throw this.#refusal('PW_CSV_INVALID', `the column ${JSON.stringify(twice)} is named twice.`, { header: true })
      }
      this.#columns = fields.map((name) => JSON.stringify(name))
      return null
    }
    const columns = this.#columns
    if (fields.length > columns.length) {
      throw this.#refusal('PW_CSV_INVALID', `${fields.length} fields stand under ${columns.length} columns.`)
    }
    const text = `{${fields.map((field, index) => `${columns[index]}:${JSON.stringify(field)}`).join(',')}}`
    // A row can only be too large: it is JSON by its making.
    return text.length * 3 > payloadBytesMax ? this.#checked(() => checkPayloadText(text)) : text
  }

  #checked(make: () => string): string {
    try {
      return make()
    } catch (error) {
      if (!(error instanceof PieceworkError)) throw error
      throw this.#refusal(error.code, error.message)
    }
  }

  #refusal(code: ErrorCode, why: string, details: Record<string, unknown> = {}): PieceworkError {
    const what = this.#format === 'null' ? 'Item' : 'Line'
    return new PieceworkError(code, `${what} ${this.#line}: ${why}`, {
      line: this.#line,
      offset: this.#offset,
      ...details,
    })
  }

  #notUtf8(record: Buffer): PieceworkError {
    const within = firstInvalid(record)
    const why = `not UTF-8 at byte offset ${this.#offset + within} of the input (offset ${within} in it).`
    const header = this.#columns === null && (this.#format === 'csv' || this.#format === 'tsv')
    return this.#refusal('PW_UTF8_INVALID', why, { offset: this.#offset + within, ...(header ? { header } : {}) })
  }

  #tooLarge(bytes: number): PieceworkError {
    const why = `more than ${payloadBytesMax} bytes without an end.`
    return this.#refusal('PW_PAYLOAD_TOO_LARGE', why, { header: true, bytes })
  }
}

/** The offset of the first byte that does not belong to UTF-8; decoding puts U+FFFD where the text itself has none. */
function firstInvalid(bytes: Buffer): number {
  const text = bytes.toString('utf8')
  let offset = 0
  let from = 0
  for (let at = text.indexOf('\ufffd'); at !== -1; at = text.indexOf('\ufffd', at + 1)) {
    offset += Buffer.byteLength(text.slice(from, at))
    const written = bytes[offset] === 0xef && bytes[offset + 1] === 0xbf && bytes[offset + 2] === 0xbd
    if (!written) return offset
    from = at
  }
  return offset
}
