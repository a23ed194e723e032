// The remote engine: every verb is one named call to a broker, which has the store.
import type {
  Amended,
  Change,
  ClaimAsk,
  Claimed,
  Descriptor,
  Engine,
  Enqueued,
  Figures,
  Filter,
  Held,
  Kind,
  NewTask,
  Page,
  Patch,
  Swept,
  Traits,
  Verdict,
  WorkerInfo,
} from '../../engine/contract.js'
import { PieceworkError } from '../../ground/errors.js'
import type { Outcome } from '../../task/lifecycle.js'
import { shown } from '../../task/limits.js'
import { callName, Wire, type WirePorts } from './wire.js'

/** Opening tells soon that nobody is there; later calls wait longer, for a broker that is started anew. */
const openPatienceMs = 3000
/** The longest wait that the broker takes in one call. */
const waitMsMax = 20_000

export interface RemoteOptions {
  /** Default: PIECEWORK_TOKEN. */
  token?: string | undefined
}

/** The engine behind `http://HOST:PORT` or `https://…`, not yet opened; throws PW_ENGINE_UNKNOWN. */
export function remoteEngine(url: string, ports: WirePorts, options: RemoteOptions = {}): Engine {
  const base = URL.canParse(url) ? new URL(url.endsWith('/') ? url : `${url}/`) : null
  if (base === null || base.search !== '' || base.hash !== '') {
    throw new PieceworkError('PW_ENGINE_UNKNOWN', `${shown(url)} is no address of a broker.`, { url })
  }
  if (base.username !== '' || base.password !== '') {
    throw new PieceworkError('PW_ENGINE_UNKNOWN', 'A token does not belong into the URL: set PIECEWORK_TOKEN.')
  }
  return new RemoteEngine(base, ports, options.token ?? (process.env.PIECEWORK_TOKEN || null))
}

class RemoteEngine implements Engine {
  // Nothing tells a broker that a process on another machine has died but the end of its leases.
  readonly traits: Traits = { transactions: 'none', liveness: 'lease', wake: 'push', threads: true, sweeps: 'store' }
  #wire: Wire | null = null

  constructor(
    private readonly base: URL,
    private readonly ports: WirePorts,
    private readonly token: string | null,
  ) {}

  async open(): Promise<void> {
    if (this.#wire) return
    const wire = new Wire(this.base, this.token, this.ports)
    this.#wire = wire
    try {
      await wire.call('open', {}, { patienceMs: openPatienceMs })
    } catch (error) {
      if (this.#wire === wire) await this.close()
      throw error
    }
  }

  async close(): Promise<void> {
    this.#wire?.close()
    this.#wire = null
  }

  descriptor(): Descriptor {
    return { engine: 'remote', url: this.base.href, token: this.token }
  }

  async migrate(dryRun: boolean): Promise<string[]> {
    return (await this.#call('migrate', { dryRun })) as string[]
  }

  async enqueue(requestId: string | null, tasks: readonly NewTask[], tx?: unknown): Promise<Enqueued[]> {
    refuseTx(tx)
    return (await this.#call('enqueue', { requestId: requestId ?? callName(), tasks })) as Enqueued[]
  }

  async claim(ask: ClaimAsk): Promise<Claimed> {
    return (await this.#call('claim', { ...ask, requestId: ask.requestId ?? callName() })) as Claimed
  }

  async settle(
    { worker, flush }: { worker: string; flush: string | null },
    verdicts: readonly Verdict[],
    tx?: unknown,
  ): Promise<Outcome[]> {
    refuseTx(tx)
    return (await this.#call('settle', { worker, flush: flush ?? callName(), verdicts })) as Outcome[]
  }

  async extend(
    worker: string,
    asks: readonly { receipt: string; leaseMs: number; progress?: string | undefined }[],
  ): Promise<Held[]> {
    return (await this.#call('extend', { worker, asks })) as Held[]
  }

  async worker(event: 'join' | 'beat' | 'leave', info: WorkerInfo): Promise<{ alive: boolean; cancelled: string[] }> {
    return (await this.#call('worker', { event, info })) as { alive: boolean; cancelled: string[] }
  }

  async sweep(max: number): Promise<Swept> {
    return (await this.#call('sweep', { max })) as Swept
  }

  async wait(queues: readonly string[], ms: number, signal: AbortSignal): Promise<boolean> {
    // By the broker's clock: what it waited is over, whatever ours says.
    for (let leftMs = Math.ceil(ms); leftMs > 0 && !signal.aborted; leftMs -= waitMsMax) {
      const waitMs = Math.min(leftMs, waitMsMax)
      try {
        if (await this.#use().call('wait', { queues, ms: waitMs }, { waitMs, signal })) return true
      } catch (error) {
        if (!signal.aborted) throw error
      }
    }
    return false
  }

  async configure(kind: Kind, name: string, patch: Patch | null, actor: string): Promise<Patch> {
    return (await this.#call('configure', { kind, name, patch, actor })) as Patch
  }

  async select(kind: Kind, filter: Filter, cursor: string | null): Promise<Page> {
    return (await this.#call('select', { kind, filter, cursor })) as Page
  }

  async amend(
    filter: Filter,
    change: Change,
    actor: string,
    bounds: { max: number; dryRun: boolean },
  ): Promise<Amended> {
    return (await this.#call('amend', { filter, change, actor, bounds })) as Amended
  }

  async measure(queues: readonly string[] | null, durable: boolean): Promise<Figures> {
    return (await this.#call('measure', { queues, durable })) as Figures
  }

  #use(): Wire {
    if (this.#wire) return this.#wire
    throw new PieceworkError('PW_CLOSED', `The connection to ${this.base.origin} is not open.`)
  }

  #call(verb: string, body: unknown): Promise<unknown> {
    return this.#use().call(verb, body)
  }
}

function refuseTx(tx: unknown): void {
  if (tx === undefined) return
  throw new PieceworkError('PW_TX_UNSUPPORTED', 'A broker takes no transaction of the caller.')
}
