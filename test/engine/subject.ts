// Opens SQLite engines for tests on a manual clock, in memory or in a folder of their own, with deaths on command.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Engine } from '../../dist/engine/contract.js'
import { type OpenOptions, engineFor as realEngineFor } from '../../dist/engines/open.js'
import { type ManualClock, manualClock } from '../../dist/testing/manual-clock.js'
import { seededRandom } from '../../dist/testing/seeded-random.js'

export type EngineFor = (url: string, options: OpenOptions) => Engine

/** One store and everything around it that a test moves. */
export interface SqliteStore {
  clock: ManualClock
  bootId: string
  /** A handle on the store, not opened; its workers live until `die`. */
  engine(): Engine
  advance(ms: number): Promise<void>
  jumpWall(ms: number): void
  die(worker: string): void
  remove(): Promise<void>
}

export interface StoreChoice {
  file: boolean
  engineFor?: EngineFor
  options?: OpenOptions
}

export function sqliteStore(choice: StoreChoice): SqliteStore {
  const { engineFor = realEngineFor, options = {} } = choice
  const clock = manualClock()
  const folder = choice.file ? mkdtempSync(join(tmpdir(), 'piecework-engine-')) : null
  const url = folder === null ? 'sqlite::memory:' : `sqlite:${join(folder, 'work.db')}`
  const dead = new Set<string>()
  const opened: Engine[] = []
  return {
    clock,
    bootId: clock.bootId,
    engine() {
      let joining = ''
      const liveness = {
        hold: () => joining,
        isDead: (proof: string) => dead.has(proof),
        held: null,
        drop() {},
        clear() {},
      }
      const engine = engineFor(url, { clock, random: seededRandom(1), liveness, ...options })
      const call = engine.worker.bind(engine)
      // The proof of a worker is its name here, so that one of several in this process can die.
      engine.worker = (event, info) => {
        joining = info.worker
        return call(event, info)
      }
      opened.push(engine)
      return engine
    },
    advance: (ms) => clock.advance(ms),
    jumpWall: (ms) => clock.jumpWall(ms),
    die: (worker) => void dead.add(worker),
    async remove() {
      for (const engine of opened) await engine.close()
      if (folder !== null) rmSync(folder, { recursive: true, force: true })
    },
  }
}
