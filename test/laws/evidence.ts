// Gathers what is known of a run: the logs of its processes, the engine's chronicle, records and figures.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Death, Evidence } from './checker.js'
import type { Store } from './eyes.js'
import type { Line } from './processes.js'

/** What a process wrote down; a line that its death cut short is none. */
export function readLog(path: string): Line[] {
  const texts = readFileSync(path, 'utf8').split('\n')
  return texts.slice(0, -1).map((text) => JSON.parse(text) as Line)
}

export function readLogs(folder: string): Line[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.log'))
    .flatMap((name) => readLog(join(folder, name)))
}

/** Everything the checker judges by; `deaths` without an instant took place when the process's log says. */
export async function evidenceOf(
  store: Store,
  run: { queue: string; deliveriesMax: number; deaths: readonly Death[]; proofs: Evidence['proofs'] },
): Promise<Evidence> {
  const lines = readLogs(store.folder)
  const { types } = await store.engine.measure([run.queue], false)
  const total = (figure: keyof Evidence['totals']) => types.reduce((sum, row) => sum + row[figure], 0)
  const deaths = run.deaths.map((death) => ({
    ...death,
    at: death.at || (lines.find((line) => line.pid === death.pid && line.what === 'dying')?.at ?? death.exitedAt),
  }))
  return {
    deliveriesMax: run.deliveriesMax,
    chronicle: store.chronicle(),
    lines,
    tasks: await store.tasks(),
    proofs: [...run.proofs, await store.proof()],
    totals: {
      enqueued: total('enqueued'),
      deliveries: total('deliveries'),
      done: total('done'),
      dead: total('dead'),
      expiries: total('expiries'),
      deaths: total('deaths'),
      failures: total('failures'),
      stale: total('stale'),
    },
    deaths,
  }
}
