// Who calls: tokens with their scopes and queues, failed logins made slow, and ways that a web page could come by.
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Engine } from '../engine/contract.js'
import { type Clock, pause } from '../ground/clock.js'
import { PieceworkError } from '../ground/errors.js'
import type { TokenRecord } from '../task/records.js'

export const scopes = ['produce', 'work', 'operate', 'read-payload', 'admin'] as const
export type Scope = (typeof scopes)[number]

export interface Caller {
  /** The token's name; null where no token was asked for. */
  readonly name: string | null
  /** Who the audit says did it. */
  readonly actor: string
  /** True when one of these scopes is his; `admin` holds all of them. */
  may(...wanted: readonly Scope[]): boolean
  /** True when his queues cover this name. */
  covers(queue: string): boolean
}

/** How long a revoked token may still work, and how soon a new one does. */
const freshMs = 1000
const unknownMs = 50
/** The n-th failed login of an address in a minute is answered after 50 ms x 2^n, at most so late. */
const slowMsMax = 2000
/** So many of one address may wait for that at once; the next hears 429 at once. */
const waitingMax = 10
const forgetMs = 60_000
const addressesMax = 10_000

interface Failures {
  count: number
  waiting: number
  lastMs: number
}

export class Doors {
  readonly #engine: Engine
  readonly #clock: Clock
  /** False: who brings no token may do everything. */
  readonly #demand: boolean
  /** Names by which an open broker may be called; null: any. */
  readonly #hosts: ReadonlySet<string> | null
  #tokens = new Map<string, TokenRecord>()
  #loadedMs = Number.NEGATIVE_INFINITY
  #loading: Promise<void> | null = null
  readonly #failures = new Map<string, Failures>()

  constructor(engine: Engine, clock: Clock, demand: boolean, hosts: ReadonlySet<string> | null) {
    this.#engine = engine
    this.#clock = clock
    this.#demand = demand
    this.#hosts = hosts
  }

  /** Throws PW_ORIGIN_REFUSED for what a page in a browser could have sent by itself. */
  guard({ headers }: IncomingMessage): void {
    const { origin, host = '' } = headers
    if (origin !== undefined && hostOf(origin) !== host.toLowerCase()) {
      throw new PieceworkError('PW_ORIGIN_REFUSED', `The Origin ${JSON.stringify(origin)} is not that of this broker.`)
    }
    if (this.#demand || this.#hosts === null || this.#hosts.has(nameOf(host))) return
    throw new PieceworkError('PW_ORIGIN_REFUSED', `The Host ${JSON.stringify(host)} is not a name of this broker.`)
  }

  /** Throws PW_TOKEN_INVALID, the slower the oftener an address failed, or PW_TOO_MANY. */
  async caller(request: IncomingMessage): Promise<Caller> {
    const { authorization } = request.headers
    const address = request.socket.remoteAddress ?? ''
    if (authorization === undefined && !this.#demand) return anybody(address)
    const token = await this.#tokenOf(authorization)
    if (token) return callerOf(token)
    const missing = authorization === undefined
    if (!missing) await this.#slow(address)
    throw new PieceworkError('PW_TOKEN_INVALID', missing ? 'There is no token.' : 'The token is not valid.')
  }

  /** Tokens were changed through this broker: look again at once. */
  changed(): void {
    this.#loadedMs = Number.NEGATIVE_INFINITY
  }

  async #tokenOf(header: string | undefined): Promise<TokenRecord | null> {
    const [, id = '', secret = ''] = /^Bearer +pw_([0-9a-f]{12})_([\w-]{43})$/i.exec(header ?? '') ?? []
    if (id === '') return null
    await this.#load(freshMs)
    if (!this.#tokens.has(id)) await this.#load(unknownMs)
    const token = this.#tokens.get(id)
    const same = timingSafeEqual(digest(secret), Buffer.from(token?.hash ?? hashOf(''), 'base64url'))
    if (!token || !same) return null
    return token.expiresAt !== null && token.expiresAt <= this.#clock.wallMs() ? null : token
  }

  async #load(olderMs: number): Promise<void> {
    if (this.#clock.monotonicMs() - this.#loadedMs < olderMs) return
    this.#loading ??= this.#read().finally(() => {
      this.#loading = null
    })
    await this.#loading
  }

  async #read(): Promise<void> {
    this.#loadedMs = this.#clock.monotonicMs()
    const { items } = await this.#engine.select('token', {}, null)
    this.#tokens = new Map((items as unknown as TokenRecord[]).map((token) => [token.id, token]))
  }

  async #slow(address: string): Promise<void> {
    const nowMs = this.#clock.monotonicMs()
    for (const [old, { lastMs, waiting }] of this.#failures) {
      if (waiting > 0 || (nowMs - lastMs < forgetMs && this.#failures.size < addressesMax)) break
      this.#failures.delete(old)
    }
    const failures = this.#failures.get(address) ?? { count: 0, waiting: 0, lastMs: nowMs }
    this.#failures.delete(address)
    this.#failures.set(address, failures)
    failures.lastMs = nowMs
    const slowMs = Math.min(50 * 2 ** failures.count++, slowMsMax)
    if (failures.waiting >= waitingMax) {
      const retryAfter = Math.ceil(slowMs / 1000)
      throw new PieceworkError('PW_TOO_MANY', 'This address sends one wrong token after the other.', { retryAfter })
    }
    failures.waiting++
    await pause(this.#clock, slowMs)
    failures.waiting--
  }
}

/** A new token: what its holder keeps, and what the store does. */
export function newToken(): { id: string; text: string; hash: string } {
  const id = randomBytes(6).toString('hex')
  const secret = randomBytes(32).toString('base64url')
  return { id, text: `pw_${id}_${secret}`, hash: hashOf(secret) }
}

const digest = (secret: string) => createHash('sha256').update(secret).digest()
const hashOf = (secret: string) => digest(secret).toString('base64url')

const anybody = (address: string): Caller => ({
  name: null,
  actor: `somebody at ${address}`,
  may: () => true,
  covers: () => true,
})

function callerOf(token: TokenRecord): Caller {
  const globs = token.queues.map(globOf)
  const all = token.scopes.includes('admin')
  return {
    name: token.name,
    actor: `token ${token.name} (${token.id})`,
    may: (...wanted) => all || wanted.some((scope) => token.scopes.includes(scope)),
    covers: (queue) => globs.some((glob) => glob.test(queue)),
  }
}

/** `*` stands for any text, everything else for itself. */
const globOf = (glob: string) =>
  new RegExp(`^${glob.replace(/[\\^$.+?()[\]{}|/-]/g, '\\$&').replace(/\*/g, '.*')}$`, 'su')

/** `host:port` of an origin as the Host header would have it; '' for what is none. */
function hostOf(origin: string): string {
  try {
    return new URL(origin).host
  } catch {
    return ''
  }
}

/** A Host header without its port. */
const nameOf = (host: string) => host.toLowerCase().replace(/:\d+$/, '')

/** The names of this machine to itself. */
export const loopbackNames: readonly string[] = ['localhost', '127.0.0.1', '[::1]']
