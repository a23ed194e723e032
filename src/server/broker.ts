// One broker: what all its requests share, from the store's connection to the log.
import type { Engine } from '../engine/contract.js'
import type { Clock } from '../ground/clock.js'
import type { Connection } from '../queue/connection.js'
import type { Caller } from './auth.js'
import { Doors } from './auth.js'
import { Feed } from './feed.js'
import { Meter } from './meter.js'
import { Names } from './names.js'

/** One line of the log: an event and its facts, never a payload or a token. */
export type Log = (event: string, facts: Record<string, unknown>) => void

export interface BrokerOptions {
  /** Its store is open; whoever opened it closes it after the broker has stopped. */
  readonly connection: Connection
  /** False: a request without a token may do everything. */
  readonly tokens: boolean
  /** Names by which an open broker may be called; null: any. */
  readonly hosts: ReadonlySet<string> | null
  readonly version: string
  readonly log: Log
}

/** Long polls and streams at once; each holds a socket and a little memory. */
const waitingMax = 10_000

export class Broker {
  readonly connection: Connection
  readonly engine: Engine
  readonly clock: Clock
  readonly version: string
  readonly log: Log
  readonly doors: Doors
  readonly names: Names
  readonly meter = new Meter()
  readonly feed: Feed
  readonly #stopping = new AbortController()
  #running = 0
  #idlers: (() => void)[] = []

  constructor({ connection, tokens, hosts, version, log }: BrokerOptions) {
    this.connection = connection
    this.engine = connection.engine()
    this.clock = connection.ports.clock
    this.version = version
    this.log = log
    this.doors = new Doors(this.engine, this.clock, tokens, hosts)
    this.names = new Names(this.clock)
    this.feed = new Feed(this.engine, this.clock)
  }

  /** Aborts when stop() is called: no claim begins any more, and long polls end empty. */
  get stopping(): AbortSignal {
    return this.#stopping.signal
  }

  /** True while one more may wait. */
  get roomToWait(): boolean {
    return this.meter.waiting < waitingMax
  }

  /** What the library's operations need, in the caller's name. */
  as({ actor }: Caller): Pick<Connection, 'engine' | 'actor' | 'ports'> {
    return { engine: () => this.engine, actor, ports: this.connection.ports }
  }

  begin(): void {
    this.#running++
  }

  end(): void {
    if (--this.#running === 0) for (const done of this.#idlers.splice(0)) done()
  }

  /** Ends long polls, takes nothing new; resolves when every request under way was answered. */
  stop(): Promise<void> {
    this.#stopping.abort()
    return this.#running === 0 ? Promise.resolve() : new Promise((resolve) => this.#idlers.push(resolve))
  }
}
