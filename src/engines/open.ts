// Finds the engine for a URL or a descriptor; drivers are loaded only when asked for.

import type { Descriptor, Engine } from '../engine/contract.js'
import type { Clock, Random } from '../ground/clock.js'
import { systemClock, systemRandom } from '../ground/clock.js'
import { PieceworkError } from '../ground/errors.js'
import { shown } from '../task/limits.js'
import { type PostgresOptions, postgresEngine } from './postgres/engine.js'
import type { ClientPool } from './postgres/link.js'
import { type RemoteOptions, remoteEngine } from './remote/engine.js'
import type { SqliteOptions } from './sqlite/engine.js'
import { sqliteEngine } from './sqlite/engine.js'

/** How a store is opened; every field has a default. */
export interface OpenOptions extends SqliteOptions, PostgresOptions, RemoteOptions {
  clock?: Clock | undefined
  random?: Random | undefined
}

/** The PostgreSQL engine over a caller's `pg.Pool`, not yet open. */
export const engineOver = (pool: ClientPool, options: OpenOptions = {}): Engine =>
  postgresEngine({ pool }, ports(options), options)

/** The engine for a URL (`sqlite:FILE`, `postgres://…`, `http://HOST`), not yet open; throws PW_ENGINE_UNKNOWN. */
export function engineFor(url: string, options: OpenOptions = {}): Engine {
  const scheme = /^([a-z+]+):/.exec(url)?.[1]
  if (scheme === 'sqlite') {
    const file = url.slice('sqlite:'.length).replace(/^\/\/(?=\/)/, '')
    if (file === '') throw new PieceworkError('PW_ENGINE_UNKNOWN', `${shown(url)} names no file.`, { url })
    // Neither a host nor a name that SQLite might take for something special is a file that anybody meant.
    if (file.startsWith('//') || (file.startsWith(':') && file !== ':memory:')) {
      const cure = 'Write sqlite:FILE, sqlite:///FOLDER/FILE or sqlite::memory:.'
      throw new PieceworkError('PW_ENGINE_UNKNOWN', `${shown(url)} names no file. ${cure}`, { url })
    }
    return sqliteEngine(file, ports(options), options)
  }
  if (scheme === 'postgres' || scheme === 'postgresql') return postgresEngine({ url }, ports(options), options)
  if (scheme === 'http' || scheme === 'https') return remoteEngine(url, ports(options), options)
  throw new PieceworkError('PW_ENGINE_UNKNOWN', `${shown(url)} is no URL of an engine this version has.`, { url })
}

/** Reopens a store from what `descriptor()` answered, in another thread or process. */
export function engineFrom(descriptor: Descriptor, options: OpenOptions = {}): Engine {
  const { engine, url } = descriptor
  if (engine === 'postgres') return postgresEngine({ url: String(url) }, ports(options), { ...options, ...descriptor })
  if (engine === 'remote') {
    const token = (descriptor.token as string | null) ?? undefined
    return remoteEngine(String(url), ports(options), { token })
  }
  return sqliteEngine(String(descriptor.file), ports(options), { ...options, ...descriptor })
}

const ports = (options: OpenOptions) => ({
  clock: options.clock ?? systemClock,
  random: options.random ?? systemRandom,
})
