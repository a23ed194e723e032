// A store behind a broker for the conformance suite: its handles are remote engines, its clock is the broker's.
import type { Engine } from '../../dist/engine/contract.js'
import type { Clock } from '../../dist/ground/clock.js'
import type { TestStore } from '../../dist/testing/trial.js'
import { sqliteStore } from '../engine/subject.js'
import { remoteTo, startBroker, stillClock } from './broker.js'

export interface RemoteChoice {
  /** Where handles connect to, for a broker at `url`; default: there. `calm`: hardly anything is under way. */
  between?: (url: string, calm: () => boolean) => Promise<{ url: string; clock: Clock; close(): Promise<void> }>
}

export async function remoteStore({ between }: RemoteChoice = {}): Promise<TestStore> {
  const store = sqliteStore({ file: true })
  const engine = store.engine()
  await engine.open()
  const arrivals = new Arrivals(engine)
  const broker = await startBroker(engine, { clock: stillClock(store.clock) })
  const way = await between?.(broker.url, () => arrivals.calm)
  const handles: Engine[] = []
  return {
    bootId: store.bootId,
    engine() {
      const handle = arrivals.inOrder(remoteTo(way?.url ?? broker.url, way?.clock))
      handles.push(handle)
      return handle
    },
    async advance(ms) {
      await arrivals.all()
      await store.advance(ms)
    },
    jumpWall: (ms) => store.jumpWall(ms),
    die: () => {
      throw new Error('Nothing tells a broker of a death on another machine.')
    },
    async remove() {
      for (const handle of handles) await handle.close()
      await way?.close()
      await broker.stop()
      await store.remove()
    },
  }
}

/**
 * Waits travel on connections of their own: nothing else is sent, and no time passes, before they have arrived. So a
 * test's calls reach the store in the order in which it makes them.
 */
class Arrivals {
  /** Waits that their caller has not been answered yet, and those that the store knows of. */
  #asked = 0
  #known = 0
  #calls = 0
  #listeners: (() => void)[] = []

  constructor(engine: Engine) {
    const wait = engine.wait.bind(engine)
    engine.wait = (...args) => {
      this.#change(() => this.#known++)
      return wait(...args).finally(() => this.#change(() => this.#known--))
    }
  }

  get calm(): boolean {
    return this.#asked === 0 && this.#calls < 3
  }

  async all(): Promise<void> {
    while (this.#known < this.#asked) await new Promise<void>((resolve) => this.#listeners.push(resolve))
  }

  inOrder(engine: Engine): Engine {
    for (const verb of ['enqueue', 'claim', 'settle', 'configure'] as const) {
      const call = engine[verb].bind(engine) as (...args: unknown[]) => Promise<never>
      const inTurn = async (...args: unknown[]) => {
        this.#calls++
        await this.all()
        return call(...args).finally(() => this.#calls--)
      }
      Object.assign(engine, { [verb]: inTurn })
    }
    const wait = engine.wait.bind(engine)
    engine.wait = (...args) => {
      this.#change(() => this.#asked++)
      return wait(...args).finally(() => this.#change(() => this.#asked--))
    }
    return engine
  }

  #change(step: () => void): void {
    step()
    for (const listen of this.#listeners.splice(0)) listen()
  }
}
