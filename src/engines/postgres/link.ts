// Connections to the writable server: made when needed, handed out one by one, given up at the first sign of failure.
import type { ClientConfig } from 'pg'
import type { Clock } from '../../ground/clock.js'
import { PieceworkError } from '../../ground/errors.js'
import { shown } from '../../task/limits.js'
import { isLost, translated } from './errors.js'
import type { Statement } from './statements.js'

/** What of a pg client we use; a pool's client and a caller's own have it as well. */
export interface Executor {
  query(config: object): Promise<{ rows: unknown[]; command?: string }>
}

/** What of a `pg.Pool` we use. */
export interface ClientPool {
  connect(): Promise<
    Executor & {
      on(event: 'error', hear: () => void): unknown
      off(event: 'error', hear: () => void): unknown
      release(destroy?: boolean): void
    }
  >
  /** How it makes its connections. */
  readonly options: object
}

export interface LinksOptions {
  /** Connections for statements at most, beside two that last; default 4, 2 of a caller's pool. */
  connectionsMax?: number | undefined
  /** How long a server may take to accept a connection, ms; default 3000. */
  connectMs?: number | undefined
  /** How long a list or a full count may take, ms; default 30 000. A connection that is silent so long is lost. */
  statementMs?: number | undefined
  /** The same for every other statement, which touches few rows and waits for no lock longer than 2 s; default 5000. */
  silentMs?: number | undefined
}

const connectMsDefault = 3000
const statementMsDefault = 30_000
const silentMsDefault = 5000

/** No scans of whole tables, whatever the planner believes of a table it has never looked at; nobody waits for long. */
const settingsOf = ({ statementMs = statementMsDefault }: LinksOptions): string[] => [
  ...['enable_seqscan = off', 'enable_bitmapscan = off', 'jit = off', 'lock_timeout = 2000'],
  ...[`statement_timeout = ${statementMs}`, 'idle_in_transaction_session_timeout = 60000'],
]

const big = 20
/** Whole numbers up to 2^53 come as numbers; everything else as the driver has it. */
const types = { getTypeParser: (oid: number, format?: string) => (oid === big ? Number : parsers(oid, format)) }
let parsers: (oid: number, format?: string) => unknown = () => String

/** Loads the driver; throws PW_NO_POSTGRES. */
export async function driver(): Promise<typeof import('pg').default> {
  try {
    const pg = (await import('pg')).default
    parsers = pg.types.getTypeParser as typeof parsers
    return pg
  } catch (error) {
    throw new PieceworkError('PW_NO_POSTGRES', 'The package pg could not be loaded.', {}, { cause: error })
  }
}

interface LinkOptions {
  /** Several statements may be under way at once. */
  pipelined: boolean
  /** Statements may be prepared by name. */
  named: boolean
  /** Settings that are not the session's: each transaction begins with them. */
  settings?: readonly string[]
}

/** One connection, or a caller's client. */
export class Link {
  /** How long a statement may be silent, ms; undefined: as long as the connection says. */
  silentMs: number | undefined

  constructor(
    readonly executor: Executor,
    private readonly options: LinkOptions,
  ) {}

  /** Runs a statement; the answer's rows as objects. */
  async run<Row = unknown>(statement: Statement, values: readonly unknown[] = []): Promise<Row[]> {
    const { name, text } = statement
    const config = { text, values, types, query_timeout: this.silentMs }
    return (await this.executor.query(this.options.named ? { ...config, name } : config)).rows as Row[]
  }

  /** Runs text without parameters, perhaps several statements; answers the last command. */
  async say(text: string): Promise<string> {
    const answer = await this.executor.query({ text, query_timeout: this.silentMs })
    return (Array.isArray(answer) ? answer.at(-1) : answer).command ?? ''
  }

  begin(mode = ''): Promise<string> {
    const { settings = [] } = this.options
    return this.say([`begin ${mode}`, ...settings.map((setting) => `set local ${setting}`)].join('; '))
  }

  /** Runs statements that don't need each other's answers: in one trip where the connection can. */
  async all(steps: readonly (() => Promise<unknown>)[]): Promise<unknown[]> {
    if (this.options.pipelined) {
      const answers = await Promise.allSettled(steps.map((step) => step()))
      // The first failure is the cause; those behind it only say that the transaction is over.
      const failed = answers.find((answer) => answer.status === 'rejected')
      if (failed) throw failed.reason
      return answers.map((answer) => (answer as PromiseFulfilledResult<unknown>).value)
    }
    const answers: unknown[] = []
    for (const step of steps) answers.push(await step())
    return answers
  }
}

/** Where to connect: the URL for each of its hosts, and the store's name without the password. */
function serversOf(url: string): { urls: string[]; name: string } {
  const match = /^(postgres(?:ql)?:\/\/)([^/?#]*@)?([^/?#]*)(.*)$/.exec(url)
  if (!match) throw new PieceworkError('PW_ENGINE_UNKNOWN', `${shown(url)} is no URL of a PostgreSQL database.`)
  const [, scheme = '', user = '', hosts = '', rest = ''] = match
  // libpq's parameter for several hosts; here it is always so.
  const path = rest.replace(/([?&])target_session_attrs=[^&]*&?/, '$1').replace(/[?&]$/, '')
  return { urls: hosts.split(',').map((host) => `${scheme}${user}${host}${path}`), name: `${scheme}${hosts}${path}` }
}

/** A pool hides its password from those who list its options. */
function optionsOf({ options }: ClientPool): ClientConfig {
  const { password } = options as ClientConfig
  return password === undefined ? { ...options } : { ...options, password }
}

/** A connection that somebody uses alone. */
export interface Held {
  link: Link
  /** False once the connection is known to be gone. */
  alive: boolean
  /** Whether it holds the process open. */
  hold(open: boolean): void
  end(): void
}

/** The connections of one engine. */
export class Links {
  /** Named in errors; without the password. */
  readonly name: string
  /** False behind a pooler that hands a session's transactions to many: no session locks, no listening. */
  sessions = true
  /** When the way to the server last broke, on the monotonic clock. */
  shakenAtMs = Number.NEGATIVE_INFINITY
  readonly #idle: Held[] = []
  readonly #waiting: (() => void)[] = []
  readonly #urls: string[]
  #best = 0
  #open = 0
  #closed = false
  #greeted = false

  constructor(
    private readonly source: { url: string } | { pool: ClientPool },
    private readonly options: LinksOptions,
    private readonly clock: Clock,
  ) {
    // The sessions that last are connections of their own, made as the pool makes its own.
    const { urls, name } = 'url' in source ? serversOf(source.url) : { urls: [''], name: 'the pool' }
    this.#urls = urls
    this.name = name
  }

  /** Where and how to connect for somebody who does the rest himself. */
  config(): ClientConfig {
    const { connectMs = connectMsDefault } = this.options
    const to = 'pool' in this.source ? optionsOf(this.source.pool) : { connectionString: this.#urls[this.#best] }
    return { ...to, connectionTimeoutMillis: connectMs, application_name: 'piecework' }
  }

  /** Hands out a connection for `work` alone; one that failed is not used again. `long`: it may be silent for long. */
  async use<T>(work: (link: Link) => Promise<T>, long = false): Promise<T> {
    const held = await this.#take()
    const { silentMs = silentMsDefault } = this.options
    held.link.silentMs = long ? undefined : silentMs
    try {
      const answer = await work(held.link)
      this.#giveBack(held)
      return answer
    } catch (error) {
      // What stays open after an error of ours is rolled back by whoever began it.
      if (isLost(error) || !(await this.#rolledBack(held.link))) {
        held.alive = false
        this.shakenAtMs = this.clock.monotonicMs()
        this.#drop(held)
        // They went the same way, and may be as silent as this one.
        for (const idle of this.#idle.splice(0)) this.#drop(idle)
      } else this.#giveBack(held)
      throw error
    }
  }

  /** A connection of its own, for a session that lasts; `lost` is called once when it ends. */
  async keep(lost: () => void): Promise<Held> {
    const kept = await this.#connect(lost).catch((error) => {
      throw translated(error, this.name)
    })
    kept.hold(false)
    kept.link.silentMs = this.options.silentMs ?? silentMsDefault
    return kept
  }

  close(): void {
    this.#closed = true
    for (const idle of this.#idle.splice(0)) idle.end()
    for (const next of this.#waiting.splice(0)) next()
  }

  async #rolledBack(link: Link): Promise<boolean> {
    return link.say('rollback').then(
      () => true,
      () => false,
    )
  }

  async #take(): Promise<Held> {
    for (;;) {
      if (this.#closed) throw new PieceworkError('PW_CLOSED', `${this.name} was closed.`)
      const idle = this.#idle.pop()
      if (idle?.alive) {
        idle.hold(true)
        return idle
      }
      if (idle) {
        this.#drop(idle)
        continue
      }
      if (this.#open < (this.options.connectionsMax ?? ('pool' in this.source ? 2 : 4))) break
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
    this.#open++
    try {
      return await ('pool' in this.source ? this.#borrow(this.source.pool) : this.#connect(() => {}))
    } catch (error) {
      this.shakenAtMs = this.clock.monotonicMs()
      this.#freed()
      throw translated(error, this.name)
    }
  }

  #giveBack(held: Held): void {
    // A caller's pool has other users.
    if (this.#closed || !held.alive || 'pool' in this.source) return this.#drop(held)
    held.hold(false)
    this.#idle.push(held)
    this.#waiting.shift()?.()
  }

  #drop(held: Held): void {
    held.end()
    this.#freed()
  }

  #freed(): void {
    this.#open--
    this.#waiting.shift()?.()
  }

  async #connect(lost: () => void): Promise<Held> {
    let failure: unknown
    for (let i = 0; i < this.#urls.length; i++) {
      const at = (this.#best + i) % this.#urls.length
      try {
        const made = await this.#dial(this.#urls[at] as string, lost)
        this.#best = at
        return made
      } catch (error) {
        failure ??= error
        if (!isLost(error)) throw error
      }
    }
    throw failure
  }

  /** One of the caller's pool, given back after every use; what its owner set on it stays as it is. */
  async #borrow(pool: ClientPool): Promise<Held> {
    const client = await pool.connect()
    let link = new Link(client, { pipelined: false, named: false, settings: settingsOf(this.options) })
    const made: Held = { link, alive: true, hold() {}, end() {} }
    const ended = () => {
      made.alive = false
      this.shakenAtMs = this.clock.monotonicMs()
    }
    client.on('error', ended)
    made.end = () => {
      client.off('error', ended)
      client.release(!made.alive)
    }
    try {
      if (!this.#greeted) await this.#greet(client)
      if (this.sessions) link = new Link(client, { pipelined: false, named: true, settings: settingsOf(this.options) })
      return Object.assign(made, { link })
    } catch (error) {
      made.alive = false
      made.end()
      throw error
    }
  }

  async #dial(url: string, lost: () => void): Promise<Held> {
    const { Client } = await driver()
    const { connectMs = connectMsDefault, statementMs = statementMsDefault } = this.options
    const config: ClientConfig & { pipeline: boolean } = {
      ...('pool' in this.source ? optionsOf(this.source.pool) : { connectionString: url }),
      connectionTimeoutMillis: connectMs,
      query_timeout: statementMs + 2000,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      application_name: 'piecework',
      pipeline: true,
    }
    const client = new Client(config)
    const link = new Link(client, { pipelined: true, named: true })
    const process = client as unknown as { ref(): void; unref(): void }
    const made: Held = { link, alive: true, hold: (open) => (open ? process.ref() : process.unref()), end() {} }
    const ended = () => {
      if (!made.alive) return
      made.alive = false
      this.shakenAtMs = this.clock.monotonicMs()
      lost()
    }
    made.end = () => {
      made.alive = false
      client.end().catch(() => {})
    }
    client.on('error', ended)
    client.on('end', ended)
    try {
      await client.connect()
      await this.#greet(client)
      const settings = settingsOf(this.options)
      if (this.sessions) await made.link.say(settings.map((setting) => `set ${setting}`).join('; '))
      // Behind a pooler a name may meet another session's statement, a setting goes to whoever is next on that
      // session, and what comes before an answer may reach another session.
      else made.link = new Link(client, { pipelined: false, named: false, settings })
      return made
    } catch (error) {
      made.end()
      throw error
    }
  }

  /** Refuses a server that only reads; finds out whether we speak to the server itself or to a pooler. */
  async #greet(client: Executor): Promise<void> {
    const text = `select pg_backend_pid() as pid, current_setting('transaction_read_only') as reads`
    const { rows } = await client.query({ text, query_timeout: this.options.connectMs ?? connectMsDefault })
    const [row] = rows as { pid: number; reads: string }[]
    if (row?.reads === 'on') {
      throw Object.assign(new Error('the server only reads'), { code: '25006' })
    }
    // The number a pooler tells at the start is its own, not the server process's.
    this.sessions = row?.pid === (client as { processID?: number }).processID
    this.#greeted = true
  }
}
