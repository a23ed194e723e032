// Reads the body of a request within bounds of size and time, and as lines without holding them.
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { Clock, Timer } from '../ground/clock.js'
import { PieceworkError } from '../ground/errors.js'
import type { Meter } from './meter.js'

/** A thousand ordinary tasks, or the sixteen largest ones. */
const bodyBytesMax = 16 * 1024 * 1024
/** One task with the largest payload, and room for its options. */
const lineBytesMax = 2 * 1024 * 1024
/** All bodies that are held in memory at once. */
const bufferedBytesMax = 256 * 1024 * 1024
/** A body has to arrive in this time; a stream has to bring something in this time, again and again. */
const bodyMs = 30_000

export interface Reading {
  readonly request: IncomingMessage
  readonly clock: Clock
  readonly meter: Meter
}

/** The whole body as text; throws PW_BODY_TOO_LARGE, PW_SERVER_BUSY, PW_REQUEST_INVALID, PW_UTF8_INVALID. */
export async function bodyText(reading: Reading): Promise<string> {
  const { request, meter } = reading
  if (Number(request.headers['content-length'] ?? 0) > bodyBytesMax) throw tooLarge(bodyBytesMax)
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of timely(reading, false)) {
      bytes += chunk.length
      meter.buffered += chunk.length
      if (bytes > bodyBytesMax) throw tooLarge(bodyBytesMax)
      if (meter.buffered > bufferedBytesMax) {
        throw new PieceworkError('PW_SERVER_BUSY', 'The broker holds as many bodies as it may.', { retryAfter: 1 })
      }
      chunks.push(chunk)
    }
  } finally {
    meter.buffered -= bytes
  }
  return utf8(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks), 'The body')
}

/** The lines of a body, one at a time: the client is not read faster than they are taken. Empty lines are left out. */
export async function* bodyLines(reading: Reading): AsyncGenerator<string> {
  let rest: Buffer[] = []
  let restBytes = 0
  let number = 0
  for await (const chunk of timely(reading, true)) {
    let from = 0
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, from)) {
      rest.push(chunk.subarray(from, end))
      from = end + 1
      const line = utf8(Buffer.concat(rest), `Line ${++number}`)
      rest = []
      restBytes = 0
      if (line.trim() !== '') yield line
    }
    rest.push(chunk.subarray(from))
    restBytes += chunk.length - from
    if (restBytes > lineBytesMax) throw tooLarge(lineBytesMax)
  }
  const last = utf8(Buffer.concat(rest), `Line ${++number}`)
  if (last.trim() !== '') yield last
}

/** The chunks of a body, each in time; throws when the client is too slow or has gone, and leaves it connected. */
async function* timely({ request, clock }: Reading, each: boolean): AsyncGenerator<Buffer> {
  const chunks = request.iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer>
  let deadline = deadlineOn(clock)
  try {
    for (;;) {
      const next = await Promise.race([chunks.next(), deadline.passed]).catch((cause: unknown) => {
        throw new PieceworkError('PW_REQUEST_INVALID', 'The body ended before its end.', {}, { cause })
      })
      if (next === null) {
        const text = `The body did not come within ${bodyMs / 1000} s.`
        throw new PieceworkError('PW_REQUEST_INVALID', text, { status: 408 })
      }
      if (next.done) return
      if (each) deadline.cancel()
      yield next.value
      if (each) deadline = deadlineOn(clock)
    }
  } finally {
    deadline.cancel()
  }
}

function deadlineOn(clock: Clock): { passed: Promise<null>; cancel(): void } {
  let timer: Timer | null = null
  const passed = new Promise<null>((resolve) => {
    timer = clock.after(bodyMs, () => resolve(null))
  })
  return { passed, cancel: () => timer?.cancel() }
}

function utf8(bytes: Buffer, what: string): string {
  if (isUtf8(bytes)) return bytes.toString('utf8')
  throw new PieceworkError('PW_UTF8_INVALID', `${what} is not UTF-8.`)
}

const tooLarge = (max: number) =>
  new PieceworkError('PW_BODY_TOO_LARGE', `It has more than ${max} bytes.`, { bytesMax: max })
