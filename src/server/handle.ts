// Takes one request from its head to its answer: finds its route, asks who calls, checks, acts, writes, counts.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { PieceworkError } from '../ground/errors.js'
import { checkName, payloadDepthMax } from '../task/limits.js'
import { parseJson } from '../task/payload.js'
import type { Caller } from './auth.js'
import { bodyText } from './body.js'
import type { Broker } from './broker.js'
import { checked, noQuery } from './check.js'
import { headersOf, problemOf } from './problem.js'
import type { Call, Reply, Route } from './route.js'
import { type Find, routerOf } from './router.js'

export type Handler = (request: IncomingMessage, response: ServerResponse) => void

/** Around a payload: an array of items, or a list of settles. */
const depthMax = payloadDepthMax + 8
/** What is left of a body after an early answer is read for so long, so that the client can read that answer. */
const lingerMs = 2000
const lingerBytesMax = 16 * 1024 * 1024

/** `prefix` is taken off the path first, for handlers that are mounted below one. */
export function handlerOf(broker: Broker, routes: readonly Route[], prefix = ''): Handler {
  const find = routerOf(routes)
  return (request, response) => {
    broker.begin()
    void new Exchange(broker, find, prefix, request, response).run().finally(() => broker.end())
  }
}

class Exchange {
  readonly #beganMs: number
  #label = 'none'
  #who: Caller | null = null
  #ending: AbortController | null = null

  constructor(
    private readonly broker: Broker,
    private readonly find: Find,
    private readonly prefix: string,
    private readonly request: IncomingMessage,
    private readonly response: ServerResponse,
  ) {
    this.#beganMs = broker.clock.monotonicMs()
  }

  async run(): Promise<void> {
    const { broker, request, response } = this
    try {
      const reply = await this.#reply()
      if (reply.stream) await reply.stream(response)
      else this.#write(reply)
    } catch (error) {
      this.#refuse(error)
    }
    broker.stopping.removeEventListener('abort', this.#leave)
    broker.meter.answered(this.#label, response.statusCode, broker.clock.monotonicMs() - this.#beganMs)
    if (!request.complete) this.#linger()
  }

  async #reply(): Promise<Reply> {
    const { broker, request } = this
    const [path = '', search = ''] = this.#target()
    const found = this.find(request.method ?? '', path)
    const { route } = found
    this.#label = `${route.method} ${route.path}`
    const params = found.params()
    if (broker.stopping.aborted && route.scope !== null) {
      throw new PieceworkError('PW_SERVER_BUSY', 'The broker is stopping.')
    }
    broker.doors.guard(request)
    const who = route.scope === null ? nobody : await broker.doors.caller(request)
    this.#who = who
    if (route.scope !== null && !who.may(...route.scope)) throw forbidden(`It needs ${route.scope.join(' or ')}.`)
    const named = params.q ?? params.name
    if (named !== undefined && !who.covers(named)) throw forbidden('Its queues do not cover this name.')
    const lines = route.lines === true && isKind(request, 'application/x-ndjson')
    const text = route.body && !lines ? await this.#text() : ''
    const value = text === '' ? {} : parseJson(text, depthMax)
    const body = route.body && !lines ? checked(route.body, value, 'The body') : undefined
    const query = checked(route.query ?? noQuery, queryOf(search), 'The query') as Record<string, unknown>
    const key = route.keyed ? keyOf(request, who) : null
    const ending = () => this.#endingSignal()
    return route.handle({
      ...{ broker, params, query, body, text, who, key, request },
      get ending() {
        return ending()
      },
    } satisfies Call)
  }

  /** The path below the prefix, and the query. */
  #target(): string[] {
    const url = this.request.url ?? ''
    const own = url.startsWith(this.prefix) ? url.slice(this.prefix.length) : url
    const at = own.indexOf('?')
    return at === -1 ? [own] : [own.slice(0, at), own.slice(at + 1)]
  }

  #text(): Promise<string> {
    const { broker, request } = this
    const kind = request.headers['content-type']
    if (kind !== undefined && !isKind(request, 'application/json')) {
      throw new PieceworkError('PW_CONTENT_TYPE', `The body is ${JSON.stringify(kind)}.`)
    }
    return bodyText({ request, clock: broker.clock, meter: broker.meter })
  }

  /** Made only for those who wait: a listener for each request would cost more than most of them. */
  #endingSignal(): AbortSignal {
    if (!this.#ending) {
      this.#ending = new AbortController()
      if (this.broker.stopping.aborted || this.response.closed) this.#ending.abort()
      this.broker.stopping.addEventListener('abort', this.#leave)
      this.response.once('close', this.#leave)
    }
    return this.#ending.signal
  }

  readonly #leave = () => this.#ending?.abort()

  #write({ status = 200, body, text = JSON.stringify(body), type = 'application/json', undelivered }: Reply): void {
    const { request, response } = this
    if (!undelivered) return this.#send(status, type, text, {})
    // Neither 'finish' nor writableFinished tells: both are there as well when the connection broke half-way.
    if (response.closed || request.socket.destroyed) return undelivered()
    let whole = false
    response.once('close', () => {
      if (!whole || request.socket.errored) undelivered()
    })
    this.#head(status, type, text, {})
    response.write(text, (error) => {
      whole = !error
    })
    response.end()
  }

  #send(status: number, type: string, text: string, more: Record<string, string>): void {
    this.#head(status, type, text, more)
    this.response.end(text)
  }

  #head(status: number, type: string, text: string, more: Record<string, string>): void {
    const { broker, request, response } = this
    // A body that nobody reads would be taken for the next request, or keep the connection for ever.
    const last = broker.stopping.aborted || !request.complete
    response.writeHead(status, {
      'content-type': type,
      'content-length': Buffer.byteLength(text),
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      ...(last ? { connection: 'close' } : {}),
      ...more,
    })
  }

  #refuse(error: unknown): void {
    const problem = problemOf(error)
    this.#tell(problem.status, problem.code, error)
    // What had begun cannot be unsaid: the client sees that it has no end.
    if (this.response.headersSent) return void this.response.destroy()
    this.#send(problem.status, 'application/problem+json', JSON.stringify(problem), headersOf(error, problem))
  }

  /** Refusals of strangers and failures of ours; the error's own words stay out, they may hold anything. */
  #tell(status: number, code: string, error: unknown): void {
    if (status < 500 && status !== 401 && status !== 403 && status !== 429) return
    const facts = { route: this.#label, status, code, by: this.#who?.name, address: this.request.socket.remoteAddress }
    const frames =
      code === 'PW_BUG' && error instanceof Error ? error.stack?.match(/^ +at .*$/gm)?.slice(0, 8) : undefined
    this.broker.log('refused', frames ? { ...facts, error: (error as Error).name, frames } : facts)
  }

  #linger(): void {
    const { request, broker } = this
    let bytes = 0
    const end = () => {
      timer.cancel()
      request.socket.destroy()
    }
    const timer = broker.clock.after(lingerMs, end)
    request.once('end', () => timer.cancel()).once('close', () => timer.cancel())
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > lingerBytesMax) end()
    })
  }
}

const nobody: Caller = { name: null, actor: 'nobody', may: () => false, covers: () => true }

const forbidden = (why: string) => new PieceworkError('PW_FORBIDDEN', `This token may not do that. ${why}`)

function isKind(request: IncomingMessage, kind: string): boolean {
  return (request.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() === kind
}

function queryOf(search: string): Record<string, string> {
  const query = Object.create(null) as Record<string, string>
  for (const [name, value] of new URLSearchParams(search)) {
    if (name in query) throw new PieceworkError('PW_OPTION_INVALID', `The query says ${name} twice.`)
    query[name] = value
  }
  return query
}

function keyOf(request: IncomingMessage, { name }: Caller): string | null {
  const key = request.headers['idempotency-key']
  if (key === undefined) return null
  return `http ${name?.length ?? 0} ${name ?? ''} ${checkName('Idempotency-Key', key)}`
}
