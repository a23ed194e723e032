// One call over HTTP to a broker: sent again under its name until it is answered, with a refusal made an error again.
import { randomBytes } from 'node:crypto'
import { Agent, type IncomingMessage, request as sendHttp } from 'node:http'
import { request as sendHttps, Agent as TlsAgent } from 'node:https'
import { type Clock, pause, type Random } from '../../ground/clock.js'
import { type ErrorCode, errorTable, PieceworkError } from '../../ground/errors.js'

export interface WirePorts {
  readonly clock: Clock
  readonly random: Random
}

export interface CallOptions {
  /** Beside the usual time for an answer. */
  readonly waitMs?: number
  readonly signal?: AbortSignal
  /** How long to go on while nobody answers; default 30 s. */
  readonly patienceMs?: number
}

/** An answer that takes longer is taken for lost: what was sent is sent again, and the broker knows it by its name. */
const answerMs = 10_000
const patienceMsDefault = 30_000
/** The pause before the n-th repeat: 25 ms doubling up to this, half of it random. */
const pauseMsMax = 2000
const answerBytesMax = 512 * 1024 * 1024

/** What came back, whole. */
interface Answer {
  status: number
  text: string
  retryAfterMs: number
}

/** A failure that says nothing about the call: it may have been done or not. */
class Lost extends Error {}

/** A name that no other call has. */
export const callName = (): string => randomBytes(16).toString('base64url')

export class Wire {
  readonly #base: URL
  readonly #token: string | null
  readonly #ports: WirePorts
  #agent: Agent | null = null

  /** `token` is sent with every call; it never stands in the URL, which ends up in logs. */
  constructor(base: URL, token: string | null, ports: WirePorts) {
    this.#base = base
    this.#token = token
    this.#ports = ports
  }

  /** The answer's JSON; throws what the broker refused with, PW_BROKER_UNREACHABLE or PW_BROKER_FAILED. */
  async call(verb: string, body: unknown, options: CallOptions = {}): Promise<unknown> {
    const { clock, random } = this.#ports
    const { signal, patienceMs = patienceMsDefault } = options
    const endMs = clock.monotonicMs() + patienceMs
    const text = JSON.stringify(body)
    const name = callName()
    for (let failures = 0; ; failures++) {
      let last: unknown
      let againMs = Math.min(25 * 2 ** failures, pauseMsMax) * (0.5 + random() / 2)
      try {
        const answer = await this.#once(verb, text, name, options)
        if (!isPassing(answer)) return accepted(answer, this.#base)
        againMs = Math.max(againMs, answer.retryAfterMs * (0.5 + random() / 2))
        last = valueOrError(answer, this.#base)
      } catch (error) {
        if (!(error instanceof Lost)) throw error
        last = error
      }
      signal?.throwIfAborted()
      if (clock.monotonicMs() + againMs > endMs) throw this.#unreachable(last)
      await pause(clock, againMs, signal)
    }
  }

  close(): void {
    this.#agent?.destroy()
    this.#agent = null
  }

  #unreachable(last: unknown): PieceworkError {
    if (last instanceof PieceworkError && last.code !== 'PW_SERVER_BUSY') return last
    const where = this.#base.origin
    const text = `${where} cannot be reached: ${(last as Error).message}`
    return new PieceworkError('PW_BROKER_UNREACHABLE', text, { url: where }, { cause: last })
  }

  /** Sends it once; rejects with Lost when no whole answer came in time. */
  #once(verb: string, text: string, name: string, { waitMs = 0, signal }: CallOptions): Promise<Answer> {
    const { clock } = this.#ports
    const tls = this.#base.protocol === 'https:'
    this.#agent ??= tls ? new TlsAgent({ keepAlive: true }) : new Agent({ keepAlive: true })
    const agent = this.#agent
    const headers = {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text),
      'idempotency-key': name,
      ...(this.#token === null ? {} : { authorization: `Bearer ${this.#token}` }),
    }
    const url = new URL(`v1/engine/${verb}`, this.#base)
    return new Promise((resolve, reject) => {
      const sent = (tls ? sendHttps : sendHttp)(url, { method: 'POST', agent, headers })
      const end = () => {
        timer.cancel()
        signal?.removeEventListener('abort', abort)
      }
      const lose = (why: string) => {
        end()
        reject(new Lost(why))
        sent.destroy()
      }
      const abort = () => lose('It was given up.')
      const timer = clock.after(answerMs + waitMs, () => {
        lose(`No answer came within ${answerMs + waitMs} ms.`)
        // The idle connections of that time are likely to hang as well; a new one shows whether anybody is there.
        for (const idle of Object.values(agent.freeSockets).flat()) idle?.destroy()
      })
      signal?.addEventListener('abort', abort, { once: true })
      sent.once('error', (error) => lose(error.message))
      sent.once('response', (response) => {
        read(response).then(
          (answer) => {
            end()
            resolve(answer)
          },
          (error: Error) => lose(error.message),
        )
      })
      sent.end(text)
    })
  }
}

async function read(response: IncomingMessage): Promise<Answer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > answerBytesMax) throw new Error(`The answer has more than ${answerBytesMax} bytes.`)
    chunks.push(chunk)
  }
  if (!response.complete) throw new Error('The answer ended before its end.')
  const seconds = Number(response.headers['retry-after'])
  return {
    status: response.statusCode ?? 0,
    text: Buffer.concat(chunks).toString('utf8'),
    retryAfterMs: Number.isFinite(seconds) ? Math.min(seconds * 1000, 10_000) : 0,
  }
}

interface Told {
  code?: unknown
  detail?: unknown
  details?: unknown
}

/** Somebody between, or a broker that stops or is full: the same call may go through in a moment. */
function isPassing({ status, text }: Answer): boolean {
  if (status === 429 || status === 502 || status === 504) return true
  if (status !== 503) return false
  const { code } = told(text)
  // What the engine itself says is for the caller, as it would be without a wire.
  return code === undefined || code === 'PW_SERVER_BUSY'
}

function told(text: string): Told {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return {}
  }
}

function accepted(answer: Answer, base: URL): unknown {
  const value = valueOrError(answer, base)
  if (value instanceof PieceworkError) throw value
  return value
}

/** A JSON value, or the error that the problem was made of. */
function valueOrError({ status, text }: Answer, { origin }: URL): unknown {
  if (status === 200) {
    try {
      return JSON.parse(text)
    } catch (cause) {
      return new PieceworkError('PW_BROKER_FAILED', `${origin} answered no JSON.`, { url: origin }, { cause })
    }
  }
  const { code, detail, details } = told(text)
  if (typeof code === 'string' && Object.hasOwn(errorTable, code)) {
    return new PieceworkError(code as ErrorCode, String(detail), (details ?? {}) as Record<string, unknown>)
  }
  return new PieceworkError('PW_BROKER_FAILED', `${origin} answered with HTTP status ${status}.`, {
    url: origin,
    status,
  })
}
