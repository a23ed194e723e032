// Passes on what COMMANDs wrote: to stdout whole, to files, to the --joblog, to stderr, each delivery in one piece.
import {
  accessSync,
  appendFileSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  renameSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import { PieceworkError } from '../ground/errors.js'
import type { Capture } from './capture.js'
import type { Ended } from './child.js'
import type { Order } from './order.js'
import { quoted } from './placeholders.js'
import type { Output } from './print.js'
import { written } from './print.js'
import type { Progress } from './progress.js'

export type VerdictWord = 'ack' | 'retry' | 'release' | 'bury' | 'cancelled'

/** One ended delivery, as far as output is concerned. */
export interface Told {
  id: string
  /** The item's number in the batch. */
  number: number
  delivery: number
  item: string
  words: readonly string[]
  /** Bytes given to it on stdin. */
  sent: number
  /** Null when it could not be started. */
  ended: Ended | null
  verdict: VerdictWord
  error: string | null
  code: string | null
}

export interface ResultOptions {
  tag: boolean
  /** A folder for one folder a task; null for none. */
  folder: string | null
  log: string | null
  quiet: boolean
}

const logHead = 'Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n'
const signalNumbers: Record<string, number> = { SIGHUP: 1, SIGINT: 2, SIGABRT: 6, SIGKILL: 9, SIGSEGV: 11, SIGTERM: 15 }

export class Results {
  readonly order: Order
  readonly #options: ResultOptions
  readonly #output: Output
  readonly #progress: Progress

  constructor(options: ResultOptions, output: Output, progress: Progress, order: Order) {
    this.#options = options
    this.#output = output
    this.#progress = progress
    this.order = order
  }

  /**
   * Resolves true when everything of this delivery is written, false when the turn of its output does not come; rejects
   * with PW_OUTPUT_CLOSED when it cannot be written. `signal` is that of the delivery.
   */
  async tell(told: Told, signal: AbortSignal): Promise<boolean> {
    const { ended } = told
    if (ended?.stdout.failure != null) {
      const text = `The output of the COMMAND cannot be kept until it is written: ${ended.stdout.failure}.`
      throw new PieceworkError('PW_OUTPUT_CLOSED', text, { task: told.id })
    }
    if (ended !== null) await this.#keep(told, ended)
    if (told.verdict === 'ack') return this.order.deliver(told.id, signal, () => this.#print(told))
    if (this.#output.json) await this.order.alone(() => this.#print(told))
    return true
  }

  async #keep(told: Told, ended: Ended): Promise<void> {
    const { folder, log } = this.#options
    try {
      if (folder !== null) await this.#file(folder, told, ended)
      if (log !== null) appendFileSync(log, logLine(told, ended))
    } catch (error) {
      throw new PieceworkError('PW_OUTPUT_CLOSED', (error as Error).message, {}, { cause: error })
    }
    this.#complain(ended)
  }

  async #print(told: Told): Promise<void> {
    if (this.#output.json) return printShape(told)
    const { ended, item } = told
    if (ended === null || ended.stdout.size === 0) return
    const pieces = this.#options.tag ? tagged(ended, `${item}\t`) : ended.stdout.pieces()
    this.#progress.hide()
    try {
      for await (const piece of pieces) await written(process.stdout, piece)
      // On a terminal the bar is drawn next, and must not stand in the same row.
      if (process.stdout.isTTY && !ended.stdout.endsLine) await written(process.stdout, '\n')
    } finally {
      this.#progress.show()
    }
  }

  /** What it said on stderr goes to ours, in one piece. */
  #complain({ stderr }: Ended): void {
    if (this.#options.quiet || this.#output.json || stderr.length === 0) return
    const whole = stderr.at(-1) === 0x0a
    this.#progress.around(() => process.stderr.write(whole ? stderr : Buffer.concat([stderr, Buffer.from('\n')])))
  }

  /** FOLDER/NUMBER/{item,stdout,stderr}; each file appears whole. */
  async #file(folder: string, { number, item }: Told, ended: Ended): Promise<void> {
    const place = join(folder, String(number))
    if (!existsSync(place)) mkdirSync(place)
    const put = (name: string, data: Uint8Array | string) => {
      writeFileSync(join(place, `.${name}`), data)
      renameSync(join(place, `.${name}`), join(place, name))
    }
    put('item', item)
    put('stderr', ended.stderr)
    writeFileSync(join(place, '.stdout'), '')
    for await (const piece of ended.stdout.pieces()) appendFileSync(join(place, '.stdout'), piece)
    renameSync(join(place, '.stdout'), join(place, 'stdout'))
  }
}

/** One level at a time: Node's own recursion never returns where a file system refuses folders, as in /proc. */
function makeFolder(folder: string): void {
  if (existsSync(folder)) return
  if (!existsSync(dirname(folder))) makeFolder(dirname(folder))
  mkdirSync(folder)
}

/** Makes the places for files; throws PW_USAGE when one cannot be written, before anything is stored or runs. */
export function makePlaces({ folder, log }: ResultOptions): void {
  filed('--results', () => {
    if (folder === null) return
    makeFolder(folder)
    accessSync(folder, constants.W_OK | constants.X_OK)
  })
  filed('--joblog', () => {
    if (log === null) return
    const fd = openSync(log, 'a')
    try {
      if (fstatSync(fd).size === 0) writeSync(fd, logHead)
    } finally {
      closeSync(fd)
    }
  })
}

function filed(option: string, make: () => unknown): void {
  try {
    make()
  } catch (error) {
    throw new PieceworkError('PW_USAGE', `${option}: ${(error as Error).message}.`, { option }, { cause: error })
  }
}

async function* tagged(ended: Ended, tag: string): AsyncGenerator<Buffer> {
  const head = Buffer.from(tag)
  let atStart = true
  for await (const piece of ended.stdout.pieces()) {
    for (let from = 0; from < piece.length; ) {
      const feed = piece.indexOf(0x0a, from)
      const to = feed === -1 ? piece.length : feed + 1
      if (atStart) yield head
      yield piece.subarray(from, to)
      atStart = feed !== -1
      from = to
    }
  }
}

/** Characters of a line that are collected before they are written: an output can be larger than any string. */
const piecesMax = 1_048_576

/** One delivery as a line of --json. Output that is not UTF-8 is given in base64, so that nothing of it is lost. */
async function printShape({ id, number, delivery, item, ended, verdict, error, code }: Told): Promise<void> {
  const shape = { id, item, number, delivery, verdict, exit: null, signal: null, ms: 0, error, code }
  if (ended === null) return written(process.stdout, `${JSON.stringify(shape)}\n`)
  const { exit, signal, runMs, stdout } = ended
  const head = JSON.stringify({ ...shape, exit, signal, ms: Math.round(runMs) }).slice(0, -1)
  const isText = await isUtf8(stdout)
  let line = `${head},"${isText ? 'stdout' : 'stdoutBase64'}":"`
  for await (const piece of isText ? escaped(stdout) : base64(stdout)) {
    line += piece
    if (line.length <= piecesMax) continue
    await written(process.stdout, line)
    line = ''
  }
  return written(process.stdout, `${line}"}\n`)
}

/** Throws at bytes that are no UTF-8; leaves a byte order mark where it stands. */
const decoder = () => new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

async function isUtf8(stdout: Capture): Promise<boolean> {
  const text = decoder()
  try {
    for await (const piece of stdout.pieces()) text.decode(piece, { stream: true })
    text.decode()
    return true
  } catch (error) {
    if (error instanceof TypeError) return false
    throw error
  }
}

/** The inside of a JSON string; a character that two pieces share comes with the second. */
async function* escaped(stdout: Capture): AsyncGenerator<string> {
  const text = decoder()
  for await (const piece of stdout.pieces()) yield JSON.stringify(text.decode(piece, { stream: true })).slice(1, -1)
}

async function* base64(stdout: Capture): AsyncGenerator<string> {
  let rest = Buffer.alloc(0)
  for await (const piece of stdout.pieces()) {
    const bytes = rest.length === 0 ? piece : Buffer.concat([rest, piece])
    const whole = bytes.length - (bytes.length % 3)
    yield bytes.toString('base64', 0, whole)
    rest = Buffer.from(bytes.subarray(whole))
  }
  yield rest.toString('base64')
}

function logLine({ number, words, sent }: Told, ended: Ended): string {
  const { startedAt, runMs, stdout, exit, signal } = ended
  const columns = [
    number,
    hostname(),
    (startedAt / 1000).toFixed(3),
    (runMs / 1000).toFixed(3),
    sent,
    stdout.size,
    exit ?? 0,
    signal === null ? 0 : (signalNumbers[signal] ?? signal),
    quoted(words).replaceAll('\n', ' '),
  ]
  return `${columns.join('\t')}\n`
}
