// Opens the input of a command, a file or stdin, and looks through as much of it as can be before anything runs.
import { createReadStream, existsSync, fstatSync, realpathSync, type Stats, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { Clock } from '../ground/clock.js'
import { PieceworkError } from '../ground/errors.js'
import { type Format, type Item, ItemReader } from './items.js'

export interface Input {
  /** The absolute path, or `-` for stdin. */
  readonly name: string
  readonly format: Format
  /** How many items it has; null as long as nobody can know. */
  readonly total: number | null
  /** The first of those that were looked at; null when there was none. */
  readonly first: Item | null
  /** The items, some at a time; throws what ItemReader throws, after the items before it. */
  items(): AsyncGenerator<Item[]>
}

export interface InputOptions {
  format: Format
  skipInvalid: boolean
  /** The store's file, which no input may be; null when it has none. */
  store: string | null
  clock: Clock
}

type Bytes = AsyncIterable<Buffer>

/** How much of a pipe is looked at before its first item may run, and how long a silent one is waited for. */
const aheadBytesMax = 8_388_608
const aheadIdleMs = 250

/** `path` null or `-` is stdin. Throws PW_INPUT_UNREADABLE, PW_OWN_FILE, and what is wrong with items looked at. */
export async function openInput(path: string | null, options: InputOptions): Promise<Input> {
  const file = path === null || path === '-' ? null : resolve(path)
  const stat = statOf(file)
  refuseOwn(file, stat, options.store)
  if (!stat.isFile()) return piped(file, options)
  const name = file ?? '-'
  const found = await lookThrough(file === null ? stdin() : read(file), options)
  // Where stdin began in its file is known only from where it ended: a shell may have read from it before.
  const again = () =>
    file === null
      ? (createReadStream('', { fd: 0, start: stat.size - found.bytes, autoClose: false }) as Bytes)
      : read(file)
  return {
    name,
    format: options.format,
    total: found.items,
    first: found.first,
    items: () => itemsOf(again(), options),
  }
}

const read = (file: string): Bytes => createReadStream(file, { highWaterMark: 262_144 })
const stdin = (): Bytes => process.stdin

function statOf(file: string | null): Stats {
  try {
    const stat = file === null ? fstatSync(0) : statSync(file)
    if (!stat.isDirectory()) return stat
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const text =
      file === null ? 'Standard input is closed' : `${file} ${code === 'ENOENT' ? 'does not exist' : 'cannot be read'}`
    throw new PieceworkError('PW_INPUT_UNREADABLE', `${text} (${code}).`, { file }, { cause: error })
  }
  throw new PieceworkError('PW_INPUT_UNREADABLE', `${file ?? 'Standard input'} is a folder.`, { file })
}

/** A store's file and what lies beside it under its name: write-ahead log, shared memory, the workers' locks. */
function refuseOwn(file: string | null, stat: Stats, store: string | null): void {
  if (store === null) return
  const same = (other: string) => {
    const found = statSync(other, { throwIfNoEntry: false })
    return found !== undefined && found.ino === stat.ino && found.dev === stat.dev
  }
  const beside = () => {
    if (file === null || !existsSync(dirname(store))) return false
    return realpathSync(file).startsWith(`${join(realpathSync(dirname(store)), basename(store))}-`)
  }
  if (!['', '-wal', '-shm'].some((ending) => same(store + ending)) && !beside()) return
  throw new PieceworkError('PW_OWN_FILE', `${file ?? 'Standard input'} belongs to the store ${store}.`, { file, store })
}

async function* itemsOf(bytes: Bytes, options: InputOptions): AsyncGenerator<Item[]> {
  const reader = new ItemReader(options.format, options)
  let items: Item[] = []
  let failure: unknown
  try {
    for await (const chunk of bytes) {
      reader.push(chunk, items)
      if (items.length === 0) continue
      yield items
      items = []
    }
    reader.end(items)
  } catch (error) {
    failure = error
  }
  if (items.length > 0) yield items
  if (failure !== undefined) throw failure instanceof PieceworkError ? failure : unreadable(failure)
}

interface Found {
  items: number
  bytes: number
  first: Item | null
}

async function lookThrough(bytes: Bytes, options: InputOptions): Promise<Found> {
  const found: Found = { items: 0, bytes: 0, first: null }
  const counted = async function* () {
    for await (const chunk of bytes) {
      found.bytes += chunk.length
      yield chunk
    }
  }
  for await (const items of itemsOf(counted(), options)) {
    found.items += items.length
    found.first ??= items[0] ?? null
  }
  return found
}

const unreadable = (error: unknown) =>
  new PieceworkError('PW_INPUT_UNREADABLE', (error as Error).message, {}, { cause: error })

/** A pipe or terminal: what came so far is looked at, the rest as it comes. */
async function piped(file: string | null, options: InputOptions): Promise<Input> {
  const source = (file === null ? stdin() : read(file))[Symbol.asyncIterator]()
  const ahead = await readAhead(source, options.clock)
  const reader = new ItemReader(options.format, options)
  const first: Item[] = []
  for (const chunk of ahead.chunks) reader.push(chunk, first)
  if (ahead.ended) reader.end(first)
  const all = async function* () {
    yield* ahead.chunks.splice(0)
    if (ahead.ended) return
    for (let next = await ahead.next; !next.done; next = await source.next()) yield next.value
  }
  const known = { total: ahead.ended ? first.length : null, first: first[0] ?? null }
  return { name: file ?? '-', format: options.format, ...known, items: () => itemsOf(all(), options) }
}

interface Ahead {
  chunks: Buffer[]
  ended: boolean
  /** The read that was under way when looking ahead came to its end. */
  next: Promise<IteratorResult<Buffer>>
}

async function readAhead(source: AsyncIterator<Buffer>, clock: Clock): Promise<Ahead> {
  const chunks: Buffer[] = []
  let bytes = 0
  for (;;) {
    const next = source.next()
    // Whoever reads on hears of it.
    next.catch(() => {})
    const come = await within(next, aheadIdleMs, clock)
    if (come === null) return { chunks, ended: false, next }
    if (come.done) return { chunks, ended: true, next }
    chunks.push(come.value)
    bytes += come.value.length
    if (bytes >= aheadBytesMax) return { chunks, ended: false, next: source.next() }
  }
}

/** What the promise answers, or null when it takes longer. */
function within<T>(promise: Promise<T>, ms: number, clock: Clock): Promise<T | null> {
  return new Promise((resolveWith, reject) => {
    const timer = clock.after(ms, () => resolveWith(null), true)
    promise.then(
      (value) => {
        timer.cancel()
        resolveWith(value)
      },
      (error) => {
        timer.cancel()
        reject(unreadable(error))
      },
    )
  })
}
