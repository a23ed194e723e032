// The connection as a program holds it, and how one is opened from a URL and options.
import { engineFor, engineOver } from '../engines/open.js'
import { systemClock, systemRandom } from '../ground/clock.js'
import { PieceworkError } from '../ground/errors.js'
import type { LimitSettings } from '../task/limiter.js'
import { shown } from '../task/limits.js'
import type { LimitRecord } from '../task/records.js'
import { BatchClient } from './batch.js'
import { Connection } from './connection.js'
import type { Batch, BatchOptions, Piecework } from './face.js'
import { checkChoice, checkOptions } from './options.js'
import { declareLimit } from './policy.js'
import { QueueClient } from './queue.js'
import type { StartWorker } from './seam.js'

/** Options of connect(). */
export interface ConnectOptions {
  /** Default: PIECEWORK_URL, else `sqlite:piecework.db` in the current folder. */
  url?: string | undefined
  /** `strict` refuses a queue whose policy another build declared otherwise; default: the later start wins. */
  policy?: 'strict' | undefined
  /** What an accepted call survives; default 'group': power loss, by one shared sync for all calls of a moment. */
  durability?: 'group' | 'full' | 'relaxed' | undefined
  /** A `pg.Pool` instead of a URL: its clients are borrowed, and two connections more are made with its options. */
  pool?: { connect(): Promise<unknown>; readonly options: object } | undefined
}

export class Client implements Piecework {
  readonly #connection: Connection

  constructor(connection: Connection) {
    this.#connection = connection
  }

  static connectionOf(client: Client): Connection {
    return client.#connection
  }

  get ready(): Promise<void> {
    return this.#connection.ready()
  }

  // One class stands behind all three typings: they differ for the compiler only.
  queue(name: string, options?: object): never {
    return new QueueClient(this.#connection, name, options as Record<string, unknown> | undefined) as never
  }

  batch(name: string, options?: BatchOptions): Batch {
    return new BatchClient(this.#connection, name, options)
  }

  limit(name: string, settings?: Partial<LimitSettings>): Promise<LimitRecord | null> {
    return declareLimit(this.#connection, name, settings)
  }

  close(): Promise<void> {
    return this.#connection.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#connection.close()
  }
}

/** The connection behind what connect() answered; throws PW_OPTION_INVALID for anything else. */
export function connectionOf(pw: Piecework): Connection {
  const connection = pw instanceof Client ? Client.connectionOf(pw) : null
  if (connection) return connection
  throw new PieceworkError('PW_OPTION_INVALID', `A handler needs what connect() answered, not ${shown(pw)}.`)
}

/** Opens the store, makes or migrates it when it may; throws for bad options, and what the engine says. */
export async function open(
  startWorker: StartWorker,
  where: string | ConnectOptions | undefined,
  more: ConnectOptions | undefined,
): Promise<Client> {
  const options = optionsOf(where, more)
  const url = options.url ?? (process.env.PIECEWORK_URL || 'sqlite:piecework.db')
  if (typeof url !== 'string') throw new PieceworkError('PW_OPTION_INVALID', `url is ${shown(url)}; it must be text.`)
  if (options.policy !== undefined) checkChoice('policy', options.policy, ['strict'])
  const { durability = 'group' } = options
  checkChoice('durability', durability, ['group', 'full', 'relaxed'])
  const engine =
    options.pool === undefined ? engineFor(url, { durability }) : engineOver(poolOf(options), { durability })
  await engine.open()
  const ports = { engine, clock: systemClock, random: systemRandom }
  return new Client(new Connection({ ...ports, startWorker, policy: options.policy }))
}

/** Throws PW_OPTION_INVALID for what is no pool, and for a URL beside one. */
function poolOf({ pool, url }: ConnectOptions): Parameters<typeof engineOver>[0] {
  if (typeof pool?.connect !== 'function' || typeof pool.options !== 'object') {
    throw new PieceworkError('PW_OPTION_INVALID', `pool is ${shown(pool)}; it must be a Pool of pg.`)
  }
  if (url !== undefined)
    throw new PieceworkError('PW_OPTION_INVALID', 'connect got a pool and a URL; give one of them.')
  return pool as Parameters<typeof engineOver>[0]
}

function optionsOf(where: string | ConnectOptions | undefined, more: ConnectOptions | undefined): ConnectOptions {
  checkOptions('connect', more)
  if (where === undefined) return more ?? {}
  if (typeof where !== 'string') {
    checkOptions('connect', where)
    if (more === undefined) return where
    throw new PieceworkError('PW_OPTION_INVALID', 'connect got two objects of options; put all into one.')
  }
  if (more?.url === undefined) return { ...more, url: where }
  throw new PieceworkError('PW_OPTION_INVALID', 'connect got two URLs; give one of them.')
}
