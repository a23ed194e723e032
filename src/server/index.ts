// What `piecework/server` offers: the broker as a handler for an HTTP server that a program has already.
import { connectionOf } from '../queue/client.js'
import type { Piecework } from '../queue/face.js'
import { Broker } from './broker.js'
import { type Handler, handlerOf } from './handle.js'
import { packageVersion, routes } from './routes.js'

/** Options of httpHandler(). */
export interface HttpHandlerOptions {
  /** Default 'required'. `none`: whoever reaches the handler may do everything; the program around it decides who. */
  tokens?: 'required' | 'none' | undefined
  /** The path that the handler is mounted below, where the surrounding server leaves it in the URL; default none. */
  prefix?: string | undefined
  /** Hears refusals and failures: an event and its facts, never a payload or a token. Default: nobody does. */
  log?: ((event: string, facts: Record<string, unknown>) => void) | undefined
}

/** A listener for node:http and what is made of it; Express takes it as it is. */
export interface HttpHandler extends Handler {
  /** Ends long polls and streams, takes nothing new; resolves when all that was under way is answered. */
  stop(): Promise<void>
}

/** Everything under /v1, /metrics, /healthz and /readyz, over an open connection. */
export function httpHandler(pw: Piecework, options: HttpHandlerOptions = {}): HttpHandler {
  const { tokens = 'required', prefix = '', log = () => {} } = options
  const connection = connectionOf(pw)
  const broker = new Broker({ connection, tokens: tokens === 'required', hosts: null, version: packageVersion(), log })
  return Object.assign(handlerOf(broker, routes, prefix), { stop: () => broker.stop() })
}
