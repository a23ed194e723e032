// Opens the store that a command works on, with the client library around its engine.
import { hostname, userInfo } from 'node:os'
import { resolve } from 'node:path'
import type { Engine } from '../engine/contract.js'
import { engineFor } from '../engines/open.js'
import { type Clock, systemClock, systemRandom } from '../ground/clock.js'
import { Client } from '../queue/client.js'
import { Connection } from '../queue/connection.js'
import type { Piecework } from '../queue/face.js'
import { startWorker } from '../worker/worker.js'

export interface Store {
  readonly url: string
  /** The absolute path of its file; null when it has none. */
  readonly file: string | null
  readonly connection: Connection
  readonly client: Piecework
  /** For what the library has no verb. */
  readonly engine: Engine
  readonly clock: Clock
}

/** `--url`, else PIECEWORK_URL, else `sqlite:piecework.db`. */
export const urlOf = (given: string | undefined): string =>
  given ?? (process.env.PIECEWORK_URL || 'sqlite:piecework.db')

/** The absolute path of a URL's file; null for a store in memory or behind a server. */
export function fileOf(url: string): string | null {
  const match = /^sqlite:(?:\/\/(?=\/))?(.+)$/.exec(url)
  return match?.[1] === undefined || match[1] === ':memory:' ? null : resolve(match[1])
}

/** Opens it; `create: false` refuses a missing one with PW_STORE_MISSING. */
async function openStore(url: string, options: { create: boolean }): Promise<Store> {
  const engine = engineFor(url, options)
  await engine.open()
  const connection = new Connection({ engine, clock: systemClock, random: systemRandom, startWorker, actor: actor() })
  return { url, file: fileOf(url), connection, client: new Client(connection), engine, clock: systemClock }
}

/** Opens the store, hands it to `work`, and closes it whatever happens. */
export async function withStore<T>(
  url: string,
  options: { create: boolean },
  work: (store: Store) => Promise<T>,
): Promise<T> {
  const store = await openStore(url, options)
  try {
    return await work(store)
  } finally {
    await store.connection.close()
  }
}

/** Who the audit says did it. */
function actor(): string {
  try {
    return `${userInfo().username} on ${hostname()}`
  } catch {
    // A container's user need not have a name.
    return `uid ${process.getuid?.() ?? '?'} on ${hostname()}`
  }
}
