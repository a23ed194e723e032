// `piecework serve`: the broker, which gives other machines and languages the store over HTTP.
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { systemClock } from '../../ground/clock.js'
import { PieceworkError } from '../../ground/errors.js'
import { loopbackNames } from '../../server/auth.js'
import { Broker, type Log } from '../../server/broker.js'
import { handlerOf } from '../../server/handle.js'
import { listen } from '../../server/listen.js'
import { packageVersion, routes } from '../../server/routes.js'
import type { TokenRecord } from '../../task/records.js'
import { type Act, acts } from '../program.js'
import { type Store, withStore } from '../store.js'
import { duration, whole } from '../values.js'

interface Given {
  host: string
  port: string
  tlsCert?: string
  tlsKey?: string
  behindProxy?: boolean
  tokens?: boolean
  grace: string
}

export function serveCommand(program: Command): void {
  const command = program
    .command('serve')
    .description('serve the store over HTTP to other machines and languages')
    .option('--host <host>', 'the address to listen on', '127.0.0.1')
    .option('--port <port>', '0: any free one', '7420')
    .option('--tls-cert <file>', 'the certificate chain, PEM')
    .option('--tls-key <file>', 'its key, PEM')
    .option('--behind-proxy', 'a proxy in front does TLS; tokens are asked for on any address')
    .option('--tokens', 'ask for a token on this machine, too')
    .option('--grace <duration>', 'how long requests under way may go on when it is stopped', '25s')
    .addHelpText(
      'after',
      `
Programs call it by its URL: connect('http://…'), or --url http://… on any command; their token comes from
PIECEWORK_TOKEN. Other languages: /v1/openapi.json describes every call.`,
    )
  acts(command, act)
}

const act: Act = async ({ url, output }, _args, options) => {
  const given = options as unknown as Given
  const loopback = isLoopback(given.host)
  const tokens = !loopback || given.behindProxy === true || given.tokens === true
  const port = whole('--port', given.port, 0, 65_535)
  const graceMs = duration('--grace', given.grace)
  const tls = tlsOf(given)
  if (!loopback && tls === undefined && given.behindProxy !== true) {
    throw new PieceworkError('PW_SERVE_EXPOSED', `${given.host} can be reached from other machines, without TLS.`)
  }
  return withStore(url, { create: true }, async (store) => {
    if (!loopback) await refuseWithoutTokens(store, given.host)
    const { connection } = store
    const hosts = new Set([...loopbackNames, given.host.toLowerCase()])
    const broker = new Broker({ connection, tokens, hosts, version: packageVersion(), log })
    const listening = await listen(broker, handlerOf(broker, routes), { host: given.host, port, tls, graceMs })
    const stopped = signalled()
    await output.result(output.json ? JSON.stringify({ listening: listening.url }) : `listening on ${listening.url}`)
    log('listening', { url: listening.url, store: store.file ?? 'memory', tokens })
    log('stopping', { signal: await stopped })
    await listening.stop()
    log('stopped', {})
    return 0
  })
}

const isLoopback = (host: string) => /^(localhost|127(\.\d{1,3}){3}|::1)$/i.test(host)

function tlsOf({ tlsCert, tlsKey }: Given): { cert: Buffer; key: Buffer } | undefined {
  if (tlsCert === undefined && tlsKey === undefined) return undefined
  if (tlsCert === undefined || tlsKey === undefined) {
    throw new PieceworkError('PW_USAGE', 'TLS needs both --tls-cert and --tls-key.')
  }
  return { cert: contentOf('--tls-cert', tlsCert), key: contentOf('--tls-key', tlsKey) }
}

function contentOf(option: string, file: string): Buffer {
  try {
    return readFileSync(resolve(file))
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    throw new PieceworkError('PW_OPTION_INVALID', `${option} ${file} cannot be read (${code}).`, { option }, { cause })
  }
}

/** Nobody could log in: whoever starts it so has forgotten something. */
async function refuseWithoutTokens({ engine, clock }: Store, host: string): Promise<void> {
  const { items } = await engine.select('token', {}, null)
  const live = (items as unknown as TokenRecord[]).some((one) => (one.expiresAt ?? Infinity) > clock.wallMs())
  if (live) return
  throw new PieceworkError('PW_SERVE_EXPOSED', `${host} can be reached from other machines, and there is no token.`)
}

/** Resolves with the first signal that asks for the end. */
function signalled(): Promise<string> {
  return new Promise((resolveWith) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => resolveWith(signal))
  })
}

/** One line of JSON on stderr for each thing that somebody may have to look into. */
const log: Log = (event, facts) => {
  process.stderr.write(`${JSON.stringify({ at: new Date(systemClock.wallMs()).toISOString(), event, ...facts })}\n`)
}
