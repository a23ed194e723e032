// Opens PostgreSQL engines for tests on a manual clock that the store's time function reads, with deaths on command.
import type { Engine } from '../../dist/engine/contract.js'
import { engineFor } from '../../dist/engines/open.js'
import { type PostgresOptions, postgresEngine } from '../../dist/engines/postgres/engine.js'
import { manualClock } from '../../dist/testing/manual-clock.js'
import { seededRandom } from '../../dist/testing/seeded-random.js'
import type { SqliteStore } from '../engine/subject.js'
import type { Server } from './server.js'

export type EngineOver = typeof postgresEngine

/** A store whose clock stands still until it is moved. */
export interface PostgresStore extends SqliteStore {
  /** What the next sweep does first, and nothing else of it: it touches no task, and nobody's death is seen. */
  finishBatches(engine: Engine): Promise<void>
  readonly namesStay: true
}

/** Databases whose store is made already, kept for the next test that asks: making one costs 40 statements. */
const spare = new Map<Server, string[]>()

/** Empties every table but the store's own row, whatever tables there are. */
const emptied = `do $$ begin
    execute (select 'truncate ' || string_agg(format('piecework.%I', tablename), ', ') || ' restart identity'
      from pg_tables where schemaname = 'piecework' and tablename <> 'store');
  end $$; update piecework.store set settings = settings + 1`

async function freshDatabase(server: Server): Promise<string> {
  const url = spare.get(server)?.pop()
  if (url) {
    await server.sql(url, emptied)
    return url
  }
  const made = await server.database()
  const engine = engineFor(made)
  await engine.open()
  await engine.close()
  await server.sql(made, 'create table clock (us bigint not null); insert into clock values (0)')
  await server.sql(
    made,
    `create or replace function piecework.now_us() returns bigint language sql as 'select us from public.clock'`,
  )
  return made
}

/** A proof is the name of the worker that joins. */
const proofsOf = (joining: () => string, isDead: (proof: string) => boolean) => ({
  hold: async () => joining(),
  dead: ({ ids, proofs }: { ids: number[]; proofs: string[] }) => ({
    ids: ids.filter((_, i) => isDead(proofs[i] as string)),
    againMs: null,
  }),
  drop() {},
})

export async function postgresStore(
  server: Server,
  choice: { engineOver?: EngineOver; options?: PostgresOptions } = {},
): Promise<PostgresStore> {
  const { engineOver = postgresEngine, options = {} } = choice
  const url = await freshDatabase(server)
  const clock = manualClock()
  // The server's clock: nothing that happens to the wall clock of a worker's machine moves it.
  const aheadMs = clock.wallMs() - clock.monotonicMs()
  const tell = () => server.sql(url, 'update clock set us = $1', [Math.floor((clock.monotonicMs() + aheadMs) * 1000)])
  await tell()
  const pass = clock.advance.bind(clock)
  clock.advance = async (ms) => {
    await pass(ms)
    await tell()
  }
  const dead = new Set<string>()
  let blind = false
  const opened: Engine[] = []
  return {
    clock,
    bootId: clock.bootId,
    engine() {
      let joining = ''
      const isDead = (proof: string) => !blind && dead.has(proof)
      const ports = { clock, random: seededRandom(1) }
      const engine = engineOver({ url }, ports, {
        proofs: proofsOf(() => joining, isDead),
        rescanEveryMs: 0,
        ...options,
      })
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
    namesStay: true,
    async finishBatches(engine) {
      blind = true
      await engine.sweep(0)
      blind = false
    },
    async remove() {
      for (const engine of opened) await engine.close()
      spare.set(server, [...(spare.get(server) ?? []), url])
    },
  }
}
