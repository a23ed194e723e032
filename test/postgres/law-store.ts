// PostgreSQL as a subject of the laws: a database of its own that keeps a chronicle, on the server of the test file.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { engineFor } from '../../dist/engines/open.js'
import type { HistoryRecord, ProofRecord, TaskRecord } from '../../dist/task/records.js'
import type { Store, Subject } from '../laws/stores.js'
import { keepChronicle, readChronicle } from './chronicle.js'
import type { Server } from './server.js'

export const postgresSubject = (server: () => Promise<Server>): Subject => ({
  name: 'PostgreSQL',
  fresh: async () => lawStore(await server()),
})

async function lawStore(server: Server): Promise<Store> {
  const folder = mkdtempSync(join(tmpdir(), 'piecework-laws-'))
  const url = await server.database()
  const engine = engineFor(url)
  await engine.open()
  await keepChronicle(server, url)
  const all = async <Row>(kind: 'task' | 'history' | 'proof', filter: object): Promise<Row[]> => {
    const found: Row[] = []
    for (let cursor: string | null = null; ; ) {
      const page = await engine.select(kind, { limit: 1000, ...filter }, cursor)
      found.push(...(page.items as unknown as Row[]))
      if (page.next === null) return found
      cursor = page.next
    }
  }
  return {
    url,
    folder,
    file: '',
    engine,
    task: async (id) => (await all<TaskRecord>('task', { ids: [id] }))[0],
    tasks: () => all<TaskRecord>('task', {}),
    history: (id) => all<HistoryRecord>('history', { ids: [id] }),
    proof: () => all<ProofRecord>('proof', {}),
    chronicle: (tasks) => readChronicle(url, tasks),
    writable: () => true,
    async remove() {
      await engine.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
