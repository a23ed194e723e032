// Starts brokers in the test's own process, and remote engines on a clock that never lets them wait.
import type { Engine } from '../../dist/engine/contract.js'
import { engineFor } from '../../dist/engines/open.js'
import { type Clock, systemClock } from '../../dist/ground/clock.js'
import { Connection } from '../../dist/queue/connection.js'
import { Broker } from '../../dist/server/broker.js'
import { handlerOf } from '../../dist/server/handle.js'
import { listen } from '../../dist/server/listen.js'
import { packageVersion, routes } from '../../dist/server/routes.js'
import { seededRandom } from '../../dist/testing/seeded-random.js'
import { startWorker } from '../../dist/worker/worker.js'

export interface TestBroker {
  readonly url: string
  readonly broker: Broker
  readonly connection: Connection
  /** What it logged. */
  readonly lines: { event: string; facts: Record<string, unknown> }[]
  stop(): Promise<void>
}

export interface TestBrokerOptions {
  /** Of the broker and its connection; default: the machine's. */
  clock?: Clock
  tokens?: boolean
}

/** A broker on a free port over an engine that is open; stopping it closes the engine. */
export async function startBroker(engine: Engine, options: TestBrokerOptions = {}): Promise<TestBroker> {
  const { clock = systemClock, tokens = false } = options
  const connection = new Connection({ engine, clock, random: seededRandom(5), startWorker, heartbeat: 'loop' })
  const lines: TestBroker['lines'] = []
  const hosts = new Set(['127.0.0.1', 'localhost'])
  const log = (event: string, facts: Record<string, unknown>) => void lines.push({ event, facts })
  const broker = new Broker({ connection, tokens, hosts, version: packageVersion(), log })
  const listening = await listen(broker, handlerOf(broker, routes), { host: '127.0.0.1', port: 0, graceMs: 5000 })
  return {
    url: listening.url,
    broker,
    connection,
    lines,
    async stop() {
      await listening.stop()
      await connection.close()
    },
  }
}

/** A clock whose timers never fire: whoever sweeps on it does not, and nothing is ever late. */
export const stillClock = (clock: Clock): Clock => ({
  monotonicMs: () => clock.monotonicMs(),
  wallMs: () => clock.wallMs(),
  uptimeMs: () => clock.uptimeMs(),
  get bootId() {
    return clock.bootId
  },
  after: () => ({ cancel() {} }),
  soon: (fn) => clock.soon(fn),
})

export interface HastyClock extends Clock {
  /** Fires every timer for an answer that is set now: those answers are lost. */
  expire(): void
}

/** Pauses between two sends are over at once; timers for an answer fire only when a test says so. */
export function hastyClock(): HastyClock {
  const answers = new Set<() => void>()
  return {
    ...systemClock,
    after(ms, fn) {
      if (ms < 10_000) {
        systemClock.soon(fn)
        return { cancel() {} }
      }
      answers.add(fn)
      return { cancel: () => void answers.delete(fn) }
    },
    expire() {
      for (const fn of [...answers]) {
        answers.delete(fn)
        fn()
      }
    },
  }
}

/** A remote engine that is not opened yet. */
export const remoteTo = (url: string, clock: Clock = systemClock): Engine =>
  engineFor(url, { clock, random: seededRandom(7) })
