// Passes on what COMMANDs wrote: to stdout whole, to files, to the --joblog, to stderr, each delivery in one piece.
import { appendFileSync, existsSync, mkdirSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { PieceworkError } from '../ground/errors.js'
import type { Ended } from './child.js'
import { Order } from './order.js'
import { quoted } from './placeholders.js'
import type { Output } from './print.js'
import { written } from './print.js'
import type { Progress } from './progress.js'

export type VerdictWord = 'ack' | 'retry' | 'release' | 'bury'

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
  keepOrder: boolean
  tag: boolean
  /** A folder for one folder a task; null for none. */
  folder: string | null
  log: string | null
  quiet: boolean
  /** Outputs that may wait for an earlier one. */
  heldMax: number
}

const logHead = 'Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n'
const signalNumbers: Record<string, number> = { SIGHUP: 1, SIGINT: 2, SIGABRT: 6, SIGKILL: 9, SIGSEGV: 11, SIGTERM: 15 }

export class Results {
  readonly order: Order
  readonly #options: ResultOptions
  readonly #output: Output
  readonly #progress: Progress

  /** Throws PW_USAGE when a place for files cannot be written, before anything runs. */
  constructor(options: ResultOptions, output: Output, progress: Progress) {
    this.#options = options
    this.#output = output
    this.#progress = progress
    this.order = new Order(options.keepOrder ? options.heldMax : 0)
    filed('--results', () => options.folder !== null && mkdirSync(options.folder, { recursive: true }))
    filed('--joblog', () => {
      if (options.log === null || (existsSync(options.log) && statSync(options.log).size > 0)) return
      writeFileSync(options.log, logHead)
    })
  }

  /** Resolves when everything of this delivery is written; rejects with PW_OUTPUT_CLOSED when it cannot be. */
  async tell(told: Told): Promise<void> {
    const { ended } = told
    if (ended !== null) await this.#keep(told, ended)
    if (told.verdict === 'ack') await this.order.deliver(told.id, () => this.#print(told))
    else if (this.#output.json) await this.#print(told)
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
    if (this.#output.json) return this.#output.value(await shapeOf(told))
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
    mkdirSync(place, { recursive: true })
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

/** One delivery as a line of --json. Output that is not UTF-8 is given in base64, so that nothing of it is lost. */
async function shapeOf(told: Told): Promise<Record<string, unknown>> {
  const { id, number, delivery, item, ended, verdict, error, code } = told
  const shape = { id, item, number, delivery, verdict, exit: null, signal: null, ms: 0, error, code }
  if (ended === null) return shape
  const bytes = await ended.stdout.whole()
  const text = bytes.toString('utf8')
  const stdout = Buffer.from(text).equals(bytes) ? { stdout: text } : { stdoutBase64: bytes.toString('base64') }
  const { exit, signal, runMs } = ended
  return { ...shape, exit, signal, ms: Math.round(runMs), ...stdout }
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
