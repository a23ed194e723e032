// Puts a handler on a port: bounds on what a connection may do, TLS, and a stop that loses no answer.
import { createServer, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { Socket } from 'node:net'
import { PieceworkError } from '../ground/errors.js'
import type { Broker } from './broker.js'
import type { Handler } from './handle.js'
import { problemOf } from './problem.js'

export interface ListenOptions {
  readonly host: string
  /** 0: any free one. */
  readonly port: number
  readonly tls?: { readonly cert: Buffer; readonly key: Buffer } | undefined
  /** How long requests under way may go on after a stop. */
  readonly graceMs: number
}

export interface Listening {
  readonly url: string
  /** Takes no new connections, answers what is under way, ends what is not done in the grace time. */
  stop(): Promise<void>
}

const bounds = {
  // Bodies have times of their own: a stream may take as long as it brings something.
  ...{ requestTimeout: 0, headersTimeout: 10_000, connectionsCheckingInterval: 2000 },
  // Longer than the idle time of the usual proxies, so that none of them meets a connection that just closed.
  ...{ keepAliveTimeout: 75_000, maxHeaderSize: 16_384, noDelay: true },
}
const connectionsMax = 10_000
const headersMax = 100
/** How often a server that stops closes connections that have become idle. */
const idleEveryMs = 20

/** Throws PW_OPTION_INVALID when the port cannot be had or the certificate is none. */
export async function listen(broker: Broker, handler: Handler, options: ListenOptions): Promise<Listening> {
  const { host, port, tls } = options
  const server = made(handler, tls)
  server.maxConnections = connectionsMax
  server.maxHeadersCount = headersMax
  server.on('clientError', answerBadHead)
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) => {
      const text = `${host} port ${port} cannot be listened on: ${cause.message}.`
      reject(new PieceworkError('PW_OPTION_INVALID', text, { host, port }, { cause }))
    })
    server.listen(port, host, resolve)
  })
  const { port: got } = server.address() as { port: number }
  const shown = host.includes(':') ? `[${host}]` : host
  let stopped: Promise<void> | null = null
  return {
    url: `${tls ? 'https' : 'http'}://${shown}:${got}`,
    stop: () => {
      stopped ??= stop(broker, server, options.graceMs)
      return stopped
    },
  }
}

function made(handler: Handler, tls: ListenOptions['tls']): Server {
  if (!tls) return createServer(bounds, handler)
  try {
    return createTlsServer({ ...bounds, ...tls }, handler)
  } catch (cause) {
    const text = `The certificate and its key cannot be used: ${(cause as Error).message}.`
    throw new PieceworkError('PW_OPTION_INVALID', text, {}, { cause })
  }
}

async function stop(broker: Broker, server: Server, graceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  const grace = broker.clock.after(graceMs, () => server.closeAllConnections(), true)
  let ended = false
  const idle = () => {
    server.closeIdleConnections()
    if (!ended) broker.clock.after(idleEveryMs, idle, true)
  }
  await broker.stop()
  idle()
  await closed
  ended = true
  grace.cancel()
}

/** A head that is no HTTP, too long, ambiguous about its length or too slow never reaches a handler. */
function answerBadHead(error: NodeJS.ErrnoException, socket: Socket): void {
  // What was written before may be half an answer: another one behind it would be taken for its rest.
  if (!socket.writable || socket.bytesWritten > 0) return void socket.destroy()
  const status = error.code === 'HPE_HEADER_OVERFLOW' ? 431 : error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400
  const text = 'The head of the request is malformed, ambiguous, too long or too slow.'
  const body = JSON.stringify(problemOf(new PieceworkError('PW_REQUEST_INVALID', text, { status })))
  const head = [
    'content-type: application/problem+json',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ]
  socket.end(`HTTP/1.1 ${status} Refused\r\n${head.join('\r\n')}\r\n\r\n${body}`)
}
