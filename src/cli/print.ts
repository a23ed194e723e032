// Writes what people and programs read: results to stdout, everything else to stderr, errors once and in full.
import { type ErrorCode, errorTable, PieceworkError } from '../ground/errors.js'

/** Where a command writes and how. */
export interface Output {
  /** True: one object, or NDJSON for lists. */
  readonly json: boolean
  /** Notes what the command has changed, for when its results cannot be written: `2 tasks were stored`. */
  did(what: string): void
  /** Writes one line of results; resolves when the other side can take more. */
  result(line: string): Promise<void>
  /** Writes one value as a line of JSON. */
  value(value: unknown): Promise<void>
  /** Tells people something on stderr. */
  say(text: string): void
}

export function outputTo(json: boolean): Output {
  let done = 'Nothing was changed by it.'
  const result = (line: string) =>
    written(process.stdout, `${line}\n`).catch((error: PieceworkError) => {
      if (error.details.gone === true) throw error
      throw new PieceworkError('PW_RESULTS_UNWRITTEN', `${error.message} ${done}`, {}, { cause: error })
    })
  return {
    json,
    did(what) {
      done = `It did its work all the same: ${what}.`
    },
    result,
    value: (value) => result(JSON.stringify(value)),
    say: (text) => void process.stderr.write(`${text}\n`),
  }
}

/** Resolves once the stream has taken the bytes; rejects with PW_OUTPUT_CLOSED when nobody reads it any more. */
export function written(stream: NodeJS.WritableStream, data: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(data, (error?: Error | null) => {
      if (!error) return resolve()
      const closed = (error as NodeJS.ErrnoException).code === 'EPIPE'
      const text = closed ? 'Whoever read the results has gone.' : `The results cannot be written: ${error.message}.`
      reject(new PieceworkError('PW_OUTPUT_CLOSED', text, { gone: closed }, { cause: error }))
    })
  })
}

/** The exit code that cli.md gives an error. */
export function exitOf(error: unknown): number {
  if (!(error instanceof PieceworkError)) return 2
  const entry: object = errorTable[error.code]
  return 'exit' in entry ? Number(entry.exit) : 2
}

/** An error as the command line shows it: never a stack, always what to do. */
export function errorText(error: unknown, json: boolean): string {
  const known = error instanceof PieceworkError
  const code: ErrorCode = known ? error.code : 'PW_BUG'
  const message = error instanceof Error ? error.message : String(error)
  const { cure } = errorTable[code]
  if (json) return JSON.stringify({ error: { code, message, cure } })
  return `piecework: ${message}\n  ${cure} (${code})`
}

/** A trouble that ends nothing, as the command line shows it. */
export function warningText(warning: Error, json: boolean): string {
  const { code = 'PW_BUG', message } = warning as { code?: string; message: string }
  return json ? JSON.stringify({ warning: { code, message } }) : `piecework: warning: ${message} (${code})`
}

/** Rows under their headings, in columns; what is null or undefined is shown as -. */
export function table(headings: readonly string[], rows: readonly (readonly unknown[])[]): string {
  const cells = [headings, ...rows].map((row) => row.map((cell) => (cell == null ? '-' : oneLine(String(cell)))))
  const widths = headings.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)))
  return cells
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** Text without line breaks and control characters, so that nothing stored can move the cursor of a terminal. */
export function oneLine(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
  return text.replace(/[\u0000-\u001f\u007f-\u009f]+/g, ' ')
}

/** A duration for people: 420 ms, 3.2 s, 4 min 10 s, 2 h 5 min. */
export function humanMs(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`
  const minutes = Math.floor(Math.round(ms / 1000) / 60)
  if (minutes < 60) return `${minutes} min ${Math.round(ms / 1000) % 60} s`
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** A whole number with thin groups of three digits. */
export const grouped = (value: number) => String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ' ')

/** So many of something: `1 task`, `3 tasks`. `many` where the plural is no mere s. */
export const counted = (count: number, one: string, many = `${one}s`) => `${grouped(count)} ${count === 1 ? one : many}`

/** An instant as programs read it: ISO 8601 in UTC; null stays null. */
export const isoOf = (at: number | null): string | null => (at === null ? null : new Date(at).toISOString())
